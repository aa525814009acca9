"""Each process reports every few seconds that it lives, and measures its clock against mongod's."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app.clock import WARN_OFFSET_SECONDS, Clock, monotonic
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.index_builds import IndexBuildGoesOn
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.version import __version__

log = get_logger(__name__)

REPORT_SECONDS = 5.0
#: A turn takes at most as long as it may wait for MongoDB: choosing a server, then a few commands over a
#: silent connection.
TURN_SECONDS = 180.0


class Presence(threading.Thread):
    """A thread of each process: it measures the clock, makes the indexes once, and reports the process."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        role: str,
        *,
        name: str = "",
        facts: Callable[[], Mapping[str, Any]] = dict,
        on_offset: Callable[[float], None] = lambda offset: None,
    ) -> None:
        """`facts` are added to each report; `on_offset` hears each measured offset in seconds."""
        super().__init__(name="presence", daemon=True)
        self._store = store
        self._clock = clock
        self._role = role
        self._node_name = name
        self._facts = facts
        self._on_offset = on_offset
        self._ended = threading.Event()
        self._reachable = True
        self._turned_at = monotonic()
        self._unexpected = UnexpectedErrors(
            metrics.heartbeat_failures,
            "heartbeat.failed",
            "A step of the heartbeat failed; the heartbeat continues",
            monotonic=monotonic,
        )

    def beat_once(self) -> None:
        """Measures and reports once. Raises a STORE_FAULT."""
        if self._clock.stale():
            self._measure()
        self._store.prepare()
        self._store.processes.report(
            self._role,
            name=self._node_name,
            version=__version__,
            clock_offset_seconds=self._clock.offset_seconds,
            clock_jump_seconds=self._clock.jump_seconds,
            **self._asked_facts(),
        )

    def _measure(self) -> None:
        jumped_before = self._clock.jump_seconds
        offset = self._store.synchronize(self._clock)
        metrics.clock_offset.set(offset)
        metrics.clock_jump.set(self._clock.jump_seconds)
        self._say_jump(jumped_before)
        if abs(offset) > WARN_OFFSET_SECONDS:
            log.warning(
                "clock.off",
                message="This host's clock is off mongod's; set both by NTP",
                offset_seconds=round(offset, 3),
            )
        try:
            self._on_offset(offset)
        except Exception as error:  # the broker may be away; the next measurement calls again
            self._unexpected.note("on_offset", error)

    def _asked_facts(self) -> Mapping[str, Any]:
        try:
            return self._facts()
        except Exception as error:  # a report without them says at least that the process lives
            self._unexpected.note("facts", error)
            return {}

    def _say_jump(self, before: float) -> None:
        """Logs once when mongod's clock jumps, and once when that is over."""
        jump, adopted = self._clock.jump_seconds, self._clock.adopted_seconds
        if adopted:
            log.warning(
                "clock.corrected",
                message="mongod's clock was set, and this host's agrees with it: this process follows it",
                moved_seconds=round(adopted, 3),
            )
        elif jump and not before:
            log.error(
                "clock.jumped",
                message="mongod's clock jumped; this process continues by monotonic time. Set the clock of"
                " MongoDB's host by NTP; if it is right, set this host's, and its time is followed",
                jump_seconds=round(jump, 3),
            )
        elif before and not jump:
            log.info("clock.back", message="mongod's clock agrees again", jump_seconds=round(before, 3))

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                self.beat_once()
                metrics.dependency_up.labels("mongodb").set(1)
                if not self._reachable:
                    log.info("mongodb.back", message="MongoDB answers again")
                self._reachable = True
            except IndexBuildGoesOn as error:
                metrics.dependency_up.labels("mongodb").set(1)
                log.warning(
                    "indexes.building",
                    message="This process waits for indexes; MongoDB works, and so do the older processes",
                    error=str(error),
                )
            except STORE_FAULTS as error:
                metrics.dependency_up.labels("mongodb").set(0)
                # Said once: every part that needs MongoDB says for itself what it cannot do.
                if self._reachable:
                    log.error(
                        "mongodb.unreachable", message="MongoDB does not answer", error=str(error)[:300]
                    )
                self._reachable = False
            except Exception as error:  # whatever it is: this thread is the only one that watches the clock
                self._unexpected.note("report", error)
                self._ended.wait(REPORT_SECONDS)
                continue
            self._turned_at = monotonic()
            self._ended.wait(REPORT_SECONDS)

    def trouble(self) -> str | None:
        """Says what hangs in this process; None if nothing does. A MongoDB that is away is not a reason to
        restart it."""
        age = monotonic() - self._turned_at
        return f"the process has not reported for {age:.0f} s" if age > TURN_SECONDS else None

    def stop(self) -> None:
        """Ends the thread, and removes the process's document if MongoDB can be reached at once."""
        self._ended.set()
        if self._reachable:
            try:
                self._store.processes.leave()
            except STORE_FAULTS as error:
                log.debug("node.stays", message="The node stays until its TTL", error=str(error)[:200])
