"""Counts a process's failures by their causes in memory, and writes them at most once a second.

While nothing fails, nothing is written, and nothing is read for an event: one small question every few
seconds says that no cause is open.
"""

import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime
from itertools import islice

from scheduler_app.clock import monotonic
from scheduler_app.domain.cause import CauseKey, Tally
from scheduler_app.domain.states import FINAL, State
from scheduler_app.store import STORE_FAULTS
from scheduler_app.store.causes import Causes
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.logs import UnexpectedErrors

log = get_logger(__name__)

#: Causes in a second's write.
CAUSES_AT_ONCE = 500
#: Causes whose failures wait to be written. Those of more are not counted; beats find them by their events.
MAX_TALLIES = 10_000
#: How often it is asked which receivers fail, in seconds: while none is known to, and while some are.
LOOK_SECONDS = 5.0
LOOK_SECONDS_WHILE_FAILING = 1.0
#: A cause is written at most once in this time by a process.
WRITE_SECONDS = 1.0
#: Of more receivers the answer is long, and is asked for as rarely as if there were none.
MANY = 1_000


class CauseCounts:
    """Threads share it."""

    def __init__(self, store: Causes) -> None:
        self._store = store
        self._unexpected = UnexpectedErrors(
            metrics.worker_failures,
            "causes.failed",
            "Failures could not be counted for their causes; beats find them by their events",
            monotonic=monotonic,
        )
        self._tallies: dict[str, Tally] = {}
        self._dropped = 0
        #: The causes of each failing receiver that has not succeeded since its last failure.
        self._unanswered: dict[str, list[str]] = {}
        self._succeeded: dict[str, datetime] = {}
        self._look_at = float("-inf")
        self._write_at = float("-inf")
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._tallies)

    def note(self, records: Iterable[OutcomeRecord]) -> None:
        """Takes attempts that were recorded."""
        unanswered = self._unanswered
        for record in records:
            if record.cause is not None:
                self._count(record)
            elif unanswered and record.state is State.COMPLETED and record.origin in unanswered:
                with self._lock:
                    self._succeeded[record.origin] = record.ended_at

    def _count(self, record: OutcomeRecord) -> None:
        key, event = record.cause, record.event
        if key is not None:
            self.count(
                *(key, record.event_id, event.schedule_id if event else "", record.ended_at),
                str(record.attempt.get("error") or key.failure),
                tags=record.tags,
                is_first=record.attempt.get("number") == (event.attempts_before if event else 0) + 1,
                state=record.state,
            )

    def count(
        self,
        key: CauseKey,
        event_id: str,
        schedule_id: str,
        at: datetime,
        error: str,
        *,
        is_first: bool,
        state: State,
        tags: Collection[str] = (),
    ) -> None:
        """Takes one failed attempt, after which the event is in `state`."""
        with self._lock:
            tally = self._tallies.get(key.id)
            if tally is None:
                if len(self._tallies) >= MAX_TALLIES:
                    self._dropped += 1
                    return
                tally = self._tallies[key.id] = Tally(key, at, at)
            tally.add(
                *(event_id, schedule_id, at, error),
                tags=tags,
                is_first=is_first,
                gave_up=state in FINAL,
                is_dead=state is State.ERROR,
            )

    def write_now_and_then(self) -> None:
        """For processes without a thread that writes: what was counted within a second of the last write is
        written with the next failure. It raises nothing."""
        if monotonic() >= self._write_at:
            self._write_at = monotonic() + WRITE_SECONDS
            with suppress(*STORE_FAULTS):
                self.write()

    def write(self) -> None:
        """Writes what was counted, and which receivers have succeeded again. Raises a STORE_FAULT; nothing is
        lost then. Causes that cannot be written at all are dropped: beats find them by their events."""
        with self._lock:
            taken = [self._tallies.pop(each) for each in list(islice(self._tallies, CAUSES_AT_ONCE))]
            dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning(
                "causes.dropped",
                message="More causes fail than this worker counts; some failures are missing in their counts",
                count=dropped,
            )
        if taken:
            try:
                self._store.touch(taken)
            except STORE_FAULTS:
                self._put_back(taken)
                raise
            except Exception as error:  # kept, they would hold up all others in each turn
                self._unexpected.note("causes", error, causes=[tally.key.id for tally in taken[:10]])
        try:
            self._write_successes()
            if taken or monotonic() >= self._look_at:
                self._look()
        except STORE_FAULTS:
            raise
        except Exception as error:  # last runs are written whatever becomes of this
            self._unexpected.note("causes", error)

    def _put_back(self, taken: Iterable[Tally]) -> None:
        with self._lock:
            for tally in taken:
                later = self._tallies.get(tally.key.id)
                if later is not None:
                    tally.merge(later)
                self._tallies[tally.key.id] = tally

    def _write_successes(self) -> None:
        with self._lock:
            succeeded, self._succeeded = self._succeeded, {}
        found = {
            cause_id: at for name, at in succeeded.items() for cause_id in self._unanswered.get(name, ())
        }
        if found:
            # Lost where MongoDB is away: the receiver's next success says the same.
            self._store.answered(found)

    def _look(self) -> None:
        self._unanswered = self._store.unanswered()
        some = 0 < len(self._unanswered) <= MANY
        self._look_at = monotonic() + (LOOK_SECONDS_WHILE_FAILING if some else LOOK_SECONDS)
