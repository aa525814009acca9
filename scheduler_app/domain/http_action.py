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
    """An HTTP request. Its repr leaves out every part that may contain a secret."""

    url: str = field(repr=False)
    method: str = DEFAULT_METHOD
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: Body | None = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        return HTTP

    @property
    def isolation_key(self) -> str:
        """The origin of the URL."""
        return origin_of(self.url)


def http_action(action: Action) -> HttpAction:
    """Returns the action as an HTTP one. Raises TypeError for an action of another kind."""
    if not isinstance(action, HttpAction):
        raise TypeError(f"an action of kind {action.kind} is no HTTP request")
    return action
