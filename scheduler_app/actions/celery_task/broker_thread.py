"""One broker of another application: a thread that publishes tasks, and looks together for the results that
are waited for.

A task's secrets are masked in what its broker, its application or our own code says of it.
"""

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from typing import Any, NamedTuple

from scheduler_app.actions.celery_task.application import RemoteApplication, UnsendableTask
from scheduler_app.actions.celery_task.validation import arguments_of
from scheduler_app.actions.kind import Outcome
from scheduler_app.actions.threaded import ToldOutcome
from scheduler_app.clock import monotonic
from scheduler_app.config.settings import PLAIN_TLS, BrokerTls
from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import Event
from scheduler_app.domain.masking import MASK, one_line
from scheduler_app.telemetry import get_logger


class TaskRequest(NamedTuple):
    """An attempt that is to begin."""

    serial: int
    """Tells attempts of one event apart: what comes of an earlier one is dropped."""
    event: Event
    action: CeleryTaskAction
    until: float
    """The monotonic time at which the attempt ends."""


def arguments_for(asked: TaskRequest) -> tuple[list[object], dict[str, object]]:
    """The task's arguments, with the event where it is wanted. Raises InvalidField."""
    args, kwargs = arguments_of(asked.action)
    if asked.action.event_kwarg is not None:
        kwargs[asked.action.event_kwarg] = _event_facts(asked.event)
    return args, kwargs


def headers_for(asked: TaskRequest) -> Mapping[str, Any]:
    """The message's headers: `self.request.headers` in the task."""
    told = {f"scheduler_{name}": value for name, value in _event_facts(asked.event).items()}
    if asked.event.completion_token is not None:
        # A plain text: brokers do not serialise classes of ours.
        told["scheduler_completion_token"] = str(asked.event.completion_token)
    return dict(asked.action.headers) | told


def _event_facts(event: Event) -> dict[str, object]:
    run_time = event.run_time.astimezone(UTC).isoformat(timespec="milliseconds")
    return {
        "event_id": event.id,
        "schedule_id": event.schedule_id,
        "run_time": run_time.replace("+00:00", "Z"),
        "attempt": event.attempt + 1,
    }


#: Shorter texts are parts of ordinary words, and no secrets.
MIN_SECRET = 6
#: Values looked for: what is deeper or later is not masked one by one, but then nothing is shown.
MAX_SECRETS = 500


def redacted(text: str, action: CeleryTaskAction, completion_token: str | None = None) -> str:
    """Returns `text` with a mask for each text among the arguments and headers of the task, and for the token
    that it was sent."""
    if not text:
        return text
    secrets = {value for _, value in action.headers if len(value) >= MIN_SECRET}
    if completion_token is not None:
        secrets.add(completion_token)
    for arguments in (action.args, action.kwargs):
        try:
            secrets.update(_texts(json.loads(arguments)))
        except (ValueError, RecursionError):
            return MASK
        if len(secrets) > MAX_SECRETS:
            return MASK
    for secret in sorted(secrets, key=lambda each: (-len(each), each)):
        text = text.replace(secret, MASK)
    return text


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= MIN_SECRET:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


#: Results that one call asks for.
RESULTS_AT_ONCE = 500
SNIPPET_CHARACTERS = 1024
_ENDED = {
    "SUCCESS": Outcome.SUCCESS,
    "FAILURE": Outcome.RETRY,
    "REVOKED": Outcome.PERMANENT,
    "REJECTED": Outcome.PERMANENT,
    "IGNORED": Outcome.SUCCESS,
}


class Results:
    """By task: who waits for it. Bounded by the attempts that the executor has in flight."""

    def __init__(self, application: RemoteApplication) -> None:
        self._application = application
        self._waiting: dict[str, TaskRequest] = {}

    @property
    def waited_for(self) -> int:
        return len(self._waiting)

    def wait_for(self, asked: TaskRequest) -> None:
        self._waiting[asked.event.id] = asked

    def of_earlier(self, asked: TaskRequest) -> ToldOutcome | None:
        """How a task of an earlier attempt has ended, if well: it need not be sent again. Any other result is
        removed, or it would be taken for that of the task that is sent now."""
        (meta,) = self._found([asked.event.id])
        if meta is None:
            return None
        if meta.get("status") == "SUCCESS":
            return _task_outcome(asked, meta)
        self._application.forget(asked.event.id)
        return None

    def look(self, now: float) -> list[ToldOutcome]:
        """The tasks that have ended. Those whose time is over at `now` are forgotten: the executor has ended
        them."""
        for task_id in [task_id for task_id, asked in self._waiting.items() if asked.until <= now]:
            del self._waiting[task_id]
        told: list[ToldOutcome] = []
        ids = list(self._waiting)
        for first in range(0, len(ids), RESULTS_AT_ONCE):
            page = ids[first : first + RESULTS_AT_ONCE]
            for task_id, meta in zip(page, self._found(page), strict=True):
                if meta is not None and meta.get("status") in _ENDED:
                    told.append(_task_outcome(self._waiting.pop(task_id), meta))
        return told

    def _found(self, ids: list[str]) -> list[dict[str, Any] | None]:
        try:
            return self._application.results(ids)
        except self._application.faults:
            raise
        except Exception as error:
            # One of them cannot be read: a result that is no JSON, most likely. The others can.
            if len(ids) > 1:
                middle = len(ids) // 2
                return self._found(ids[:middle]) + self._found(ids[middle:])
            return [{"status": "REJECTED", "result": f"the result cannot be read: {type(error).__name__}"}]


def _task_outcome(asked: TaskRequest, meta: Mapping[str, Any]) -> ToldOutcome:
    outcome = _ENDED[meta["status"]]
    text = redacted(one_line(_result_text(meta.get("result"))), asked.action)[:SNIPPET_CHARACTERS]
    if outcome is Outcome.SUCCESS:
        return ToldOutcome(asked.serial, asked.event.id, outcome, "", text)
    return ToldOutcome(
        asked.serial, asked.event.id, outcome, f"the task ended as {meta['status']}: {text}", text
    )


def _result_text(result: Any) -> str:
    """A result, or an exception as Celery writes it: `{exc_type, exc_message, exc_module}`."""
    if not isinstance(result, Mapping) or "exc_type" not in result:
        return "" if result is None else str(result)
    message = result.get("exc_message")
    words = [str(part) for part in message] if isinstance(message, list | tuple) else [str(message)]
    return f"{result['exc_type']}: {', '.join(words)}"


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
        tell: Callable[[ToldOutcome], None],
        tls: BrokerTls = PLAIN_TLS,
    ) -> None:
        """`url` and `backend` (where results are) are URLs, `tls` is for both; `tell` takes how each attempt
        ended."""
        super().__init__(name=f"celery-tasks-{name}", daemon=True)
        self._tell = tell
        self._application = RemoteApplication(url, backend, tls)
        self._results = Results(self._application)
        self._asked: queue.SimpleQueue[TaskRequest | None] = queue.SimpleQueue()
        self._stopped = False
        self._first = 0
        self._looks_at = 0.0
        self.knows_no_results = False
        """Whether the result backend did not answer when it was last asked."""

    def put(self, asked: TaskRequest) -> None:
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

    def _take(self, asked: TaskRequest) -> None:
        try:
            told = self._send(asked)
        except InvalidField as error:
            told = _failed(asked, error.message, Outcome.PERMANENT)
        except UnsendableTask as error:
            told = _failed(asked, f"the task cannot be sent: {error}", Outcome.PERMANENT)
        except self._application.faults as error:
            told = _failed(asked, f"the broker did not take the task: {error}", Outcome.RETRY)
        except Exception as error:  # a bug that one task triggers must not end the others
            log.exception("celery_task.broken", message="A task breaks our code", event_id=asked.event.id)
            told = _failed(asked, f"{type(error).__name__}: {error}", Outcome.PERMANENT)
        if told is not None:
            self._tell(told)

    def _send(self, asked: TaskRequest) -> ToldOutcome | None:
        """None when the task was sent, and is waited for."""
        # An attempt before this one may have sent the task.
        repeated = asked.event.attempt or asked.event.lost_leases
        if asked.action.wait and repeated and (ended := self._results.of_earlier(asked)):
            return ended
        args, kwargs = arguments_for(asked)
        self._application.send(asked.event.id, asked.action, args, kwargs, headers_for(asked))
        if asked.action.wait:
            self._results.wait_for(asked)
            return None
        return ToldOutcome(asked.serial, asked.event.id, Outcome.SUCCESS)

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


def _failed(asked: TaskRequest, reason: str, outcome: Outcome) -> ToldOutcome:
    text = redacted(one_line(reason), asked.action, asked.event.completion_token)[:REASON_CHARACTERS]
    return ToldOutcome(asked.serial, asked.event.id, outcome, text)
