"""Starts the parts tier by tier, starts again what dies, and ends them in the reverse order."""

import selectors
import time
from collections.abc import Callable, Sequence

from scheduler_app.cli.up.supervisor.console import Console
from scheduler_app.cli.up.supervisor.process import Process
from scheduler_app.cli.up.supervisor.service import Part
from scheduler_app.cli.up.supervisor.signals import Signals
from scheduler_app.cli.up.supervisor.slot import Seat

#: A part that dies this often before all are ready will not come up: then nothing is kept running.
_DEATHS_BEFORE_READY = 3
_LONGEST_WAIT = 0.2
_SAY_WHAT_IS_MISSING_EVERY = 30.0


class Supervisor:
    """One thread, no locks: everything happens between two calls of `select`."""

    def __init__(self, parts: Sequence[Part], console: Console, all_ready: Callable[[], None]) -> None:
        self._seats = [Seat(part) for part in parts]
        self._tiers = sorted({part.tier for part in parts})
        self._console = console
        self._all_ready = all_ready
        self._selector = selectors.DefaultSelector()
        self._signals = Signals()

    def run(self) -> int:
        """Until a signal asks for the end; gives the exit status, 0 when the end was in order.

        To be called from the main thread.
        """
        with self._signals, self._selector:
            self._selector.register(self._signals, selectors.EVENT_READ)
            in_order = False
            try:
                in_order = self._bring_up()
                while in_order and not self._is_to_end():
                    self._keep()
            finally:
                in_order = self._bring_down() and in_order
        return 0 if in_order else 1

    def _is_to_end(self) -> bool:
        return self._signals.asked_to_end > 0 or self._console.lost

    def _bring_up(self) -> bool:
        """False when a part does not come up; true also when the end is asked for before all have."""
        for tier in self._tiers:
            seats = [seat for seat in self._seats if seat.part.tier <= tier]
            for seat in seats:
                if seat.part.tier == tier:
                    self._fill(seat)
            said = time.monotonic()
            while missing := [seat.part.name for seat in seats if not seat.is_ready()]:
                self._keep()
                if self._is_to_end():
                    return True
                if stuck := [seat.part.name for seat in seats if seat.deaths >= _DEATHS_BEFORE_READY]:
                    self._console.say(
                        f"{' and '.join(stuck)} ended {_DEATHS_BEFORE_READY} times before everything was"
                        " ready: giving up; the lines above say why"
                    )
                    return False
                if time.monotonic() - said > _SAY_WHAT_IS_MISSING_EVERY:
                    self._console.say(f"still waiting for {', '.join(missing)}")
                    said = time.monotonic()
        self._all_ready()
        return True

    def _keep(self) -> None:
        """Waits a moment, passes on what was written, and replaces what died."""
        self._pump()
        for seat in self._seats:
            process = seat.process
            if process is not None and process.ended():
                self._clear_away(process)
                delay = seat.vacate()
                self._console.say(
                    f"{seat.part.name} ended ({process.how_it_ended()}), is started again in {delay:g} s"
                )
            elif seat.is_due():
                self._fill(seat)

    def _fill(self, seat: Seat) -> None:
        self._selector.register(seat.fill(), selectors.EVENT_READ)

    def _pump(self) -> None:
        for key, _ in self._selector.select(_LONGEST_WAIT):
            if isinstance(key.fileobj, Process):
                self._pass_on(key.fileobj)
            else:
                self._signals.clear()

    def _pass_on(self, process: Process) -> None:
        lines, closed = process.read()
        self._console.lines(process.part.name, lines)
        if closed:
            self._selector.unregister(process)

    def _clear_away(self, process: Process) -> None:
        # What it had forked must not keep its port.
        process.kill()
        self._console.lines(process.part.name, process.rest())
        if process in (key.fileobj for key in self._selector.get_map().values()):
            self._selector.unregister(process)
        process.close()

    def _bring_down(self) -> bool:
        """Ends all, the highest tier first; false when the end was hurried by a second signal."""
        self._console.say("ending everything (a second Ctrl-C hurries)")
        asked = max(1, self._signals.asked_to_end)
        for tier in reversed(self._tiers):
            self._end([seat for seat in self._seats if seat.part.tier == tier], asked)
        self._console.say("all ended")
        return self._signals.asked_to_end <= asked

    def _end(self, seats: Sequence[Seat], asked: int) -> None:
        since = time.monotonic()
        living = [seat.process for seat in seats if seat.process is not None]
        for process in living:
            process.terminate()
        killed: set[Process] = set()
        while living:
            for process in living:
                late = time.monotonic() - since > process.part.grace
                if (late or self._signals.asked_to_end > asked) and process not in killed:
                    killed.add(process)
                    process.kill()
                    self._console.say(f"{process.part.name} had to be killed")
            self._pump()
            for process in [process for process in living if process.ended()]:
                self._clear_away(process)
                living.remove(process)
