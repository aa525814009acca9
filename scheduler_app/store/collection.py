"""A collection whose verbs raise transient errors as one of STORE_FAULTS (see `faults`)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from pymongo.collection import Collection
from pymongo.cursor import Cursor
from pymongo.errors import OperationFailure

from scheduler_app.store.answer_limit import limited
from scheduler_app.store.faults import raise_judged

Document = dict[str, Any]


class Found(Cursor[Document]):
    """The answer to a `find`, which asks MongoDB when it is read."""

    def __next__(self) -> Document:
        try:
            with limited(self.collection.database.client):
                return self.next()
        except OperationFailure as error:
            raise_judged(error)


class Documents(Collection[Document]):
    """The store reads and writes every collection through one of these."""

    def find(self, *args: Any, **options: Any) -> Found:
        return Found(self, *args, **options)

    def with_options(self, *args: Any, **options: Any) -> "Documents":  # type: ignore[override]
        return documents(super().with_options(*args, **options))


def documents(plain: Collection[Document]) -> Documents:
    """The same collection, whose verbs tell transient errors from rejections."""
    return Documents(
        plain.database,
        plain.name,
        codec_options=plain.codec_options,
        read_preference=plain.read_preference,
        write_concern=plain.write_concern,
        read_concern=plain.read_concern,
    )


def _telling(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def told(self: Documents, *args: Any, **options: Any) -> Any:
        try:
            with limited(self.database.client):
                return verb(self, *args, **options)
        except OperationFailure as error:
            raise_judged(error)

    return told


for _name in (
    *("insert_one", "insert_many", "bulk_write", "update_one", "update_many", "delete_one", "delete_many"),
    *("replace_one", "find_one", "find_one_and_update", "find_one_and_delete", "aggregate", "distinct"),
    *("count_documents", "estimated_document_count", "create_indexes", "index_information"),
):
    setattr(Documents, _name, _telling(getattr(Collection, _name)))
