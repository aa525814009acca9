"""Writes outcomes in bulk, across batches, and never gives one up."""

import queue
import threading
from collections.abc import Sequence
from typing import NamedTuple

from scheduler_app.clock import monotonic
from scheduler_app.delivery.batch import ClaimedBatch
from scheduler_app.delivery.essential import EssentialThread
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.outcomes import Record
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

GATHER_SECONDS = 0.003
RECORDS_AT_ONCE = 200
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Outcome(NamedTuple):
    record: Record
    batch: ClaimedBatch


class Recorder(EssentialThread):
    """One thread a process. Outcomes are gathered for a few ms, so that many share one write; from the first
    request on, what happened is kept in memory until MongoDB has taken or refused it."""

    def __init__(self, store: Store) -> None:
        super().__init__("recorder")
        self._outcomes = store.outcomes
        self._queue: queue.SimpleQueue[Sequence[Outcome] | None] = queue.SimpleQueue()
        self._ended = threading.Event()

    def put(self, outcomes: Sequence[Outcome]) -> None:
        metrics.unrecorded.inc(len(outcomes))
        self._queue.put(outcomes)

    def stop(self) -> None:
        """Ends the thread after what was put before. An unreachable MongoDB no longer holds it."""
        self._ended.set()
        self._queue.put(None)

    def work(self) -> None:
        while True:
            gathered, more = self._gather()
            if gathered:
                self._write(gathered)
            if not more:
                return

    def _gather(self) -> tuple[list[Outcome], bool]:
        first = self._queue.get()
        if first is None:
            return [], False
        gathered, until = list(first), monotonic() + GATHER_SECONDS
        while len(gathered) < RECORDS_AT_ONCE:
            try:
                outcomes = self._queue.get(timeout=max(0.0, until - monotonic()))
            except queue.Empty:
                break
            if outcomes is None:
                return gathered, False
            gathered += outcomes
        return gathered, True

    def _write(self, outcomes: Sequence[Outcome]) -> None:
        tries = 0
        while True:
            try:
                self._write_once(outcomes)
                break
            except STORE_FAULTS as error:
                pause = BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS) - 1)]
                tries += 1
                log.warning(
                    "record.delayed",
                    message="Outcomes cannot be written; they are kept and written again",
                    count=len(outcomes),
                    retry_in_seconds=pause,
                    error=str(error)[:300],
                )
                if self._ended.wait(pause):
                    log.error(
                        "record.abandoned",
                        message="The worker ends before MongoDB took these outcomes; they are sent again",
                        event_ids=[outcome.record.event_id for outcome in outcomes],
                    )
                    break
            except Exception as error:  # one outcome's fault must not take the others along
                if len(outcomes) == 1:
                    log.exception(
                        "record.impossible",
                        message="An outcome cannot be written; recovery takes its event up",
                        event_id=outcomes[0].record.event_id,
                        error=str(error)[:300],
                    )
                    break
                for outcome in outcomes:
                    self._write([outcome])
                return
        for outcome in outcomes:
            outcome.batch.settle()
        metrics.unrecorded.dec(len(outcomes))

    def _write_once(self, outcomes: Sequence[Outcome]) -> None:
        refused = self._outcomes.record([outcome.record for outcome in outcomes])
        if refused:
            self._outcomes.record_late(refused)
            log.warning(
                "record.late",
                message="These outcomes came after their claims were lost; they are kept as late",
                event_ids=[record.event_id for record in refused],
            )
