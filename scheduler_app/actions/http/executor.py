"""Executes HTTP actions: from an event to a request, and from its response to a verdict."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from scheduler_app.actions.http.request import Request, headers_for
from scheduler_app.actions.http.response import Response, parse_retry_after, redacted
from scheduler_app.actions.http.sender import Sender
from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import http_action
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Deliverable
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)


class HttpExecutor:
    """An `Executor` over one sender, whose requests make progress in `wait`."""

    def __init__(self, sender: Sender, *, concurrency: int) -> None:
        """`concurrency`: requests in flight to one origin."""
        self.concurrency = concurrency
        self._sender = sender
        self._in_flight: dict[str, tuple[Deliverable, datetime, str | None]] = {}

    def start(self, event: Event, deliverable: Deliverable, now: datetime) -> None:
        self._sender.start(request_of(event, deliverable, now))
        self._in_flight[event.id] = deliverable, now, event.completion_token

    def wait(self, timeout: float) -> Sequence[Verdict]:
        responses = self._sender.wait(timeout)
        return [self._verdict(response) for response in responses] if responses else ()

    def wake(self) -> None:
        self._sender.wake()

    def interrupt(self) -> None:
        self._in_flight.clear()
        self._sender.interrupt()

    def close(self) -> None:
        self._in_flight.clear()
        self._sender.close()

    def _verdict(self, response: Response) -> Verdict:
        deliverable, started_at, token = self._in_flight.pop(response.key)
        try:
            return verdict_of(response, deliverable, started_at, completion_token=token)
        except Exception as error:  # a bug that one response triggers must not end the other attempts
            log.exception("callback.broken", message="A response breaks our code", event_id=response.key)
            return Verdict.of_error(response.key, error)


def request_of(event: Event, deliverable: Deliverable, now: datetime) -> Request:
    """Returns the request of an event's next attempt, which starts at `now` (UTC).

    Raises TypeError where the action is no HTTP request, InvalidField for an unusable secret.
    """
    action, signing = http_action(deliverable.action), deliverable.signing
    body = action.body.data if action.body else None
    return Request(
        key=event.id,
        url=action.url,
        method=action.method,
        headers=headers_for(
            event_id=event.id,
            schedule_id=event.schedule_id,
            event_name=event.message.event_name if isinstance(event.message, Message) else None,
            run_time=event.run_time,
            attempt=event.attempt + 1,
            now=now,
            user_headers=action.headers,
            body=body,
            hops=max(event.hops, deliverable.hops),
            completion_token=event.completion_token,
            signing_secrets=signing.secrets(now) if signing else (),
        ),
        body=body,
        timeout_seconds=deliverable.timeout_seconds,
    )


def verdict_of(
    response: Response,
    deliverable: Deliverable,
    started_at: datetime,
    *,
    completion_token: str | None = None,
) -> Verdict:
    """Judges the response to an attempt that began at `started_at` by the status codes of what asked for it.

    Secrets of the request that the receiver echoed are masked.
    """
    response = redacted(response, http_action(deliverable.action), completion_token)
    key, status, error = response.key, response.status, response.error
    snippet, duration_ms = response.snippet, response.duration_ms
    if status is not None and status in deliverable.success:
        return Verdict(key, Outcome.SUCCESS, status, error, snippet, duration_ms)
    reason = error or f"HTTP {status}"
    if response.ours:  # and therefore not permanent: a worker with other settings may allow it
        metrics.refused.inc()
    if response.permanent or (status is not None and status not in deliverable.retry.codes):
        return Verdict(key, Outcome.PERMANENT, status, error, snippet, duration_ms, reason)
    retry_after = None
    if response.retry_after:
        ended_at = started_at + timedelta(milliseconds=int(duration_ms))
        retry_after = parse_retry_after(response.retry_after, ended_at)
    return Verdict(key, Outcome.RETRY, status, error, snippet, duration_ms, reason, retry_after)
