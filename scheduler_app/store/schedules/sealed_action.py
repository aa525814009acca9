"""The secrets of a request on their way from an export to an import: one token, which only the key opens."""

from dataclasses import replace
from typing import Any

import bson
from bson.errors import BSONError

from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.field_types import Corrupt, fields, items, one_of, optional, text
from scheduler_app.domain.http_action import Body, BodyKind, HttpAction
from scheduler_app.domain.masking import is_secret, split_query
from scheduler_app.domain.not_given import NOT_GIVEN
from scheduler_app.store.encryption import SecretBox, UnreadableSecret

#: Told apart from what else is encrypted with the key: no token out of the database is taken for one.
PURPOSE = "export"
#: The largest body, headers and URL, encrypted and in base64.
MAX_TOKEN = 512 * 1024
_BODY_KINDS = tuple(kind.value for kind in BodyKind)


def sealed_action(action: HttpAction, secret_box: SecretBox) -> str | None:
    """The token; None if there is no key, or nothing secret. The URL in it binds it to its origin."""
    secret = [list(pair) for pair in action.headers if is_secret(pair[0])]
    if not secret_box.encrypts or not (secret or action.body or split_query(action.url)[1]):
        return None
    parts: dict[str, Any] = {"for": PURPOSE, "url": action.url, "headers": secret}
    if action.destination is not None:
        parts["destination"] = action.destination
    if action.body is not None:
        parts["body"] = {"kind": action.body.kind.value, "data": action.body.data}
    return secret_box.seal(bson.encode(parts)).decode()


def opened_action(token: str, secret_box: SecretBox) -> HttpAction:
    """What an export has sealed, for masks to stand for. Raises InvalidField("sealed")."""
    if len(token) > MAX_TOKEN:
        raise InvalidField("sealed", f"must not exceed {MAX_TOKEN // 1024} KiB")
    try:
        parts = bson.decode(secret_box.open(token.encode()))
        if parts.get("for") != PURPOSE:
            raise Corrupt("is not of an export")
        body = parts.get("body")
        return HttpAction(
            url=text(parts.get("url"), "url"),
            destination=optional(text, parts.get("destination"), "destination"),
            headers=tuple(
                (text(name, "a name"), text(value, "a value"))
                for name, value in items(parts.get("headers"), "headers")
            ),
            body=None if body is None else _body(fields(body, "body")),
        )
    except UnreadableSecret:
        raise InvalidField(
            "sealed",
            "cannot be opened with the SECRETS_KEY of this API: add the key of the API that exported it at"
            " the end of SECRETS_KEY, or leave sealed out and give the real values instead of the masks",
        ) from None
    except (Corrupt, BSONError, ValueError) as error:
        raise InvalidField("sealed", f"is no sealed value of an export ({error})"[:200]) from None


def opened_draft(draft: Draft, secret_box: SecretBox) -> Draft:
    """With the secrets of an export in reach of the draft's masks. Raises InvalidField("sealed")."""
    if draft.sealed is NOT_GIVEN:
        return draft
    return replace(draft, known=opened_action(draft.sealed, secret_box))


def _body(body: dict[str, Any]) -> Body:
    return Body(BodyKind(one_of(body.get("kind"), "kind", _BODY_KINDS)), bytes(body["data"]))
