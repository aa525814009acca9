"""Reserves the ports of a run, so that two runs that start at the same moment never choose the same one."""

import socket
import sys
from contextlib import ExitStack
from typing import Self

from scheduler_app.cli.errors import CannotStart
from scheduler_app.cli.up.preflight import check_port
from scheduler_app.config import Settings
from scheduler_app.embedded import free_port, is_free


class ReservedPorts(ExitStack):
    """Reserves ports until it is closed, or its process ends.

    A port looks free until the service that listens on it has started, seconds later. Until then an abstract
    Unix socket with the port's number in its name tells other runs, of any user, that it is reserved. Only
    Linux has such sockets: elsewhere the first service to listen wins, as between any two programs.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def reserve(self, setting: str, host: str, port: int, remedy: str) -> int:
        """Reserves a port. Raises `CannotStart` with the setting's name when another program, another run,
        or another service of this run has it."""
        check_port(setting, host, port, remedy)
        if not self._reserve(port):
            raise CannotStart(
                f"{setting}: port {port} is taken by another `scheduler up`, or twice; {remedy}."
            )
        return port

    def flower(self, settings: Settings) -> int:
        """Reserves FLOWER_PORT; unless that is set, 5555 or, where that is taken, any free port."""
        if "FLOWER_PORT" in settings.given:
            return self.reserve(
                "FLOWER_PORT", "127.0.0.1", settings.flower_port, "choose another with --flower-port"
            )
        port = settings.flower_port
        while not (is_free(port) and self._reserve(port)):
            port = free_port()
        return port

    def metrics(self, settings: Settings) -> None:
        """Reserves METRICS_PORT for beat, and the ports after it for the workers, that of commands last."""
        first = settings.metrics_port
        count = 1 + settings.worker_processes + bool(settings.allowed_commands)
        for port in range(first, first + count) if first else ():
            remedy = f"choose another: beat and the workers take {count} ports from it on"
            self.reserve("METRICS_PORT", settings.metrics_host, port, remedy)

    def _reserve(self, port: int) -> bool:
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
