"""Starts the services tier by tier, restarts those that die, and ends them in reverse order."""

import selectors
import time
from collections.abc import Callable, Sequence

from scheduler_app.cli.up.supervisor.console import Console
from scheduler_app.cli.up.supervisor.process import Process
from scheduler_app.cli.up.supervisor.service import Service
from scheduler_app.cli.up.supervisor.signals import Signals
from scheduler_app.cli.up.supervisor.slot import Slot

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
