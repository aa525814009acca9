"""Redis as a broker: it never evicts a message, and keeps all of them over a restart."""

import re
from pathlib import Path

from scheduler_app.embedded.binaries import find_redis_server
from scheduler_app.embedded.ports import LOOPBACK
from scheduler_app.embedded.server import Server, write_private

_ERROR = re.compile(r"(?i)\b(fatal|error|bad|failed|can't|could not|out of memory|already in use)\b")


class Redis(Server):
    """With the settings of deploy/redis.conf."""

    name = "redis"
    title = "Redis"

    @property
    def url(self) -> str:
        login = f":{self._password}@" if self._password else ""
        return f"redis://{login}{LOOPBACK}:{self.port}/0"

    def prepare(self) -> None:
        super().prepare()
        if self._password:
            # In a file: every user of the machine can see command lines.
            write_private(self._config, f"requirepass {self._password}\n")

    def command(self) -> list[str]:
        return [
            str(find_redis_server()),
            *([str(self._config)] if self._password else []),
            *("--bind", LOOPBACK),
            *("--port", str(self.port)),
            *("--dir", str(self.directory)),
            *("--appendonly", "yes"),
            *("--appendfsync", "everysec"),
            *("--save", ""),
            *("--maxmemory-policy", "noeviction"),
        ]

    def ready(self) -> bool:
        """Whether it answers and works in this folder: on a taken port another server would answer."""
        # The server starts while this loads.
        from redis import Redis as Client
        from redis.exceptions import RedisError

        with Client.from_url(self.url, socket_timeout=2, socket_connect_timeout=2) as client:
            try:
                return self._works_here(client.config_get("dir")["dir"])
            except RedisError:
                return False  # not up yet, or still reading its file

    @property
    def _config(self) -> Path:
        return self.directory / "redis.conf"

    def error_line(self, line: str) -> str | None:
        # Redis's levels do not help: its greeting is a warning, too, and errors at the start have no level.
        return line.strip() if _ERROR.search(line) else None
