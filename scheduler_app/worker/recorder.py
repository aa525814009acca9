"""Writes what became of claimed events, in bulk and across batches, and retries until it is written."""

import threading
from collections import OrderedDict, defaultdict, deque
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

#: How long outcomes are gathered for one write while this worker holds other events, too. One by one, 100
#: outcomes a second took more than half of mongod's time. It is also how much longer an outcome can be lost
#: with its worker, and its request repeated.
GATHER_SECONDS = 0.05
#: The same for what somebody waits for.
GATHER_AWAITED_SECONDS = 0.003
RECORDS_AT_ONCE = 200
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WITHDRAWN = "Withdrawn: the schedule was changed or deleted"


class AttemptResult(NamedTuple):
    """How an attempt ended."""

    record: OutcomeRecord
    lease: Lease
    is_awaited: bool = False
    """Whether other runs of its schedule are judged by its end."""

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


class _Gathered:
    """Results that wait to be written, by origin: those of one origin that come by the thousand do not keep
    back the others'. Thread-safe."""

    def __init__(self, held: Callable[[], int]) -> None:
        """`held`: how many events this worker has, these included."""
        self._held = held
        self._by_origin: OrderedDict[str, deque[Result]] = OrderedDict()
        self._count = 0
        self._since = 0.0
        self._is_awaited = False
        self._at_once = False
        self._ended = False
        self._changed = threading.Condition()

    def put(self, results: Sequence[Result], now: float) -> None:
        """`now` is monotonic."""
        with self._changed:
            if not self._count:
                self._since = now
            for result in results:
                # What was not sent is rare, and its origin unknown here.
                origin = result.record.origin if isinstance(result, AttemptResult) else ""
                if origin not in self._by_origin:
                    self._by_origin[origin] = deque()
                self._by_origin[origin].append(result)
                self._is_awaited |= not isinstance(result, AttemptResult) or result.is_awaited
            was_empty, self._count = not self._count, self._count + len(results)
            if was_empty or self._seconds() < GATHER_SECONDS:  # else its thread sleeps on
                self._changed.notify()

    def take(self) -> Sequence[Result]:
        """Waits for results, gathers others, and takes up to RECORDS_AT_ONCE, in turn among their origins;
        none at the end."""
        with self._changed:
            while not self._count and not self._ended:
                self._changed.wait()
            while self._count and (left := self._since + self._seconds() - monotonic()) > 0:
                self._changed.wait(left)
            taken: list[Result] = []
            while self._count and len(taken) < RECORDS_AT_ONCE:
                origin, waiting = self._by_origin.popitem(last=False)
                taken.append(waiting.popleft())
                self._count -= 1
                if waiting:
                    self._by_origin[origin] = waiting
            self._is_awaited &= bool(self._count)
            return taken

    def stop_gathering(self) -> None:
        """From now on everything is written as it comes."""
        with self._changed:
            self._at_once = True
            self._changed.notify()

    def end(self) -> None:
        with self._changed:
            self._at_once = self._ended = True
            self._changed.notify()

    def _seconds(self) -> float:
        """How long what is here is gathered. Alone, it has nothing to wait for."""
        if self._at_once or self._count >= min(RECORDS_AT_ONCE, self._held()):
            return 0.0
        return GATHER_AWAITED_SECONDS if self._is_awaited else GATHER_SECONDS


class Recorder(EssentialThread):
    """One thread a process. Results are gathered for some ms, so that many share one write; from the first
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
        self._gathered = _Gathered(lambda: capacity.held)
        self._ended = threading.Event()

    def report_to(self, settled: Callable[[Sequence[str]], None]) -> None:
        """Sets what is called with events that this worker is done with. Call it before `start`."""
        self._tell_settled = settled

    def put(self, results: Sequence[Result]) -> None:
        if not results:
            return
        now = monotonic()
        metrics.unrecorded.inc(len(results))
        self._backlog.put(len(results), now)
        self._gathered.put(results, now)

    def stop_gathering(self) -> None:
        """From now on everything is written as it comes: the worker is stopping."""
        self._gathered.stop_gathering()

    def hurry(self) -> None:
        """From now on an unreachable MongoDB is not waited for."""
        self._ended.set()

    def stop(self) -> None:
        """Ends the thread after what was put before, in a hurry."""
        self.hurry()
        self._gathered.end()

    def work(self) -> None:
        while results := self._gathered.take():
            self._write(results)

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
