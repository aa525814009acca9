"""When a request is sent again, and what its answer means: the same for both clients."""

import json
import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from scheduler_app.client.calls import Call
from scheduler_app.client.errors import SchedulerError

T = TypeVar("T")

#: Transient statuses: overloaded or unavailable.
_TRANSIENT = (429, 502, 503, 504)
_FIRST_DELAY_SECONDS = 0.2
_LONGEST_DELAY_SECONDS = 10.0
_FAR_SECONDS = 60
_EXAMPLE = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whichever library has read it; headers are found whatever their case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


class Tries(Generic[T]):
    """The tries of one call: at most `retries` beyond the first, and none later than `give_up_seconds`."""

    def __init__(self, call: Call[T], retries: int, give_up_seconds: float | None) -> None:
        self._call = call
        self._retries = retries
        self._until = math.inf if give_up_seconds is None else time.monotonic() + give_up_seconds
        self._made = 0

    def delay_after(self, reply: Reply | None) -> float | None:
        """The seconds until the next try after this answer, or after none; None if there is no next try."""
        self._made += 1
        if reply and not _is_transient(reply):
            return None
        delay = _delay(self._made, reply.headers.get("retry-after") if reply else None)
        return None if self._made > self._retries or time.monotonic() + delay > self._until else delay

    def result(self, reply: Reply) -> T:
        """What the last answer means. Raises SchedulerError for a refusal, and for what is no answer of the
        API."""
        call = self._call
        if reply.status == 404 and (call.accept_404 or (call.accept_404_after_retry and self._made > 1)):
            return call.read({})
        if not 200 <= reply.status < 300:
            raise refusal(reply)
        content = _json(reply)
        if not isinstance(content, dict):
            raise _not_of_the_api(reply)
        try:
            return call.read(content)
        except (KeyError, TypeError) as error:
            raise SchedulerError(f"not an answer of the API: it lacks {error}", status=reply.status) from None


def refusal(reply: Reply) -> SchedulerError:
    """The problem (RFC 9457) in an answer; of one that is none, its status and its beginning."""
    problem = _json(reply)
    if not isinstance(problem, dict) or "detail" not in problem:
        return _not_of_the_api(reply)
    return SchedulerError(
        str(problem["detail"]),
        status=reply.status,
        errors=tuple(problem.get("errors", ())),
        readings=tuple(problem.get("readings", ())),
        limit=problem.get("limit"),
    )


def unreachable(url: str, error: Exception) -> SchedulerError:
    """There is no answer of `url`. The root cause of `error` says what happened."""
    cause: BaseException = error
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__ or cause
    return SchedulerError(f"{url} cannot be reached: {str(cause) or type(cause).__name__}")


def no_address(url: str) -> SchedulerError:
    """`url` lacks http or https."""
    return SchedulerError(f"{url!r} is not the address of an API; give one such as {_EXAMPLE}")


def _json(reply: Reply) -> Any:
    try:
        return json.loads(reply.content)
    except ValueError:
        return None


def _not_of_the_api(reply: Reply) -> SchedulerError:
    said = " ".join(reply.content.decode(errors="replace").split())[:200]
    return SchedulerError(f"not an answer of the API: {said or reply.reason}", status=reply.status)


def _is_transient(reply: Reply) -> bool:
    # A conflict with Retry-After: the first request with this Idempotency-Key is still being processed.
    in_flight = reply.status == 409 and "retry-after" in reply.headers
    return (reply.status in _TRANSIENT and not _is_far(reply)) or in_flight


def _is_far(reply: Reply) -> bool:
    """Whether what is asked for too often is refused for longer than a caller would wait, such as for the
    rest of a day."""
    after = reply.headers.get("retry-after", "")
    return reply.status == 429 and after.isdigit() and int(after) > _FAR_SECONDS


def _delay(tries: int, retry_after: str | None) -> float:
    """Retry-After, or a delay that doubles, with random jitter; seconds."""
    if retry_after and retry_after.isdigit():
        return min(float(retry_after), _LONGEST_DELAY_SECONDS)
    most = min(_FIRST_DELAY_SECONDS * 2 ** (tries - 1), _LONGEST_DELAY_SECONDS)
    return random.uniform(most / 2, most)  # noqa: S311
