"""What MongoDB examines for the queries of a call, and for how long at most."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from scheduler_app.store import Store
from scheduler_app.store.mongo import Document

Answer = TypeVar("Answer")


class Examined(NamedTuple):
    """How many index entries and documents."""

    keys: int
    documents: int


def examined(store: Store, run: Callable[[], Answer]) -> tuple[Answer, Examined]:
    """What `run` returns, and what MongoDB examined for its finds and aggregations."""
    answer, rows = _profiled(store, run)
    return answer, Examined(
        sum(row["keysExamined"] for row in rows), sum(row["docsExamined"] for row in rows)
    )


def time_limits(store: Store, run: Callable[[], object]) -> list[int | None]:
    """The milliseconds after which MongoDB gives each of the queries of `run` up."""
    return [row["command"].get("maxTimeMS") for row in _profiled(store, run)[1]]


def _profiled(store: Store, run: Callable[[], Answer]) -> tuple[Answer, list[Document]]:
    db = store.mongo.db
    db.command("profile", 2)
    try:
        answer = run()
    finally:
        db.command("profile", 0)
    asked = [{"op": {"$in": ["query", "getmore"]}}, {"command.aggregate": {"$exists": True}}]
    finds = {"$or": asked, "ns": {"$not": {"$regex": "profile"}}}
    rows: list[Document] = list(db.system.profile.find(finds))
    db.drop_collection("system.profile")
    assert rows
    return answer, rows
