"""Counts a process's attempts in memory, by minute, destination and tag, and adds them up in MongoDB every
few seconds.

Where an attempt is recorded it costs a row in memory; what writes adds them up before. What a worker has
counted in its last seconds is missing where it is killed; where MongoDB's answer to a write is lost, some is
counted twice.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
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
#: Attempts that wait to be added up, which is done each second. Those of more are missing in the figures.
MAX_ROWS: Final = 50_000
#: What is counted apart until it is written: tags and destinations together, of one minute. Attempts of more
#: are counted for the installation alone.
MAX_KEYS: Final = 5_000
#: Documents in one write.
WRITTEN_AT_ONCE: Final = 500
#: Tags of one tenant that are counted in an hour; attempts of others count for all else. People may give each
#: order a tag of its own, and each would be a document that is kept for months.
TAGS_AN_HOUR: Final = 2_000

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
        #: Of attempts: the event, the receiver, the tags, the state, the end, the lag and the duration.
        self._rows: list[tuple[str, str, Sequence[str], str, datetime, float | None, float | None]] = []
        self._dropped = 0
        self._counted: dict[_Key, FigurePart] = {}
        #: The tags that are counted in the newest hour that was seen, by tenant.
        self._tags: defaultdict[str, set[str]] = defaultdict(set)
        self._hour = datetime.min.replace(tzinfo=UTC)
        #: Taken to be written, and not written yet.
        self._owed: dict[tuple[FigureSubject, timedelta, datetime], FigurePart] = {}
        self._write_at = float("-inf")
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows) + len(self._counted) + len(self._owed)

    def note(self, records: Iterable[OutcomeRecord]) -> None:
        """Takes attempts that were recorded."""
        rows = [
            (
                *(record.event_id, record.origin, record.tags, record.state.value, record.ended_at),
                record.attempt.get("lag_ms"),
                record.attempt.get("duration_ms"),
            )
            for record in records
        ]
        with self._lock:
            room = MAX_ROWS - len(self._rows)
            self._rows += rows[:room]
            self._dropped += max(0, len(rows) - room)

    def write(self, *, at_once: bool = False) -> None:
        """Adds up what was noted, and writes it if it is time for that. For one thread. Raises a STORE_FAULT;
        nothing is lost then."""
        self._add_up()
        if not self._owed:
            if not at_once and monotonic() < self._write_at:
                return
            self._write_at = monotonic() + WRITE_SECONDS
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

    def _add_up(self) -> None:
        with self._lock:
            rows, self._rows = self._rows, []
            dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning(
                "figures.dropped",
                message="More attempts ended than this worker adds up; the figures lack some",
                count=dropped,
            )
        for event_id, receiver, tags, state, ended_at, lag_ms, duration_ms in rows:
            minute = ended_at.replace(second=0, microsecond=0)
            tenant = tenant_of(event_id)
            key: _Key = (tenant, receiver, self._counted_tags(tenant, tags, minute), minute)
            part = self._counted.get(key)
            if part is None:
                if len(self._counted) >= MAX_KEYS:
                    key = (key[0], "", (), minute)
                part = self._counted.setdefault(key, FigurePart(minute))
            part.add(state, lag_ms, duration_ms)

    def _counted_tags(self, tenant: str, tags: Sequence[str], minute: datetime) -> tuple[str, ...]:
        if minute >= self._hour + HOUR:
            self._hour = begin_of_part(minute, HOUR)
            self._tags.clear()
        known = self._tags[tenant]
        found = []
        for tag in tags:
            if tag in known or len(known) < TAGS_AN_HOUR:
                known.add(tag)
                found.append(tag)
        return tuple(found)

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
    return found + [FigureSubject(tenant, "tag", tag) for tag in tags]
