"""What a worker lets its commands use, by its settings."""

import os
import pwd
from dataclasses import dataclass

from scheduler_app.config import InvalidSetting, Settings

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each process of a command, and as whom and where it runs."""

    memory_bytes: int
    cpu_seconds: int
    open_files: int
    file_bytes: int
    processes: int
    """Of the user as whom commands run, however they were started; 0: no limit."""
    niceness: int
    """More than the worker's; 19 is the most that there is."""
    directory: str
    uid: int | None
    """None: the worker's own user."""
    gid: int | None
    user: str
    home: str


def limits_of(settings: Settings) -> Limits:
    """Raises InvalidSetting for a user or a directory that there is not."""
    own = os.getuid()
    try:
        account = pwd.getpwnam(settings.command_user) if settings.command_user else pwd.getpwuid(own)
    except KeyError:
        if settings.command_user:
            raise InvalidSetting(
                f"COMMAND_USER {settings.command_user!r} is not a user of this host; create it or name one"
            ) from None
        account = None  # a container's user may have a number only
    if account is not None and account.pw_uid != own and own != 0:
        raise InvalidSetting("COMMAND_USER can be another user only where the worker is root; leave it out")
    directory = settings.command_directory or os.getcwd()
    if not os.path.isdir(directory):
        raise InvalidSetting(f"COMMAND_DIRECTORY {directory!r} is not a directory of this host")
    changes = account is not None and account.pw_uid != own
    return Limits(
        memory_bytes=settings.command_memory_mib * MIB,
        cpu_seconds=settings.command_cpu_seconds,
        open_files=settings.command_open_files,
        file_bytes=settings.command_file_mib * MIB,
        processes=settings.command_processes,
        niceness=settings.command_niceness,
        directory=directory,
        uid=account.pw_uid if account is not None and changes else None,
        gid=account.pw_gid if account is not None and changes else None,
        user=account.pw_name if account is not None else str(own),
        home=account.pw_dir if account is not None else "/",
    )
