"""The ports of a run: held from the first look at them, so that two runs that start together share none."""

import socket
import sys
from contextlib import ExitStack
from typing import Self

from scheduler_app.cli.errors import CannotStart
from scheduler_app.cli.up.preflight import check_port
from scheduler_app.config import Settings
from scheduler_app.embedded import free_port, is_free

FLOWER_PORT = 5555


class HeldPorts(ExitStack):
    """Holds ports until it is closed, or its process ends.

    A port is free until the part that is to listen on it has started, seconds later. Until then an abstract
    Unix socket of its number, of which Linux has one, tells other runs of any user that it is spoken for. On
    other systems the first part to listen wins, as between any two programs.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def hold(self, setting: str, host: str, port: int, remedy: str) -> int:
        """Raises `CannotStart` with the setting's name when another program, another run, or another part
        of this one has the port."""
        check_port(setting, host, port, remedy)
        if not self._is_ours(port):
            raise CannotStart(
                f"{setting}: port {port} is taken by another `scheduler up`, or twice; {remedy}."
            )
        return port

    def flower(self, settings: Settings) -> int:
        """FLOWER_PORT, or 5555 when that is free, else any."""
        if "FLOWER_PORT" in settings.given:
            return self.hold(
                "FLOWER_PORT", "127.0.0.1", settings.flower_port, "choose another with --flower-port"
            )
        port = settings.flower_port
        while not (is_free(port) and self._is_ours(port)):
            port = free_port()
        return port

    def metrics(self, settings: Settings) -> None:
        """Holds METRICS_PORT, which is beat's, and the ones after it, which are the workers'."""
        first = settings.metrics_port
        for port in range(first, first + 1 + settings.worker_processes) if first else ():
            remedy = (
                f"choose another: beat and the workers take {1 + settings.worker_processes} ports from it on"
            )
            self.hold("METRICS_PORT", settings.metrics_host, port, remedy)

    def _is_ours(self, port: int) -> bool:
        if not sys.platform.startswith("linux"):
            return True
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0rrule-scheduler/port/{port}")
        except OSError:
            claim.close()
            return False
        self.callback(claim.close)
        return True
