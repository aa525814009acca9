"""Writes what became of claimed events, in bulk and across batches, and retries until it is written."""

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from scheduler_app.clock import monotonic
from scheduler_app.domain.lateness import Expiry
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.events.claims import Expiration, Postponement
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.events.overlaps import UnsentOutcome
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.worker.capacity import Capacity, RecordingBacklog
from scheduler_app.worker.essential_thread import EssentialThread
from scheduler_app.worker.lease import Lease

log = get_logger(__name__)

GATHER_SECONDS = 0.003
RECORDS_AT_ONCE = 200
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WITHDRAWN = "Withdrawn: the schedule was changed or deleted"


class AttemptResult(NamedTuple):
    """How an attempt ended."""

    record: OutcomeRecord
    lease: Lease

    @property
    def event_id(self) -> str:
        return self.record.event_id


class GivenBack(NamedTuple):
    """A claimed event whose request was not made, or not waited for."""

    event_id: str
    lease: Lease


class Withdrawn(NamedTuple):
    """A claimed event that an edit, a pause, a deletion or a person has withdrawn."""

    event_id: str
    lease: Lease
    message: str = WITHDRAWN


class Delayed(NamedTuple):
    """A claimed event whose origin has no room for it now."""

    postponement: Postponement
    lease: Lease

    @property
    def event_id(self) -> str:
        return self.postponement.event_id


class Expired(NamedTuple):
    """A claimed event that is too late by a policy: no request was made."""

    event_id: str
    lease: Lease
    expiry: Expiry


class EndedUnsent(NamedTuple):
    """A claimed event that ends without its request, by a policy of its schedule."""

    ending: UnsentOutcome
    lease: Lease

    @property
    def event_id(self) -> str:
        return self.ending.event_id


Result = AttemptResult | GivenBack | Withdrawn | Delayed | Expired | EndedUnsent


class Recorder(EssentialThread):
    """One thread a process. Results are gathered for a few ms, so that many share one write; from the first
    request on, what happened is kept in memory until MongoDB has taken or refused it."""

    def __init__(
        self,
        store: Store,
        backlog: RecordingBacklog,
        capacity: Capacity,
        *,
        now: Callable[[], datetime],
        worker: str,
        recorded: Callable[[Sequence[OutcomeRecord]], None],
    ) -> None:
        """`recorded` is called with the outcomes that MongoDB has taken; it never raises."""
        super().__init__("recorder")
        self._tell_settled: Callable[[Sequence[str]], None] | None = None
        self._recorded = recorded
        self._outcomes = store.outcomes
        self._claims = store.claims
        self._expirations = store.expirations
        self._overlaps = store.overlaps
        self._backlog = backlog
        self._capacity = capacity
        self._now = now
        self._worker = worker
        self._queue: queue.SimpleQueue[Sequence[Result] | None] = queue.SimpleQueue()
        self._ended = threading.Event()

    def report_to(self, settled: Callable[[Sequence[str]], None]) -> None:
        """Sets what is called with events that this worker is done with. Call it before `start`."""
        self._tell_settled = settled

    def put(self, results: Sequence[Result]) -> None:
        metrics.unrecorded.inc(len(results))
        self._backlog.put(len(results), monotonic())
        self._queue.put(results)

    def hurry(self) -> None:
        """From now on an unreachable MongoDB is not waited for."""
        self._ended.set()

    def stop(self) -> None:
        """Ends the thread after what was put before, in a hurry."""
        self.hurry()
        self._queue.put(None)

    def work(self) -> None:
        while True:
            gathered, more = self._gather()
            if gathered:
                self._write(gathered)
            if not more:
                return

    def _gather(self) -> tuple[list[Result], bool]:
        first = self._queue.get()
        if first is None:
            return [], False
        gathered, until = list(first), monotonic() + GATHER_SECONDS
        while len(gathered) < RECORDS_AT_ONCE:
            try:
                results = self._queue.get(timeout=max(0.0, until - monotonic()))
            except queue.Empty:
                break
            if results is None:
                return gathered, False
            gathered += results
        return gathered, True

    def _write(self, results: Sequence[Result]) -> None:
        tries = 0
        while True:
            try:
                self._write_once(results)
                break
            except STORE_FAULTS as error:
                pause = BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS) - 1)]
                tries += 1
                log.warning(
                    "record.delayed",
                    message="Outcomes cannot be written; they are kept and written again",
                    count=len(results),
                    retry_in_seconds=pause,
                    error=str(error)[:300],
                )
                if self._ended.wait(pause):
                    log.error(
                        "record.abandoned",
                        message="The worker ends before MongoDB took these outcomes; they are sent again",
                        event_ids=[result.event_id for result in results],
                    )
                    break
            except Exception as error:  # one outcome's fault must not lose the others
                if len(results) == 1:
                    log.exception(
                        "record.impossible",
                        message="An outcome cannot be written; recovery takes its event up",
                        event_id=results[0].event_id,
                        error=str(error)[:300],
                    )
                    break
                for result in results:
                    self._write([result])
                return
        settled: defaultdict[Lease, list[str]] = defaultdict(list)
        for result in results:
            settled[result.lease].append(result.event_id)
        for lease, ids in settled.items():
            lease.settle(ids)
        if self._tell_settled is not None:
            self._tell_settled(list(chain.from_iterable(settled.values())))
        self._backlog.written(len(results))
        self._capacity.release(len(results))
        metrics.unrecorded.dec(len(results))

    def _write_once(self, results: Sequence[Result]) -> None:
        records = [result.record for result in results if isinstance(result, AttemptResult)]
        if records:
            self._record(records)
        if len(records) < len(results):
            self._write_the_unsent(results)

    def _record(self, records: Sequence[OutcomeRecord]) -> None:
        refused = self._outcomes.record(records)
        if refused:
            self._outcomes.record_late(refused)
            log.warning(
                "record.late",
                message="These outcomes came after their claims were lost; they are kept as late",
                event_ids=[record.event_id for record in refused],
            )
            records = [record for record in records if record not in refused]
        self._recorded(records)

    def _write_the_unsent(self, results: Sequence[Result]) -> None:
        now = self._now()
        given_back: defaultdict[str, list[str]] = defaultdict(list)
        voided: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for result in results:
            if isinstance(result, GivenBack):
                given_back[result.lease.token].append(result.event_id)
            elif isinstance(result, Withdrawn):
                voided[result.lease.token, result.message].append(result.event_id)
        for token, ids in given_back.items():
            log.info("deliver.given_back", message="Not finished here; given back", event_ids=ids)
            self._claims.give_back(ids, token, now, f"Given back by {self._worker}")
        for (token, message), ids in voided.items():
            self._claims.cancel_claimed(ids, token, now, message)
        late = [result for result in results if isinstance(result, Expired)]
        if late:
            expirations = [Expiration(each.event_id, each.lease.token, each.expiry.message) for each in late]
            self._expirations.expire_claimed(expirations, now)
            for each in late:
                metrics.expired.labels(each.expiry.policy).inc()
        postponed = [result.postponement for result in results if isinstance(result, Delayed)]
        if postponed:
            self._claims.postpone(postponed, now)
            metrics.postponed.inc(sum(each.waits_for is None for each in postponed))
        endings = [result.ending for result in results if isinstance(result, EndedUnsent)]
        if endings:
            self._overlaps.end(endings, now)
