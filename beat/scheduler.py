"""The scheduler class that `celery -A scheduler_app beat` runs."""

from datetime import datetime
from typing import Any

from celery.beat import Scheduler

from scheduler_app.assembly import assemble
from scheduler_app.beat.duties import duties
from scheduler_app.beat.shutdown import GracefulShutdown
from scheduler_app.beat.tick import Tick
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.health.fleet import TICK_SECONDS
from scheduler_app.health.startup import check_replica_set, serve_metrics_of, starting
from scheduler_app.loading import settle_heap
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)


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
        made = assemble(settings, self.app)
        check_replica_set(made.store)
        if not made.store.secret_box.encrypts:
            log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")
        self._duties = Tick(
            duties(made), now=clock.now, stopping=self._shutdown.requested, unavailable=made.faults
        )
        self._heartbeat = made.heartbeat("beat", facts=lambda: self._last_tick)
        self._ticked_at = monotonic()
        serve_metrics_of(settings, self._trouble, metrics.Role.BEAT)
        self._heartbeat.start()

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

    def _trouble(self) -> str | None:
        age = monotonic() - self._ticked_at
        return f"no tick has ended for {age:.0f} s" if age > TICK_SECONDS else None

    def close(self) -> None:
        if self._duties is not None:
            self._heartbeat.stop()
        super().close()

    @property
    def info(self) -> str:
        return f"    . tick -> every {self._settings.prequeuer_ticker_interval_seconds:g} s at most"
