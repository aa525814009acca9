"""The value of the action kind `http`: the request that an occurrence makes.

The value is here and not in `actions/http/`, because its fields are fields of a schedule: `Draft` reads them,
masks and kept secrets are rules about them.
"""

import json
from base64 import b64encode
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from scheduler_app.domain.action import Action
from scheduler_app.domain.origin import origin_of

HTTP: Final = "http"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
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
class Body:
    """A request's body: the bytes to send, and the field in which they were given."""

    kind: BodyKind
    data: bytes

    @classmethod
    def from_json(cls, value: Any) -> "Body":
        return cls(BodyKind.JSON, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    def shown(self) -> Any:
        """Returns the value as it was given. Raises ValueError for bytes that are no such value."""
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
    body: Body | None = field(default=None, repr=False)
    destination: str | None = None
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
        """The action itself: a draft gives a request field by field, and `kept_secrets.resolved` reads its
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
