"""Documents as they lie in MongoDB, as text that people read and compare, and back.

Dates, binary data and object ids are objects with one key that begins with `$`. What is sealed with the key
of the tests is opened: `{"$sealed": …}`, and `{"$sealed_text": …}`
for a text that releases before 0.2 sealed by itself.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import bson
from bson import Int64, ObjectId
from cryptography.fernet import Fernet

from tests.golden.product import SECRETS_KEY, partition_of
from tests.golden.steady import Steady

FERNET: Final = Fernet(SECRETS_KEY)
_TOKEN: Final = re.compile(r"<(hex|token|uuid|digest|signing secret|claim|backfill|session) (\d+)>")
#: Hexadecimal digits that are drawn, or follow from what was.
_RANDOM: Final = re.compile(r"[0-9a-f]{16,}")
#: Of causes: workers write them in any order.
_UNORDERED: Final = ("names", "failing")
#: Values of the kinds that are drawn, by the number of their placeholder.
_DRAWN: Final[dict[str, Callable[[int], str]]] = {
    "hex": lambda number: f"a{number:023x}",
    "digest": lambda number: f"d{number:063x}",
    "session": lambda number: f"e{number:063x}",
    "claim": lambda number: f"c{number:015x}",
    "backfill": lambda number: f"b{number:07x}",
    "token": lambda number: f"{number:032d}",
    "signing secret": lambda number: f"{number:043d}=",
    "uuid": lambda number: f"00000000-0000-0000-0000-{number:012d}",
}


def as_text(documents: list[dict[str, Any]], steady: Steady) -> str:
    """In the order of their ids as they are shown."""
    shown = [
        steady(json.dumps(_shown(_steadied(each)), indent=2, sort_keys=True, ensure_ascii=False))
        for each in sorted(documents, key=_turn)
    ]
    return "[\n" + ",\n".join(sorted(shown, key=lambda text: str(json.loads(text)["_id"]))) + "\n]\n"


def from_text(text: str, steady: Steady) -> list[dict[str, Any]]:
    """The documents of a golden file. What was drawn is made of its placeholder's number, and `steady` shows
    it by that placeholder."""

    def filled(found: re.Match[str]) -> str:
        value = _DRAWN[found[1]](int(found[2]))
        steady.name(value, found[0])
        return value

    return [_meant(each) for each in json.loads(_TOKEN.sub(filled, steady.filled(text)))]


def _turn(document: dict[str, Any]) -> list[str]:
    """When its placeholders are numbered: causes in an order that does not follow from which worker was
    first; all others in the order in which they are there."""
    of_cause = ("since", "kind", "subject", "failure") if "failing" in document else ()
    return [str(document[name]) for name in of_cause]


def _steadied(document: dict[str, Any]) -> dict[str, Any]:
    """With the partition that follows from a drawn id as that, and without what depends on what was recorded
    at the same moment: a last run that succeeded, which events tell too, and which of several failures is the
    example of a cause."""
    if document.get("last_run", {}).get("outcome") == "completed":
        document = {name: value for name, value in document.items() if name != "last_run"}
    if document.get("failed", 0) > 1:
        document = document | {"event_id": "any-of-them"}
    owner = document.get("schedule_id") or document["_id"]
    if "partition" not in document or not _RANDOM.search(owner):
        return document
    return document | {"partition": {"$partition_of": owner}}


def _shown(value: Any) -> Any:
    match value:
        case dict():
            return {
                name: sorted(map(_shown, each), key=str) if name in _UNORDERED else _shown(each)
                for name, each in value.items()
            }
        case list():
            return [_shown(each) for each in value]
        case datetime():
            return {"$date": value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")}
        case ObjectId():
            return {"$oid": str(value)}
        case Int64():
            return {"$long": int(value)}
        case bytes() if value.startswith(b"gAAAA"):
            return {"$sealed": _shown(bson.decode(FERNET.decrypt(value)))}
        case bytes():
            return {"$bytes": value.decode("latin-1")}
    return value


def _meant(value: Any) -> Any:
    if isinstance(value, list):
        return [_meant(each) for each in value]
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("$date", "<real time>")]:
            return datetime.now(UTC)
        case [("$date", str() as text)]:
            return datetime.fromisoformat(text)
        case [("$partition_of", text)]:
            return partition_of(text)
        case [("$oid", text)]:
            return ObjectId(text)
        case [("$long", number)]:
            return Int64(number)
        case [("$bytes", text)]:
            return text.encode("latin-1")
        case [("$sealed_text", text)]:
            return FERNET.encrypt(text.encode()).decode()
        case [("$sealed", inner)]:
            return FERNET.encrypt(bson.encode(_meant(inner)))
    return {name: _meant(each) for name, each in value.items()}
