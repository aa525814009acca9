"""Counts a process's attempts in memory, by minute, destination and tag, and adds them up in MongoDB every
few seconds.

An attempt costs an entry in a dictionary and no write of its own. What a worker has counted in its last
seconds is missing where it is killed; where MongoDB's answer to a write is lost, some is counted twice.
"""

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.domain.figures import HOUR, MINUTE, FigurePart, FigureSubject, begin_of_part
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.ids import name_of, tenant_of
from scheduler_app.store import STORE_FAULTS
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.figure_counters import FigureCounters
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.logs import UnexpectedErrors

log = get_logger(__name__)

#: How often what was counted is written.
WRITE_SECONDS: Final = 5.0
#: What is counted apart until it is written: tags and destinations together, of one minute. Attempts of more
#: are counted for the installation alone.
MAX_KEYS: Final = 5_000
#: Documents in one write.
WRITTEN_AT_ONCE: Final = 500
#: Tags of one schedule that are counted: it may have more.
TAGS_COUNTED: Final = 20

#: The tenant, the receiver and the tags of attempts, and their minute.
_Key = tuple[str, str, tuple[str, ...], datetime]


class FigureCounts:
    """Threads share it."""

    def __init__(self, store: FigureCounters) -> None:
        self._store = store
        self._unexpected = UnexpectedErrors(
            metrics.worker_failures,
            "figures.failed",
            "Figures of attempts could not be written; they are missing in the charts",
            monotonic=monotonic,
        )
        self._counted: dict[_Key, FigurePart] = {}
        #: Taken to be written, and not written yet.
        self._owed: dict[tuple[FigureSubject, timedelta, datetime], FigurePart] = {}
        self._write_at = float("-inf")
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._counted) + len(self._owed)

    def note(self, records: Iterable[OutcomeRecord]) -> None:
        """Takes attempts that were recorded."""
        with self._lock:
            for record in records:
                minute = record.ended_at.replace(second=0, microsecond=0)
                key = (tenant_of(record.event_id), record.origin, tuple(record.tags), minute)
                part = self._counted.get(key)
                if part is None:
                    if len(self._counted) >= MAX_KEYS:
                        key = (key[0], "", (), minute)
                    part = self._counted.setdefault(key, FigurePart(minute))
                attempt = record.attempt
                part.add(record.state.value, attempt.get("lag_ms"), attempt.get("duration_ms"))

    def write(self, *, at_once: bool = False) -> None:
        """Writes what was counted, if it is time for it. Raises a STORE_FAULT; nothing is lost then."""
        if not self._owed:
            if not at_once and monotonic() < self._write_at:
                return
            self._write_at = monotonic() + WRITE_SECONDS
            with self._lock:
                counted, self._counted = self._counted, {}
            for what, part in counted.items():
                self._owe(what, part)
        while taken := list(islice(self._owed, WRITTEN_AT_ONCE)):
            try:
                self._store.add((key[0], key[1], self._owed[key]) for key in taken)
            except STORE_FAULTS:
                raise
            except Exception as error:  # kept, it would hold up all others in each turn
                self._unexpected.note("figures", error)
            for key in taken:
                del self._owed[key]

    def _owe(self, what: _Key, part: FigurePart) -> None:
        tenant, receiver, tags, _ = what
        for subject in _subjects(tenant, receiver, tags):
            for width in (MINUTE, HOUR) if subject.has_minutes else (HOUR,):
                at = begin_of_part(part.at, width)
                self._owed.setdefault((subject, width, at), FigurePart(at)).merge(part)


def _subjects(tenant: str, receiver: str, tags: Sequence[str]) -> list[FigureSubject]:
    found = [FigureSubject(tenant)]
    destination = destination_of_key(receiver)
    if destination is not None:
        found.append(FigureSubject(tenant, "destination", name_of(destination)))
    return found + [FigureSubject(tenant, "tag", tag) for tag in tags[:TAGS_COUNTED]]
