"""A destination as MongoDB keeps it, and back.

`{_id, v, tenant, version, action: {type, url, method, headers}, auth: {type, username, secret}, signing, …}`:
the request stands as a schedule's action does, so that the same parts of it are sealed by the same code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_app.actions.http.document import from_document as read_action
from scheduler_app.actions.http.document import to_document as action_document
from scheduler_app.config import MAX_TIMEOUT_SECONDS
from scheduler_app.domain.destination import (
    LEAST_OPEN_SECONDS,
    LEAST_RATE,
    MAX_BREAKER_FAILURES,
    MAX_BURST,
    MAX_CONCURRENCY,
    MAX_OPEN_SECONDS,
    MAX_RATE,
    Auth,
    AuthType,
    Breaker,
    Destination,
)
from scheduler_app.domain.field_types import (
    Corrupt,
    Newer,
    fields,
    flag,
    instant,
    items,
    number,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.domain.http_action import METHODS, HttpAction
from scheduler_app.domain.queues import is_queue
from scheduler_app.domain.retry import MAX_BACKOFF_SECONDS, MAX_RETRIES, Codes
from scheduler_app.store.documents.delivery_fields import read_codes, read_signing, signing_document
from scheduler_app.store.encryption import SecretBox, UnreadableSecret
from scheduler_app.store.mongo import Document
from scheduler_app.store.schedules.sealed_parts import SEALED_VERSION, opened, sealed

DOCUMENT_VERSION = 1
_AUTH_TYPES = tuple(kind.value for kind in AuthType)


@dataclass(frozen=True, slots=True)
class CorruptDestination:
    """A stored destination that cannot be read, and why."""

    id: str
    reason: str
    readable_elsewhere: bool = False
    """Nothing is wrong with it: a newer release wrote it, or this process lacks the key to its secrets."""


def to_document(destination: Destination, secret_box: SecretBox) -> Document:
    """Returns what is stored; what is None is left out."""
    own = destination
    document: Document = {
        "_id": own.id,
        "v": DOCUMENT_VERSION,
        "tenant": own.tenant,
        "version": own.version,
        "action": action_document(HttpAction(own.url, own.method or "", own.headers, destination=own.id)),
        "auth": own.auth
        and {"type": own.auth.type.value, "username": own.auth.username, "secret": own.auth.secret},
        "allowed_methods": list(own.allowed_methods),
        "signing": signing_document(own.signing),
        "max_retries": own.max_retries,
        "backoff_seconds": own.backoff_seconds,
        "backoff_max_seconds": own.backoff_max_seconds,
        "retry_codes": _written(own.retry_codes),
        "success": _written(own.success),
        "timeout_seconds": own.timeout_seconds,
        "rate_per_second": own.rate_per_second,
        "burst": own.burst,
        "concurrency": own.concurrency,
        "breaker": own.breaker
        and {"failures": own.breaker.failures, "open_seconds": own.breaker.open_seconds},
        "paused": own.paused,
        "queue": own.queue,
        "deleting": own.deleting or None,
        "created_at": own.created_at,
        "updated_at": own.updated_at,
    }
    return sealed({key: value for key, value in document.items() if value is not None}, secret_box)


def read(row: Document, secret_box: SecretBox) -> Destination | CorruptDestination:
    """Returns the destination that a document makes, or why it makes none."""
    try:
        return from_document(row, secret_box)
    except (Newer, UnreadableSecret) as error:
        return CorruptDestination(str(row["_id"]), str(error), readable_elsewhere=True)
    except Corrupt as error:
        return CorruptDestination(str(row["_id"]), str(error))
    except Exception as error:  # a document edited by hand may cause any error
        return CorruptDestination(str(row["_id"]), f"{type(error).__name__}: {error}"[:300])


def from_document(row: Mapping[str, Any], secret_box: SecretBox) -> Destination:
    """Raises Corrupt for a document edited by hand, Newer for a newer release's, and UnreadableSecret."""
    version(row.get("v"), SEALED_VERSION)
    row = opened(row, secret_box)
    get = row.get
    own_id = text(row["_id"], "_id")
    tenant(get("tenant"), "tenant", own_id)
    action = read_action(fields(get("action"), "action"))
    if action.destination != own_id:
        raise Corrupt("action.destination is not the document's own id")
    return Destination(
        id=own_id,
        url=action.url,
        method=action.method or None,
        headers=action.headers,
        auth=optional(_auth, get("auth"), "auth"),
        allowed_methods=_methods(get("allowed_methods")),
        signing=read_signing(get("signing"), secret_box),
        max_retries=optional(_retries, get("max_retries"), "max_retries"),
        backoff_seconds=optional(_backoff, get("backoff_seconds"), "backoff_seconds"),
        backoff_max_seconds=optional(_backoff, get("backoff_max_seconds"), "backoff_max_seconds"),
        retry_codes=optional(_codes, get("retry_codes"), "retry_codes"),
        success=optional(_codes, get("success"), "success"),
        timeout_seconds=optional(_timeout, get("timeout_seconds"), "timeout_seconds"),
        rate_per_second=optional(_rate, get("rate_per_second"), "rate_per_second"),
        burst=whole(get("burst"), "burst", least=1, most=MAX_BURST),
        concurrency=optional(_concurrency, get("concurrency"), "concurrency"),
        breaker=optional(_breaker, get("breaker"), "breaker"),
        paused=flag(get("paused"), "paused"),
        queue=optional(_queue, get("queue"), "queue"),
        deleting=bool(optional(flag, get("deleting"), "deleting")),
        version=whole(get("version"), "version", least=1),
        created_at=instant(get("created_at"), "created_at"),
        updated_at=instant(get("updated_at"), "updated_at"),
    )


def _written(codes: Codes | None) -> list[int | str] | None:
    return None if codes is None else list(codes.written)


def _auth(value: Any, name: str) -> Auth:
    row = fields(value, name)
    return Auth(
        type=AuthType(one_of(row.get("type"), "auth.type", _AUTH_TYPES)),
        username=text(row.get("username"), "auth.username"),
        secret=text(row.get("secret"), "auth.secret"),
    )


def _breaker(value: Any, name: str) -> Breaker:
    row = fields(value, name)
    return Breaker(
        failures=whole(row.get("failures"), "breaker.failures", least=1, most=MAX_BREAKER_FAILURES),
        open_seconds=number(
            row.get("open_seconds"), "breaker.open_seconds", least=LEAST_OPEN_SECONDS, most=MAX_OPEN_SECONDS
        ),
    )


def _methods(value: Any) -> tuple[str, ...]:
    found = [one_of(each, "an item of allowed_methods", METHODS) for each in items(value, "allowed_methods")]
    if not found:
        raise Corrupt("allowed_methods is empty")
    return tuple(found)


def _codes(value: Any, name: str) -> Codes:
    return read_codes(value, name)


def _retries(value: Any, name: str) -> int:
    return whole(value, name, most=MAX_RETRIES)


def _backoff(value: Any, name: str) -> float:
    return number(value, name, most=MAX_BACKOFF_SECONDS)


def _timeout(value: Any, name: str) -> float:
    return number(value, name, least=0.001, most=MAX_TIMEOUT_SECONDS)


def _rate(value: Any, name: str) -> float:
    return number(value, name, least=LEAST_RATE, most=MAX_RATE)


def _queue(value: Any, name: str) -> str:
    if not is_queue(value):
        raise Corrupt(f"{name} is no name that a queue may have")
    return str(value)


def _concurrency(value: Any, name: str) -> int:
    return whole(value, name, least=1, most=MAX_CONCURRENCY)
