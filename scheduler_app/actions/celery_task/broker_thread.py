"""One broker of another application: publishes tasks, and looks for the results that are waited for."""

import queue
import threading
from collections.abc import Callable

from scheduler_app.actions.celery_task.application import Application, Unsendable
from scheduler_app.actions.celery_task.asked import Asked, Told, arguments_for, headers_for
from scheduler_app.actions.celery_task.redaction import redacted
from scheduler_app.actions.celery_task.results import Results
from scheduler_app.actions.executor import Outcome
from scheduler_app.clock import monotonic
from scheduler_app.domain.broker_tls import PLAIN_TLS, BrokerTls
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.text import one_line
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: How often results are looked for while tasks are waited for, in seconds.
POLL_SECONDS = 0.25
REASON_CHARACTERS = 500


class BrokerThread(threading.Thread):
    """Takes attempts in their order. Whatever the broker does, only attempts for it wait, and the executor
    ends those at their time: what is told later is dropped there."""

    def __init__(
        self,
        name: str,
        url: str,
        backend: str | None,
        tell: Callable[[Told], None],
        tls: BrokerTls = PLAIN_TLS,
    ) -> None:
        """`url` and `backend` (where results are) are URLs, `tls` is for both; `tell` takes how each attempt
        ended."""
        super().__init__(name=f"celery-tasks-{name}", daemon=True)
        self._tell = tell
        self._application = Application(url, backend, tls)
        self._results = Results(self._application)
        self._asked: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._stopped = False
        self._first = 0
        self._looks_at = 0.0
        self.knows_no_results = False
        """Whether the result backend did not answer when it was last asked."""

    def put(self, asked: Asked) -> None:
        self._asked.put(asked)

    def drop_before(self, serial: int) -> None:
        """Sends none of the attempts with an earlier serial: they were interrupted, and others have their
        events."""
        self._first = serial

    def stop(self) -> None:
        """Ends the thread after the call that it is amid."""
        self._stopped = True
        self._asked.put(None)

    def run(self) -> None:
        try:
            while not self._stopped:
                try:
                    asked = self._asked.get(timeout=POLL_SECONDS if self._results.waited_for else None)
                except queue.Empty:
                    asked = None
                now = monotonic()
                if asked is not None and asked.until > now and asked.serial >= self._first:
                    self._take(asked)
                # However many attempts come in: each look asks for all results that are waited for.
                if self._results.waited_for and now >= self._looks_at:
                    self._looks_at = now + POLL_SECONDS
                    self._look(now)
        finally:
            self._application.close()

    def _take(self, asked: Asked) -> None:
        try:
            told = self._send(asked)
        except InvalidField as error:
            told = _failed(asked, error.message, Outcome.PERMANENT)
        except Unsendable as error:
            told = _failed(asked, f"the task cannot be sent: {error}", Outcome.PERMANENT)
        except self._application.faults as error:
            told = _failed(asked, f"the broker did not take the task: {error}", Outcome.RETRY)
        except Exception as error:  # a bug that one task triggers must not end the others
            log.exception("celery_task.broken", message="A task breaks our code", event_id=asked.event.id)
            told = _failed(asked, f"{type(error).__name__}: {error}", Outcome.PERMANENT)
        if told is not None:
            self._tell(told)

    def _send(self, asked: Asked) -> Told | None:
        """None when the task was sent, and is waited for."""
        if asked.action.wait and asked.may_have_been_sent and (ended := self._results.of_earlier(asked)):
            return ended
        args, kwargs = arguments_for(asked)
        self._application.send(asked.event.id, asked.action, args, kwargs, headers_for(asked))
        if asked.action.wait:
            self._results.wait_for(asked)
            return None
        return Told(asked.serial, asked.event.id, Outcome.SUCCESS)

    def _look(self, now: float) -> None:
        try:
            ended = self._results.look(now)
        except self._application.faults as error:
            if not self.knows_no_results:  # once, and not at each look
                log.warning(
                    "celery_task.results_unknown",
                    message="A result backend does not answer; tasks that are waited for are asked for again",
                    broker=self.name,
                    error=one_line(str(error))[:300],
                )
            self.knows_no_results = True
            return
        if self.knows_no_results:
            log.info("celery_task.results_known", message="A result backend answers again", broker=self.name)
        self.knows_no_results = False
        for told in ended:
            self._tell(told)


def _failed(asked: Asked, reason: str, outcome: Outcome) -> Told:
    text = redacted(one_line(reason), asked.action, asked.event.completion_token)[:REASON_CHARACTERS]
    return Told(asked.serial, asked.event.id, outcome, text)
