"""From headers and a body to a verdict, and to work that is done once.

Signatures are as Standard Webhooks describes them (https://www.standardwebhooks.com).
"""

import asyncio
import base64
import binascii
import hmac
import json
import logging
import re
import secrets as random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from scheduler_app.receiver.keys import Keys, LookupKeys, MemoryKeys, Seen


@dataclass(frozen=True, slots=True)
class Delivery:
    """A callback whose signature is right. The signature covers `key`, `sent_at` and `body`, nothing else."""

    #: The event's id, the same on every attempt.
    key: str
    #: When this attempt was made.
    sent_at: datetime
    body: bytes = field(repr=False)
    #: All headers; their names are in lower case.
    headers: Mapping[str, str] = field(repr=False)
    #: The schedule, None for a message without one.
    schedule_id: str | None = None
    #: The occurrence that the event stands for.
    run_time: datetime | None = None
    #: 1 for the first attempt.
    attempt: int = 1
    #: How many callbacks, one after another, led to this one.
    hops: int = 0
    #: What shows that you may complete the event, where its schedule has `completion: "callback"`.
    completion_token: str | None = field(default=None, repr=False)

    def json(self) -> Any:
        """The body as a JSON value. Raises ValueError for a body that is not JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with a text of one sentence; a 204 has none."""

    status: int
    text: str = ""

    @property
    def body(self) -> bytes:
        return f"{self.text}\n".encode() if self.text else b""


_PREFIX = "whsec_"
_SECRET_BYTES = (24, 64)
#: A sender that rotates its secrets sends two or three signatures.
_MAX_SIGNATURES = 16


def signing_keys(secrets: str | Sequence[str]) -> tuple[bytes, ...]:
    """The bytes of one secret or of several, "whsec_" and base64 each.

    Raises ValueError, which never repeats a secret, for one that is malformed and for none at all.
    """
    texts = [secrets] if isinstance(secrets, str) else [*secrets]
    if not texts:
        raise ValueError("secrets: give at least one; POST /api/v1/schedules/{id}/signing-secret makes one")
    return tuple(_signing_key(text, place) for place, text in enumerate(texts, 1))


def is_signed(keys: Iterable[bytes], message_id: str, timestamp: str, body: bytes, signatures: str) -> bool:
    """Whether one of `signatures` is valid for one of `keys`.

    Spaces separate signatures; each is "v1," and the base64 of HMAC-SHA256 over `message_id.timestamp.body`.
    """
    content = f"{message_id}.{timestamp}.".encode("latin-1", "replace") + body
    valid = [b"v1," + base64.b64encode(hmac.digest(key, content, "sha256")) for key in keys]
    given = [text.encode("latin-1", "replace") for text in signatures.split(maxsplit=_MAX_SIGNATURES)]
    return any(hmac.compare_digest(ours, theirs) for ours in valid for theirs in given[:_MAX_SIGNATURES])


def _signing_key(secret: str, place: int) -> bytes:
    key = b""
    if secret.startswith(_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            key = b""
    low, high = _SECRET_BYTES
    if not low <= len(key) <= high:
        raise ValueError(f"secrets: number {place} must be {_PREFIX} and the base64 of {low} to {high} bytes")
    return key


Headers = Mapping[str, str] | Iterable[tuple[str, str]]
T = TypeVar("T")

#: As the scheduler's own API: the fifth callback in a row is a loop.
DEFAULT_MAX_HOPS = 4
#: The scheduler sends 256 KiB at most.
DEFAULT_MAX_BODY_BYTES = 1_048_576
_MAX_KEY_LENGTH = 512
_NUMBER = re.compile(r"[0-9]{1,12}\Z")
_log = logging.getLogger("scheduler_app.receiver")

_KNOWN = {
    Seen.DONE: Answer(200, "The work of this event was done before."),
    # Neither 409, which the scheduler takes for final, nor 503, by which it would slow down all callbacks.
    Seen.RUNNING: Answer(425, "Another delivery of this event is being worked on."),
    Seen.NO_ROOM: Answer(503, "Too many events are being worked on: try again later."),
}


class Receiver:
    """Checks deliveries and remembers their keys; threads and tasks share one."""

    def __init__(
        self,
        secrets: str | Sequence[str],
        *,
        keys: Keys | Callable[[str], bool] | None = None,
        tolerance_seconds: float = 300.0,
        max_hops: int = DEFAULT_MAX_HOPS,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    ) -> None:
        """`secrets` is the signing secret, or several of which any is valid, "whsec_…" each.

        `keys` remembers keys: a `RedisKeys`, an object of your own, or a function that says whether the work
        of a key is done, where the handler writes the key in its transaction; by default this process's
        memory. A delivery whose timestamp is more than `tolerance_seconds` away from now is refused; one
        with more than `max_hops` hops is a loop. Raises ValueError for a malformed secret.
        """
        self._signing_keys = signing_keys(secrets)
        self._keys = MemoryKeys() if keys is None else LookupKeys(keys) if callable(keys) else keys
        self._tolerance_seconds = tolerance_seconds
        self._max_hops = max_hops
        self.max_body_bytes = max_body_bytes
        # Tasks that outlive their caller: the event loop itself holds them by weak references only.
        self._tasks: set[asyncio.Task[Any]] = set()

    def verdict(self, headers: Headers, body: bytes, *, now: datetime) -> Delivery | Answer:
        """The delivery, or the answer that refuses it: 401 where the signature or the timestamp is wrong, 508
        for a loop, 413 and 400 for what the scheduler does not send. Remembers nothing."""
        if len(body) > self.max_body_bytes:
            return self.too_large()
        given = _lower(headers)
        key, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
        if not key or len(key) > _MAX_KEY_LENGTH or not _NUMBER.match(timestamp):
            return Answer(401, "webhook-id or webhook-timestamp is missing or malformed.")
        if not is_signed(self._signing_keys, key, timestamp, body, given.get("webhook-signature", "")):
            return Answer(401, "No webhook-signature is valid: check the signing secret on both sides.")
        if abs(now.timestamp() - int(timestamp)) > self._tolerance_seconds:
            return Answer(
                401,
                f"webhook-timestamp is more than {self._tolerance_seconds:g} s away from this clock: the"
                " delivery is a replay, or one of the clocks is wrong.",
            )
        try:
            delivery = _delivery(key, int(timestamp), body, given)
        except ValueError as error:
            return Answer(400, str(error))
        if delivery.hops > self._max_hops:
            return Answer(
                508, f"Loop: this came by {delivery.hops} callbacks in a row; at most {self._max_hops} may."
            )
        return delivery

    def handle(
        self,
        headers: Headers,
        body: bytes,
        work: Callable[[Delivery], T],
        *,
        now: datetime,
        is_success: Callable[[T], bool] = lambda result: True,
    ) -> T | Answer:
        """What `work` returns, or the answer where it does not run: of deliveries of one event it runs for
        one, until it succeeds.

        What it raises is raised, and the key forgotten; so it is when `is_success` of its result is false. A
        delivery that comes while another runs is answered 425, by which the scheduler tries again.
        """
        delivery, token = self.verdict(headers, body, now=now), random.token_hex(8)
        if isinstance(delivery, Answer):
            return delivery
        seen = self._keys.claim(delivery.key, token)
        if seen is not Seen.NEW:
            return _KNOWN[seen]
        try:
            result = work(delivery)
            success = is_success(result)
        except BaseException:
            self._keys.forget(delivery.key, token)
            raise
        self._settle(delivery.key, token, success)
        return result

    async def handle_async(
        self,
        headers: Headers,
        body: bytes,
        work: Callable[[Delivery], Awaitable[T]],
        *,
        now: datetime,
        is_success: Callable[[T], bool] = lambda result: True,
    ) -> T | Answer:
        """As `handle`, for a coroutine function.

        `keys` is called in threads, since it may wait for a network. Work that has begun is finished even if
        the caller is cancelled, because its client went away: the next attempt finds it done.
        """
        delivery = self.verdict(headers, body, now=now)
        if isinstance(delivery, Answer):
            return delivery
        running = self._run(delivery, work, is_success)
        task = asyncio.create_task(running)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    def too_large(self) -> Answer:
        """The answer to a body of more than `max_body_bytes`."""
        return Answer(413, f"The body is larger than {self.max_body_bytes:,} bytes.")

    async def _run(
        self, delivery: Delivery, work: Callable[[Delivery], Awaitable[T]], is_success: Callable[[T], bool]
    ) -> T | Answer:
        token = random.token_hex(8)
        # A server that stops cancels all tasks, while their threads go on: each is waited for or shielded.
        in_thread = asyncio.get_running_loop().run_in_executor
        claiming = in_thread(None, self._keys.claim, delivery.key, token)
        try:
            seen = await asyncio.shield(claiming)
            if seen is not Seen.NEW:
                return _KNOWN[seen]
            result = await work(delivery)
            success = is_success(result)
        except BaseException:
            await asyncio.wait([claiming])
            if claiming.exception() is None:
                await asyncio.shield(in_thread(None, self._keys.forget, delivery.key, token))
            raise
        await asyncio.shield(in_thread(None, self._settle, delivery.key, token, success))
        return result

    def _settle(self, key: str, token: str, success: bool) -> None:
        if not success:
            self._keys.forget(key, token)
            return
        try:
            self._keys.finish(key, token)
        except Exception:
            # The work is done. An error would only make the scheduler have it done once more.
            _log.exception("the work of %s is done, but its key could not be remembered", key)


def _lower(headers: Headers) -> dict[str, str]:
    """Names in lower case. The values of a repeated header are joined: neither of two is chosen, and the
    signature of one does not fit them."""
    found: dict[str, str] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        lower = name.lower()
        found[lower] = f"{found[lower]}, {value}" if lower in found else value
    return found


def _delivery(key: str, timestamp: int, body: bytes, headers: dict[str, str]) -> Delivery:
    """Raises ValueError with a sentence that names the malformed header."""
    return Delivery(
        key=key,
        sent_at=datetime.fromtimestamp(timestamp, UTC),
        body=body,
        headers=headers,
        schedule_id=headers.get("x-scheduler-schedule-id"),
        run_time=_instant(headers, "X-Scheduler-Run-Time"),
        attempt=_whole_number(headers, "X-Scheduler-Attempt", 1),
        hops=_whole_number(headers, "X-Scheduler-Hops", 0),
        completion_token=headers.get("x-scheduler-completion-token"),
    )


def _whole_number(headers: dict[str, str], name: str, default: int) -> int:
    text = headers.get(name.lower())
    if text is None:
        return default
    if not _NUMBER.match(text):
        raise ValueError(f"{name} must be a whole number.")
    return int(text)


def _instant(headers: dict[str, str], name: str) -> datetime | None:
    text = headers.get(name.lower())
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise ValueError(f"{name} must be an instant such as 2025-01-05T12:00:00Z.")
    return instant
