"""Fields of resources as documents keep them: by the rows of their tables (`domain/resources`), and those by
which schedules, destinations and messages say how they are delivered: retries, timeout, codes of success,
lateness, notifications, signing.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from scheduler_app.domain import resource_fields as types
from scheduler_app.domain.action import is_queue
from scheduler_app.domain.deliverable import RetiringSecret, Signing
from scheduler_app.domain.ids import SEPARATOR
from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.notification import Notifying
from scheduler_app.domain.resource_fields import FieldType, Null, ResourceField, default_at
from scheduler_app.domain.resources.delivery import RETRY, TIMEOUT
from scheduler_app.domain.resources.schedule import LATENESS
from scheduler_app.domain.retry import Codes, RetryPolicy
from scheduler_app.domain.stored_fields import (
    MAX_WHOLE,
    Corrupt,
    fields,
    flag,
    instant,
    items,
    number,
    one_of,
    text,
    whole,
)
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.mongo import Document

#: Most documents have the same ones, and reading them is half of what reading a schedule costs.
_codes = lru_cache(maxsize=256)(Codes)


class RowCodec:
    """Stores the fields of `rows` as `kind`, a dataclass, has them."""

    def __init__(self, kind: type, rows: Iterable[ResourceField]) -> None:
        self._rows = [
            (
                row.key,
                default_at(kind, row.key) if row.sparse else None,
                row.sparse or row.null is not Null.NEVER,
                row.type,
                row.path,
            )
            for row in rows
        ]

    def document(self, holder: object) -> Document:
        """What is stored of `holder`; None for what is left out."""
        return {
            key: _stored(value) if (value := getattr(holder, key)) != default else None
            for key, default, *_ in self._rows
        }

    def read(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with which `kind` is made, without those that are not stored because they are the
        default. Raises Corrupt."""
        found: dict[str, Any] = {}
        for key, _, may_be_missing, kind, name in self._rows:
            value = document.get(key)
            if value is not None or not may_be_missing:
                found[key] = read_value(kind, value, name)
        return found


def _stored(value: Any) -> Any:
    if isinstance(value, Codes):
        value = value.written
    return list(value) if isinstance(value, tuple) else value.value if isinstance(value, Enum) else value


def read_value(kind: FieldType, value: Any, name: str) -> Any:
    """What a resource has of a stored value. Raises Corrupt, which names the field."""
    match kind:
        case types.Word():
            word = one_of(value, name, kind.words)
            return kind.kind(word) if kind.kind else word
        case types.Name(of="queue"):
            if not is_queue(value):
                raise Corrupt(f"{name} is no name that a queue may have")
            return value
        case types.Name(of="destination"):
            return destination_name(value, name)
        case types.Number():
            least = kind.least if kind.least_stored is None else kind.least_stored
            return number(value, name, least=least, most=kind.most)
        case types.Whole():
            return whole(value, name, least=kind.least or 0, most=kind.most or MAX_WHOLE)
        case types.Flag():
            return flag(value, name)
        case types.Moment():
            return instant(value, name)
        case types.Statuses():
            return read_codes(value, name)
        case types.ListOf():
            found = tuple([read_value(kind.item, each, f"an item of {name}") for each in items(value, name)])
            if kind.least and not found:
                raise Corrupt(f"{name} is empty")
            return found
        case _:
            return text(value, name)


def destination_name(value: Any, name: str) -> str:
    """The name of a destination of the document's own tenant. Raises Corrupt."""
    if SEPARATOR in text(value, name) or not value:
        raise Corrupt(f"{name} is no name that a destination may have")
    return str(value)


def read_codes(value: Any, name: str) -> Codes:
    """Raises Corrupt."""
    # To a cache 5.0 and True are numbers like 5 and 1, and a list has no hash.
    written = [
        code if isinstance(code, str) else whole(code, f"an item of {name}") for code in items(value, name)
    ]
    try:
        return _codes(tuple(written))
    except ValueError as error:
        raise Corrupt(f"{name}: {error}") from None


#: Most documents have the same fields: how many different ones are kept as they were read, and the most
#: characters of one that is kept.
MOST_READ, LONGEST_READ = 256, 2_000
_read: dict[str, "DeliveryFields"] = {}

_RETRY = RowCodec(RetryPolicy, RETRY)


class DeliveryFields(NamedTuple):
    """What `read_delivery` finds in a document."""

    retry: RetryPolicy
    timeout_seconds: float
    success: Codes


@lru_cache(maxsize=256, typed=True)
def delivery_document(retry: RetryPolicy, timeout_seconds: float, success: Codes) -> Document:
    """The fields that `read_delivery` reads. Documents share them, and they are never changed."""
    return {
        "retry": _without_none(_RETRY.document(retry)),
        "timeout_seconds": timeout_seconds,
        "success": list(success.written),
    }


def read_delivery(row: Mapping[str, Any]) -> DeliveryFields:
    """Raises Corrupt."""
    # As text, in which 1, 1.0 and true differ.
    written = repr((row.get("retry"), row.get("timeout_seconds"), row.get("success")))
    found = _read.get(written)
    if found is None:
        found = _read_delivery(row)
        if len(written) <= LONGEST_READ:
            if len(_read) >= MOST_READ:
                _read.clear()
            _read[written] = found
    return found


def _read_delivery(row: Mapping[str, Any]) -> DeliveryFields:
    return DeliveryFields(
        RetryPolicy(**_RETRY.read(fields(row.get("retry"), "retry"))),
        read_value(TIMEOUT.type, row.get("timeout_seconds"), "timeout_seconds"),
        read_codes(row.get("success"), "success"),
    )


def notifies_document(on_success: str | None, on_failure: str | None) -> list[Document] | None:
    """What `read_notifies` reads; None if nobody is told. A list, so that one index tells who names a
    destination."""
    named = {Notifying.ON_SUCCESS: on_success, Notifying.ON_FAILURE: on_failure}
    return [{"when": when.value, "destination": name} for when, name in named.items() if name] or None


def read_notifies(value: Any) -> dict[Notifying, str]:
    """Who is told when, by the names of destinations. Raises Corrupt."""
    found: dict[Notifying, str] = {}
    for each in items([] if value is None else value, "notifies"):
        pair = fields(each, "an item of notifies")
        when = Notifying(one_of(pair.get("when"), "notifies.when", tuple(Notifying)))
        found[when] = destination_name(pair.get("destination"), "notifies.destination")
    return found


_NEVER_LATE = Lateness()
_LATENESS = RowCodec(Lateness, LATENESS)


def lateness_document(lateness: Lateness) -> Document | None:
    """What `read_lateness` reads; None for what a document without the field means."""
    if lateness == _NEVER_LATE:
        return None
    return _without_none(_LATENESS.document(lateness))


def _without_none(document: Document) -> Document:
    return {key: value for key, value in document.items() if value is not None}


def read_lateness(value: Any) -> Lateness:
    """Raises Corrupt."""
    return _NEVER_LATE if value is None else Lateness(**_LATENESS.read(fields(value, "lateness")))


def unsealed(value: Any, name: str, secret_box: SecretBox) -> str:
    """The value that an older release encrypted by itself, or that was not encrypted. Raises Corrupt and
    UnreadableSecret."""
    single = fields(value, name)
    text(single.get("value"), f"{name}: a sealed value")
    whole(single.get("enc"), f"{name}: enc", most=1)
    return secret_box.open_single(single)


def signing_document(signing: Signing | None) -> Document | None:
    """What `read_signing` reads; None if nothing signs."""
    if signing is None:
        return None
    return {
        "secret": {"enc": 0, "value": signing.secret},
        "since": signing.since,
        "retiring": [
            {"secret": {"enc": 0, "value": old.secret}, "until": old.until} for old in signing.retiring
        ],
    }


def read_signing(value: Any, secret_box: SecretBox) -> Signing | None:
    """Raises Corrupt and UnreadableSecret."""
    if value is None:
        return None
    kept = fields(value, "signing")
    retiring = [
        fields(old, "an item of signing.retiring") for old in items(kept.get("retiring"), "signing.retiring")
    ]
    return Signing(
        secret=unsealed(kept.get("secret"), "signing.secret", secret_box),
        since=instant(kept.get("since"), "signing.since"),
        retiring=tuple(
            RetiringSecret(
                unsealed(old.get("secret"), "signing.retiring", secret_box),
                instant(old.get("until"), "signing.retiring: until"),
            )
            for old in retiring
        ),
    )
