"""One tick of beat: every duty gets its turn, and a fault of one does not stop the others."""

from collections.abc import Callable, Sequence
from datetime import datetime

from scheduler_app.beat.duties import Duty
from scheduler_app.clock import monotonic
from scheduler_app.store import REJECTED
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)


class Tick:
    """Runs the duties, and remembers between ticks when each is due again and which of them fail."""

    def __init__(
        self,
        duties: Sequence[Duty],
        *,
        now: Callable[[], datetime],
        stopping: Callable[[], bool],
        unavailable: tuple[type[Exception], ...],
    ) -> None:
        """`stopping`: whether no further page is to be begun. `unavailable`: what MongoDB and the broker
        raise when they do not answer."""
        self._duties = duties
        self._now = now
        self._stopping = stopping
        self._unavailable = unavailable
        self._due_at: dict[str, float] = {}
        self._failing: set[str] = set()

    def run(self) -> bool:
        """Does every duty that is due; returns True when one of them has more to do."""
        more = False
        for duty in self._duties:
            if not self._stopping():
                more |= self._do(duty)
        return more

    def _do(self, duty: Duty) -> bool:
        """Runs one duty. Whatever it raises, it is tried again in the next tick, and beat goes on."""
        if monotonic() < self._due_at.get(duty.name, 0.0):
            return False
        try:
            more = self._take_turn(duty)
        except self._unavailable as error:
            if duty.name not in self._failing:
                log.error(
                    f"{duty.name}.unavailable",
                    message="MongoDB or the broker does not answer; this duty is tried again each tick;"
                    f" until then {duty.while_failing}",
                    error=str(error)[:300],
                )
            self._failing.add(duty.name)
            return False
        except REJECTED:
            log.exception(
                f"{duty.name}.rejected",
                message="MongoDB rejects a command of this duty; it is tried again next tick;"
                f" until then {duty.while_failing}",
            )
            return False
        except Exception:  # a defect in one duty must not end the others
            log.exception(
                f"{duty.name}.failed",
                message="This duty failed by an unexpected error; it is tried again next tick;"
                f" until then {duty.while_failing}",
            )
            return False
        if duty.name in self._failing:
            self._failing.discard(duty.name)
            log.info(f"{duty.name}.back", message="This duty works again")
        if not more:
            self._due_at[duty.name] = monotonic() + duty.period
        return more

    def _take_turn(self, duty: Duty) -> bool:
        """Works on pages until nothing is left or the duty's turn is over; True when there is more."""
        if duty.wanted is not None and not duty.wanted(self._now()):
            return False
        began = monotonic()
        while not self._stopping():
            if not duty.page(self._now()):
                return False
            if duty.between_pages is not None:
                self._do(duty.between_pages)
            if monotonic() - began >= duty.turn:
                return True
        return False
