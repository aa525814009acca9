"""A process says that it lives, and keeps its clock against mongod's."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app.version import __version__
from scheduler_app.clock import WARN_OFFSET_SECONDS, Clock
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

REPORT_SECONDS = 5.0


class Presence(threading.Thread):
    """One thread a process: measures the clock, makes the indexes once, writes the process's node."""

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

    def beat_once(self) -> None:
        """Measures and reports once. Raises a STORE_FAULT."""
        if self._clock.stale():
            self._measure()
        self._store.prepare()
        self._store.nodes.report(
            self._role,
            name=self._node_name,
            version=__version__,
            clock_offset_seconds=self._clock.offset_seconds,
            **self._facts(),
        )

    def _measure(self) -> None:
        offset = self._store.synchronize(self._clock)
        metrics.clock_offset.set(offset)
        if abs(offset) > WARN_OFFSET_SECONDS:
            log.warning(
                "clock.off",
                message="This host's clock is off mongod's; set both by NTP",
                offset_seconds=round(offset, 3),
            )
        self._on_offset(offset)

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                self.beat_once()
                if not self._reachable:
                    log.info("mongodb.back", message="MongoDB answers again")
                self._reachable = True
            except STORE_FAULTS as error:
                # Said once: every part that needs MongoDB says for itself what it cannot do.
                if self._reachable:
                    log.error(
                        "mongodb.unreachable", message="MongoDB does not answer", error=str(error)[:300]
                    )
                self._reachable = False
            self._ended.wait(REPORT_SECONDS)

    def stop(self) -> None:
        """Ends the thread and takes the node away, if MongoDB can be reached at once."""
        self._ended.set()
        if self._reachable:
            try:
                self._store.nodes.leave()
            except STORE_FAULTS as error:
                log.debug("node.stays", message="The node stays until its TTL", error=str(error)[:200])
