"""The scheduler class that `celery -A scheduler_app beat` runs."""

from collections.abc import Callable
from typing import Any

from celery.beat import Scheduler

from beat.dispatcher import Dispatcher
from beat.ending import Ending
from beat.expander import Expander
from beat.inspector import Inspector
from beat.owed_expander import OwedExpander
from beat.pruner import Pruner
from beat.recalendarer import Recalendarer
from beat.recoverer import Recoverer
from beat.rezoner import Rezoner
from scheduler_app.broker import CeleryPublisher
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.health import TICK_SECONDS
from scheduler_app.health.startup import check_replica_set, serve_metrics_of, starting
from scheduler_app.store import REJECTED, STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.dispatch import Dispatch
from scheduler_app.usecases.expansion import Expansion
from scheduler_app.usecases.heartbeat import Presence
from scheduler_app.usecases.inspection import Inspection
from scheduler_app.usecases.owed_expansion import OwedExpansion
from scheduler_app.usecases.recalendaring import Recalendaring
from scheduler_app.usecases.recovery import Recovery
from scheduler_app.usecases.rezoning import Rezoning

log = get_logger(__name__)

Duty = Callable[[], bool]


class MongoScheduler(Scheduler):  # type: ignore[misc]
    """Expands schedules from MongoDB and publishes what is due; ordinary `beat_schedule` entries work beside.

    Any number of them may run: they share the schedules by claims, and there is no leader. (Ordinary entries
    know no claims: each beat sends them.)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # `lazy` is the banner asking; it must not connect.
        self._duties: list[tuple[str, Duty]] = []
        self._troubled: set[str] = set()
        self._last_tick: dict[str, Any] = {}
        self._unavailable: tuple[type[Exception], ...] = STORE_FAULTS
        self._ending = Ending()
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self.merge_inplace(self.app.conf.beat_schedule)
        with starting():
            self._start()
        self._ending.listen()

    @property
    def _settings(self) -> Settings:
        found: Settings = self.app.settings
        return found

    def _start(self) -> None:
        settings = self._settings
        store, publisher = Store(settings), CeleryPublisher(self.app)
        self._unavailable = (*STORE_FAULTS, *publisher.unavailable)
        check_replica_set(store)
        if not store.envelope.encrypts:
            log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")
        ended = self._ending.asked
        dispatcher = Dispatcher(Dispatch(store, publisher, horizon_seconds=settings.horizon_seconds), ended)
        expansion = Expansion(store, timeframe_seconds=settings.timeframe_seconds)
        expander = Expander(expansion, lambda: self._do("dispatch", lambda: dispatcher.run(clock.now)), ended)
        owed_expander = OwedExpander(OwedExpansion(store))
        recoverer = Recoverer(Recovery(store), publisher.queue_lengths)
        recalendarer = Recalendarer(Recalendaring(store))
        rezoner = Rezoner(Rezoning(store))
        inspector = Inspector(Inspection(store))
        pruner = Pruner(store, retention_days=settings.retention_days)
        self._duties = [
            ("rezone", lambda: rezoner.run(clock.now)),
            ("expand", lambda: expander.run(clock.now)),
            ("dispatch", lambda: dispatcher.run(clock.now)),
            ("recalendar", lambda: recalendarer.run(clock.now)),
            ("owed", lambda: owed_expander.run(clock.now)),
            ("recover", lambda: recoverer.run(clock.now)),
            ("inspect", lambda: inspector.run(clock.now)),
            ("prune", lambda: pruner.run(clock.now)),
        ]
        self._presence = Presence(store, clock, "beat", facts=lambda: self._last_tick)
        self._ticked_at = monotonic()
        serve_metrics_of(settings, self._trouble, metrics.Role.BEAT)
        self._presence.start()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Does every duty once; returns the seconds until the next tick, 0 when there is more to do.

        Raises SystemExit when a signal asked beat to end.
        """
        started = monotonic()
        with self._ending.working():
            ordinary: float = super().tick(*args, **kwargs)
            more = False
            for name, duty in self._duties:
                if not self._ending.asked():
                    more |= self._do(name, duty)
        took = monotonic() - started
        self._ticked_at = started + took
        metrics.tick_duration.observe(took)
        metrics.tick_at.set(clock.now().timestamp())
        self._last_tick = {"last_tick_at": clock.now(), "last_tick_seconds": round(took, 4)}
        if more:
            return 0.0
        return max(0.0, min(ordinary, self._settings.prequeuer_ticker_interval_seconds - took))

    def _do(self, name: str, duty: Duty) -> bool:
        """One duty, which may fail alone: a dead MongoDB or Redis makes it come back, and never ends beat."""
        try:
            more = duty()
        except self._unavailable as error:
            if name not in self._troubled:
                log.error(
                    f"{name}.unavailable",
                    message="MongoDB or the broker does not answer; this duty is tried again each tick",
                    error=str(error)[:300],
                )
            self._troubled.add(name)
            return False
        except REJECTED:
            log.exception(
                f"{name}.rejected",
                message="MongoDB rejects a command of this duty; it is tried again next tick",
            )
            return False
        except Exception:  # a fault of ours in one duty must not end the others
            log.exception(f"{name}.failed", message="A duty of the tick failed; it is tried again next tick")
            return False
        if name in self._troubled:
            self._troubled.discard(name)
            log.info(f"{name}.back", message="This duty works again")
        return more

    def _trouble(self) -> str | None:
        age = monotonic() - self._ticked_at
        return f"no tick has ended for {age:.0f} s" if age > TICK_SECONDS else None

    def close(self) -> None:
        if self._duties:
            self._presence.stop()
        super().close()

    @property
    def info(self) -> str:
        return f"    . tick -> every {self._settings.prequeuer_ticker_interval_seconds:g} s at most"
