"""A neighbour that is a worker full of commands: some hang, some burn what CPU they get, some hold memory."""

import sys
from datetime import datetime

import psutil

from scheduler_app.domain.action import COMMANDS
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.resource_fields import NOT_GIVEN
from tests.bench.ground import Ground
from tests.bench.neighbour import Neighbour
from tests.bench.planted import events_at, insert, whole_ms
from tests.bench.receiver import Receiver
from tests.bench.report import Row
from tests.builders import schedule

#: Writes into 32 MiB, over and over.
_HOLDS = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = bytearray(32 << 20)
while True:
    held[:] = bytes(len(held))
    time.sleep(1)
"""
#: All of them ignore the signal that asks them to end.
_KINDS = {
    "hangs": ("sh", "-c", "trap '' TERM; while :; do sleep 1000; done"),
    "burns": ("sh", "-c", "trap '' TERM; while :; do :; done"),
    "holds": (sys.executable, "-Ic", _HOLDS),
}


class RunningCommands(Neighbour):
    """So many commands, a third of each kind, which run from the beginning to the end of the phase."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._worker: psutil.Process | None = None
        self._ran: list[int] = []

    def events(self, seconds: float) -> int:
        return self._count

    def prepare(self, made: Ground, receiver: Receiver, begin: datetime, seconds: float) -> None:
        schedules = [
            schedule(
                begin,
                name,
                url=NOT_GIVEN,
                action=CommandAction(words),
                rrule="DTSTART:20900101T000000Z\nRRULE:FREQ=YEARLY",
                # Longer than the phase, and than what the victims that are late are waited for.
                timeout_seconds=min(300.0, 2 * seconds + 120),
            )
            for name, words in _KINDS.items()
        ]
        made.store.schedules.insert_many(schedules)
        key = {each.id: each.action.isolation_key for each in schedules}
        planted = events_at(schedules, self._count, lambda number: whole_ms(begin))
        insert(made, [each._replace(queue=COMMANDS, origin=key[each.schedule_id]) for each in planted])
        settings = {
            "ALLOWED_COMMANDS": "*",
            "ALLOW_ANY_COMMAND": "true",
            "COMMAND_CONCURRENCY": str(self._count),
        }
        options = ("-P", "threads", "--without-gossip", "--without-mingle", "-n", "commands@%h")
        process = made.stack.start(
            "commands", "celery", "-A", "scheduler_app", "worker", *options, "-Q", COMMANDS, **settings
        )
        made.stack.wait_for_node("worker", process.pid)
        self._worker = psutil.Process(process.pid)

    def disturb(self) -> None:
        """They are due by themselves."""

    def stop(self) -> None:
        if self._worker is not None and not self._ran:
            # A guardian for each command.
            self._ran.append(len(self._worker.children()))

    def figures(self, begin: datetime) -> Row:
        return {"commands_at_the_end": self._ran[0]}
