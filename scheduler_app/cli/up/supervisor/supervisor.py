"""Starts the services tier by tier, restarts those that die, and ends them in reverse order. Signals become a
file descriptor, so that `select` can wait for them beside the services' pipes.
"""

import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Self

from scheduler_app.cli.up.supervisor.console import Console
from scheduler_app.cli.up.supervisor.process import Process, Service

#: All in seconds.
FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 30.0
HEALTHY_SECONDS = 60.0


class Backoff:
    """1 s, doubled with each death up to 30 s; back to 1 s once a service has lived for 60 s."""

    def __init__(self) -> None:
        self._next = FIRST_DELAY_SECONDS

    def after(self, lived: float) -> float:
        """Returns the seconds to wait after a death that came `lived` seconds after the start."""
        if lived >= HEALTHY_SECONDS:
            self._next = FIRST_DELAY_SECONDS
        delay = self._next
        self._next = min(LONGEST_DELAY_SECONDS, 2 * delay)
        return delay


#: Seconds between two checks.
_CHECK_EVERY = 0.1


class Slot:
    """Empty until `fill` starts the first process."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.process: Process | None = None
        self.deaths = 0
        self._ready = False
        self._check_at = 0.0
        self._again_at: float | None = None
        self._backoff = Backoff()

    def fill(self) -> Process:
        self._again_at = None
        self.process = Process(self.service)
        return self.process

    def vacate(self) -> float:
        """Empties the slot after a death, and returns the seconds until it is to be filled again."""
        assert self.process is not None  # noqa: S101
        delay = self._backoff.after(time.monotonic() - self.process.started)
        self._again_at = time.monotonic() + delay
        self.process = None
        self.deaths += 1
        self._ready = False
        return delay

    def is_due(self) -> bool:
        return self._again_at is not None and time.monotonic() >= self._again_at

    def is_ready(self) -> bool:
        """Whether its process has been ready once; checks at intervals until it has."""
        if not self._ready and self.process is not None and time.monotonic() >= self._check_at:
            self._ready = self.service.ready()
            self._check_at = time.monotonic() + _CHECK_EVERY
        return self._ready


_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """While entered, counts the signals that ask for the end, and makes `fileno()` readable.

    SIGCHLD makes it readable too, so that a death is seen at once.
    """

    def __init__(self) -> None:
        self.asked_to_end = 0
        self._previous: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}

    def fileno(self) -> int:
        return self._reader

    def clear(self) -> None:
        """Empties the pipe."""
        try:
            while os.read(self._reader, 4096):
                continue
        except BlockingIOError:
            return

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in _END_SIGNALS:
            # Under nohup SIGHUP is ignored, and has to stay so.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._count)
        self._previous[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(self._reader)
        os.close(self._writer)

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.asked_to_end += 1


#: A service that dies this often before all are ready is given up, and all the others are ended.
_DEATHS_BEFORE_READY = 3
#: Seconds.
_LONGEST_WAIT = 0.2
_REPORT_MISSING_EVERY = 30.0


class Supervisor:
    """One thread, no locks: everything happens between two calls of `select`."""

    def __init__(self, services: Sequence[Service], console: Console, all_ready: Callable[[], None]) -> None:
        self._slots = [Slot(service) for service in services]
        self._tiers = sorted({service.tier for service in services})
        self._console = console
        self._all_ready = all_ready
        self._selector = selectors.DefaultSelector()
        self._signals = Signals()

    def run(self) -> int:
        """Runs until a signal asks for the end; returns the exit status, 0 after an end in order.

        Must be called from the main thread.
        """
        with self._signals, self._selector:
            self._selector.register(self._signals, selectors.EVENT_READ)
            in_order = False
            try:
                in_order = self._bring_up()
                while in_order and not self._should_end():
                    self._watch()
            finally:
                in_order = self._bring_down() and in_order
        return 0 if in_order else 1

    def _should_end(self) -> bool:
        return self._signals.asked_to_end > 0 or self._console.lost

    def _bring_up(self) -> bool:
        """Returns False when a service does not come up, True when all are ready or the end is asked for."""
        for tier in self._tiers:
            slots = [slot for slot in self._slots if slot.service.tier <= tier]
            for slot in slots:
                if slot.service.tier == tier:
                    self._fill(slot)
            said = time.monotonic()
            while missing := [slot.service.name for slot in slots if not slot.is_ready()]:
                self._watch()
                if self._should_end():
                    return True
                if stuck := [slot.service.name for slot in slots if slot.deaths >= _DEATHS_BEFORE_READY]:
                    self._console.say(
                        f"{' and '.join(stuck)} ended {_DEATHS_BEFORE_READY} times before everything was"
                        " ready: giving up; the lines above say why"
                    )
                    return False
                if time.monotonic() - said > _REPORT_MISSING_EVERY:
                    self._console.say(f"still waiting for {', '.join(missing)}")
                    said = time.monotonic()
        self._all_ready()
        return True

    def _watch(self) -> None:
        """Waits a moment, passes on what was written, and restarts the services that died."""
        self._pump()
        for slot in self._slots:
            process = slot.process
            if process is not None and process.ended():
                self._reap(process)
                delay = slot.vacate()
                self._console.say(
                    f"{slot.service.name} ended ({process.how_it_ended()}), is started again in {delay:g} s"
                )
            elif slot.is_due():
                self._fill(slot)

    def _fill(self, slot: Slot) -> None:
        self._selector.register(slot.fill(), selectors.EVENT_READ)

    def _pump(self) -> None:
        for key, _ in self._selector.select(_LONGEST_WAIT):
            if isinstance(key.fileobj, Process):
                self._pass_on(key.fileobj)
            else:
                self._signals.clear()

    def _pass_on(self, process: Process) -> None:
        lines, closed = process.read()
        self._console.lines(process.service.name, lines)
        if closed:
            self._selector.unregister(process)

    def _reap(self, process: Process) -> None:
        # A child that is left over must not keep its port.
        process.kill()
        self._console.lines(process.service.name, process.rest())
        if process in (key.fileobj for key in self._selector.get_map().values()):
            self._selector.unregister(process)
        process.close()

    def _bring_down(self) -> bool:
        """Ends all, the highest tier first; returns False when a second signal hurried the end."""
        self._console.say("ending everything (a second Ctrl-C hurries)")
        asked = max(1, self._signals.asked_to_end)
        for tier in reversed(self._tiers):
            self._end([slot for slot in self._slots if slot.service.tier == tier], asked)
        self._console.say("all ended")
        return self._signals.asked_to_end <= asked

    def _end(self, slots: Sequence[Slot], asked: int) -> None:
        since = time.monotonic()
        living = [slot.process for slot in slots if slot.process is not None]
        for process in living:
            process.terminate()
        killed: set[Process] = set()
        while living:
            for process in living:
                late = time.monotonic() - since > process.service.grace
                if (late or self._signals.asked_to_end > asked) and process not in killed:
                    killed.add(process)
                    process.kill()
                    self._console.say(f"{process.service.name} had to be killed")
            self._pump()
            for process in [process for process in living if process.ended()]:
                self._reap(process)
                living.remove(process)
