"""The value of the action kind `http`: the request that an occurrence makes, and which of its secrets an edit
may keep.

The value is here and not in `actions/http/`, because its fields are fields of a schedule: `ScheduleDraft`
reads them, masks and kept secrets are rules about them. Secrets stay with the origin that they were given
for. Otherwise whoever may edit a schedule, and is shown nothing but masks, would have its secrets sent to
a receiver of his own.
"""

import json
from base64 import b64encode
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from scheduler_app.domain.action import UNKNOWN_ORIGIN, Action, origin_of
from scheduler_app.domain.errors import InvalidField, masked_value
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.masking import (
    MASKED_BODY,
    has_masked_query,
    is_secret,
    masked_names,
    unmasked,
    unmasked_url,
)

HTTP: Final = "http"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
#: Asks whether a receiver answers; no schedule or message sends it.
OPTIONS = "OPTIONS"
DEFAULT_METHOD = "GET"
DEFAULT_METHOD_WITH_BODY = "POST"
MAX_BODY_BYTES = 256 * 1024
MAX_HEADERS = 50
DESTINATION_PREFIX = "destination "


class BodyKind(StrEnum):
    """The field in which a request's body was given, and in which it is shown again."""

    TEXT = "body"
    JSON = "json"
    BASE64 = "body_base64"


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A request's body: the bytes to send, and the field in which they were given."""

    kind: BodyKind
    data: bytes

    @classmethod
    def from_json(cls, value: Any) -> "RequestBody":
        return cls(BodyKind.JSON, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    def shown(self) -> Any:
        """Returns the value as it was given. Raises ValueError for bytes that are not such a value."""
        if self.kind is BodyKind.JSON:
            return json.loads(self.data)
        return b64encode(self.data).decode() if self.kind is BodyKind.BASE64 else self.data.decode()


@dataclass(frozen=True, slots=True)
class HttpAction:
    """An HTTP request. Its repr leaves out every part that may contain a secret.

    Where it names a destination, `url` is the path and query below the destination's URL, which may be empty,
    and `method` may be empty: then it is the destination's.
    """

    url: str = field(repr=False)
    method: str = DEFAULT_METHOD
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: RequestBody | None = field(default=None, repr=False)
    destination: WholeId | None = None
    """The id of the destination that it goes to, with its tenant; None: `url` says it all."""

    @property
    def kind(self) -> str:
        return HTTP

    @property
    def isolation_key(self) -> str:
        """The destination, or the origin of the URL where there is none."""
        if self.destination is not None:
            return destination_key(self.destination)
        return origin_of(self.url)

    @property
    def completion_problem(self) -> None:
        return None

    def unmasked(self, old: "Action | None") -> "HttpAction":
        """The action itself: a draft gives a request field by field, and `with_kept_secrets` reads its
        masks."""
        return self

    @property
    def is_whole(self) -> bool:
        """Whether it says where it goes; a draft's beginning does not."""
        return bool(self.url or self.destination)


def destination_key(destination_id: str) -> str:
    """The isolation key of all that goes to a destination; no origin looks like it."""
    return f"{DESTINATION_PREFIX}{destination_id}"


def destination_of_key(isolation_key: str) -> str | None:
    """The id of the destination that an isolation key, or an event's origin, names; None for an origin."""
    named = isolation_key.startswith(DESTINATION_PREFIX)
    return isolation_key.removeprefix(DESTINATION_PREFIX) if named else None


def http_action(action: Action) -> HttpAction:
    """Returns the action as an HTTP one. Raises TypeError for an action of another kind."""
    if not isinstance(action, HttpAction):
        raise TypeError(f"an action of kind {action.kind} is no HTTP request")
    return action


def with_kept_secrets(
    asked: HttpAction, kept: Collection[str], old: HttpAction, known: HttpAction
) -> HttpAction:
    """The request that is asked for, with the values that its masks stand for.

    `kept` names what of it ("headers", "body") was not given and is `old`'s own; masks stand for values of
    `known`. Raises InvalidField where a value would go to another origin than it was given for, naming all
    that must be given again, and where a mask stands for nothing.
    """
    moved, elsewhere = _have_other_receivers(asked, old), _have_other_receivers(asked, known)
    again = _kept_secrets(old, kept) if moved else []
    again += _masked_parts(asked, kept) if elsewhere and known.is_whole else []
    if again:
        raise InvalidField(
            "destination" if asked.destination else "callback_url",
            f"is another origin than {(known if elsewhere else old).isolation_key}, and secrets that were"
            f" given for one origin are not sent to another: give {', '.join(dict.fromkeys(again))} again, or"
            " leave them out (headers: {}, body: null)",
        )
    return replace(
        asked,
        url=_kept_url(asked, known),
        headers=_kept_headers(asked, kept, known),
        body=_kept_body(asked, known),
    )


def _have_other_receivers(asked: HttpAction, other: HttpAction) -> bool:
    if asked.destination or other.destination:
        return asked.destination != other.destination
    origin = origin_of(asked.url)
    return asked.url != other.url and (origin == UNKNOWN_ORIGIN or origin != origin_of(other.url))


def _kept_secrets(old: HttpAction, kept: Collection[str]) -> list[str]:
    names = [f"the header {name}" for name, _ in old.headers if is_secret(name)] if "headers" in kept else []
    return names + (["the body"] if "body" in kept and old.body else [])


def _masked_parts(asked: HttpAction, kept: Collection[str]) -> list[str]:
    names = [f"the header {name}" for name in masked_names(asked.headers)] if "headers" not in kept else []
    names += ["the body"] if asked.body and asked.body.data == MASKED_BODY else []
    return names + (["the values of the query"] if has_masked_query(asked.url) else [])


def _kept_url(asked: HttpAction, known: HttpAction) -> str:
    try:
        return unmasked_url(asked.url, known.url)
    except KeyError as error:
        what = f"the value of {error.args[0]}" if error.args[0] else "a part of the query"
        raise masked_value("path" if asked.destination else "callback_url", what) from None


def _kept_headers(asked: HttpAction, kept: Collection[str], known: HttpAction) -> tuple[tuple[str, str], ...]:
    if "headers" in kept:
        return asked.headers
    try:
        return unmasked(asked.headers, known.headers)
    except KeyError as error:
        raise masked_value("headers", error.args[0]) from None


def _kept_body(asked: HttpAction, known: HttpAction) -> RequestBody | None:
    if asked.body is None or asked.body.data != MASKED_BODY:
        return asked.body
    if known.body is None:
        raise masked_value(asked.body.kind.value)
    return known.body
