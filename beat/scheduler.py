"""The scheduler class that `celery -A scheduler_app beat` runs.

In a tick every duty gets its turn, and a fault of one does not stop the others. At SIGTERM or SIGINT beat
stops after the current page, and before the next one.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from celery.beat import Scheduler

from scheduler_app.assembly import assemble
from scheduler_app.beat.duties import Duty, duties
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.health.processes import TICK_SECONDS
from scheduler_app.health.startup import check_replica_set, serve_metrics_of, starting
from scheduler_app.loading import settle_heap
from scheduler_app.store import REJECTED
from scheduler_app.telemetry import get_logger, metrics

#: A page takes about a second. A page that takes longer waits for a server that does not answer.
GRACE_SECONDS = 2.0
#: While no tick ends for so long, beat leaves its partitions to others.
STUCK_SECONDS = 15.0


class GracefulShutdown:
    """Handles SIGTERM and SIGINT. A second signal, or one between two ticks, ends beat at once.

    Celery's own handler interrupts a tick anywhere: claimed schedules would then wait until their leases end,
    and events that were published but not yet marked would be published again. It also cleans up inside the
    signal handler, where it could wait forever for a lock that the interrupted code holds.
    """

    def __init__(self) -> None:
        self._requested = False
        self._in_tick = False

    def requested(self) -> bool:
        """Whether no further page is to be begun."""
        return self._requested

    def install(self) -> None:
        """Sets the handlers. Must be called in the main thread, after Celery has set its own."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGALRM, _exit)

    @contextmanager
    def around_tick(self) -> Iterator[None]:
        """Encloses a tick. Raises SystemExit at its end when the shutdown was requested meanwhile."""
        self._in_tick = True
        try:
            yield
        finally:
            self._in_tick = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._requested:
            raise SystemExit

    def _handle(self, *_: object) -> None:
        if self._requested or not self._in_tick:
            raise SystemExit
        self._requested = True
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)


def _exit(*_: object) -> None:
    raise SystemExit


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


class MongoScheduler(Scheduler):  # type: ignore[misc]
    """Does the duties of a tick (see `beat.duties`), and sends ordinary `beat_schedule` entries, too.

    Any number of beats may run: they share the schedules by claims, and there is no leader. Ordinary entries
    know no claims, so each beat sends them.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Celery also makes a `lazy` scheduler to print its banner: that one must not connect.
        self._duties: Tick | None = None
        self._last_tick: dict[str, datetime | float] = {}
        self._shutdown = GracefulShutdown()
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self.merge_inplace(self.app.conf.beat_schedule)
        with starting():
            self._start()
        settle_heap()
        self._shutdown.install()

    @property
    def _settings(self) -> Settings:
        settings: Settings = self.app.settings
        return settings

    def _start(self) -> None:
        settings = self._settings
        assembly = assemble(settings, self.app)
        check_replica_set(assembly.store)
        if not assembly.store.secret_box.encrypts:
            log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")
        self._duties = Tick(
            duties(assembly), now=clock.now, stopping=self._shutdown.requested, unavailable=assembly.faults
        )
        # Before the indexes: to make one waits for transactions, and all that comes after it does, too.
        self._abandoned_transactions = assembly.abandoned_transactions
        self._abandoned_transactions.start()
        self._heartbeat = assembly.heartbeat("beat", facts=lambda: self._last_tick)
        self._ticked_at = monotonic()
        serve_metrics_of(settings, self._trouble, metrics.Role.BEAT)
        self._heartbeat.start()
        self._partition_share = assembly.partition_share
        self._partition_share.start(self._is_stuck)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Does every duty once; returns the seconds until the next tick, 0 when there is more to do.

        Raises SystemExit when a signal has requested the shutdown.
        """
        started = monotonic()
        with self._shutdown.around_tick():
            ordinary: float = super().tick(*args, **kwargs)
            more = self._duties is not None and self._duties.run()
        took = monotonic() - started
        self._ticked_at = started + took
        metrics.tick_duration.observe(took)
        metrics.tick_at.set(clock.now().timestamp())
        self._last_tick = {"last_tick_at": clock.now(), "last_tick_seconds": round(took, 4)}
        if more:
            return 0.0
        return max(0.0, min(ordinary, self._settings.prequeuer_ticker_interval_seconds - took))

    def _is_stuck(self) -> bool:
        return monotonic() - self._ticked_at > STUCK_SECONDS

    def _trouble(self) -> str | None:
        age = monotonic() - self._ticked_at
        return f"no tick has ended for {age:.0f} s" if age > TICK_SECONDS else None

    def close(self) -> None:
        if self._duties is not None:
            self._partition_share.stop()
            self._abandoned_transactions.stop()
            self._heartbeat.stop()
        super().close()

    @property
    def info(self) -> str:
        return f"    . tick -> every {self._settings.prequeuer_ticker_interval_seconds:g} s at most"
