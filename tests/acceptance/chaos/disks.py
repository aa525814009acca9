"""A small disk of a server's own, that can be filled."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

SIZE_MB = 900
CHUNK = b"\0" * (1 << 20)


class Disk:
    """A tmpfs of `SIZE_MB` at `path`, where this process may mount one: root may not in every container."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.can_be_filled = False

    def fill(self) -> None:
        """Takes all the room that is left. Raises RuntimeError on a disk that is not ours alone."""
        if not self.can_be_filled:
            raise RuntimeError("the small disk that this fault fills could not be mounted: only root can")
        with self._ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(CHUNK)
            except OSError:
                return  # full, as asked

    def free(self) -> None:
        self._ballast.unlink()

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True)
        if os.geteuid() == 0:
            options = ["-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs"]
            mounted = subprocess.run(["mount", *options, self.path], stderr=subprocess.DEVNULL, check=False)
            self.can_be_filled = mounted.returncode == 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.can_be_filled:
            subprocess.run(["umount", "--lazy", self.path], check=True)
