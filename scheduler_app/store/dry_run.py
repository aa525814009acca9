"""Dry runs: a store whose writes report what they would do, and change nothing.

Writes are judged by the same conditions as real ones, so that a use case with such a store takes the same
path and gives the same answer, refusals included. Every verb that is not known here as a read or as a write
raises `NotInDryRun`: a kind of write that was forgotten here must not happen.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import bson
from bson.raw_bson import RawBSONDocument
from pymongo import ReplaceOne
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError
from pymongo.results import BulkWriteResult, DeleteResult, InsertManyResult, UpdateResult

from scheduler_app.store.faults import DUPLICATE_KEY, raising_store_faults
from scheduler_app.store.mongo import Document, Documents, Mongo

#: Verbs of a collection that are neither here nor in `DryRunDocuments` are refused.
READS = frozenset(
    (
        *("find", "find_one", "find_raw_batches", "count_documents", "estimated_document_count", "distinct"),
        *("with_options", "index_information", "list_indexes", "options", "list_search_indexes"),
    )
)


class NotInDryRun(Exception):
    """A write that a dry run cannot judge."""


class DryRunMongo(Mongo):
    """The same connection, for one request. It remembers what the request would have written."""

    is_dry_run = True

    def __init__(self, real: Mongo) -> None:
        self.client, self.db = real.client, real.db
        self._made: dict[str, dict[Any, Document]] = {}

    def collection(self, name: str) -> Documents:
        return self._dry(super().collection(name))

    def majority(self, name: str) -> Documents:
        return self._dry(super().majority(name))

    def command(self, name: str, value: Any = 1, **options: Any) -> Document:
        raise NotInDryRun(f"the command {name}")

    admin_command = command

    def _dry(self, plain: Documents) -> "DryRunDocuments":
        return DryRunDocuments(plain, self._made.setdefault(plain.name, {}))


class DryRunDocuments(Documents):
    """Documents that would have been written are read back where they are asked for by `_id`. Updates by
    operators (`{"$set": …}`) are judged, and not carried out."""

    def __init__(self, plain: Collection[Document], made: dict[Any, Document]) -> None:
        super().__init__(
            plain.database,
            plain.name,
            codec_options=plain.codec_options,
            read_preference=plain.read_preference,
            write_concern=plain.write_concern,
            read_concern=plain.read_concern,
        )
        self._made = made

    def with_options(self, *args: Any, **options: Any) -> "DryRunDocuments":  # type: ignore[override]
        return DryRunDocuments(super().with_options(*args, **options), self._made)

    # -- reads ---------------------------------------------------------------------------------------------

    def find(self, filter: Any = None, fields: Any = None, *args: Any, **options: Any) -> Any:
        made = self._made_of(filter)
        if not made:
            return super().find(filter, fields, *args, **options)
        rest = {"_id": {"$nin": list(self._made)}}
        real = super().find({"$and": [filter, rest]}, fields)
        return iter([*self._matching(made, filter, fields), *real])

    def find_one(self, filter: Any = None, *args: Any, **options: Any) -> Document | None:
        if self._made_of(filter):
            return next(self.find(filter, *args[:1]), None)
        return super().find_one(filter, *args, **options)

    def aggregate(self, pipeline: Sequence[Mapping[str, Any]], *args: Any, **options: Any) -> Any:
        """Of what is stored; one that writes is refused."""
        if any(name in stage for stage in pipeline for name in ("$out", "$merge")):
            raise NotInDryRun("an aggregation that writes")
        return super().aggregate(pipeline, *args, **options)

    def _made_of(self, which: Any) -> list[Document]:
        if not self._made:
            return []
        ids = _ids(which)
        return [self._made[each] for each in ids if each in self._made]

    def _matching(self, made: Sequence[Document], which: Any, fields: Any = None) -> list[Document]:
        """Those that match, judged by mongod itself."""
        stages: list[Document] = [{"$documents": list(made)}, {"$match": which}]
        with raising_store_faults():
            return list(self.database.aggregate([*stages, {"$project": fields}] if fields else stages))

    # -- writes --------------------------------------------------------------------------------------------

    def insert_many(self, documents: Iterable[Any], *_args: Any, **_options: Any) -> InsertManyResult:
        rows = [self._plain(each) for each in documents]
        there = {row["_id"] for row in self.find({"_id": {"$in": [row["_id"] for row in rows]}}, {"_id": 1})}
        refused = []
        for index, row in enumerate(rows):
            if row["_id"] in there:
                refused.append({"index": index, "code": DUPLICATE_KEY, "errmsg": "duplicate key"})
            else:
                there.add(row["_id"])
                self._made[row["_id"]] = row
        if refused:
            raise BulkWriteError({"writeErrors": refused, "nInserted": len(rows) - len(refused)})
        return InsertManyResult([row["_id"] for row in rows], acknowledged=True)

    def update_one(self, filter: Any, update: Any, **options: Any) -> UpdateResult:  # type: ignore[override]
        return self._updated(filter, update, most=1, **options)

    def update_many(self, filter: Any, update: Any, **options: Any) -> UpdateResult:  # type: ignore[override]
        return self._updated(filter, update, most=0, **options)

    def delete_one(self, filter: Any, **_options: Any) -> DeleteResult:  # type: ignore[override]
        """Judged, and not carried out: nothing asks for it afterwards."""
        found = 0 if self.find_one(filter, {"_id": 1}) is None else 1
        return DeleteResult({"n": found}, acknowledged=True)

    def find_one_and_update(  # type: ignore[override]
        self,
        filter: Any,
        update: Any,
        projection: Any = None,
    ) -> Document | None:
        """The document before, as the real one returns it by default."""
        before = self.find_one(filter, projection)
        self._updated(filter, update, most=1)
        return before

    def bulk_write(self, requests: Sequence[Any], *_args: Any, **_options: Any) -> BulkWriteResult:
        replaced = 0
        for request in requests:
            if not isinstance(request, ReplaceOne):
                raise NotInDryRun(type(request).__name__)
            if self.find_one(request._filter, {"_id": 1}) is not None:
                row = self._plain(request._doc)
                self._made[row["_id"]] = row
                replaced += 1
        return BulkWriteResult({"nMatched": replaced, "nModified": replaced}, acknowledged=True)

    def _updated(
        self, which: Any, change: Any, *, most: int, upsert: bool = False, **_options: Any
    ) -> UpdateResult:
        """`most`: how many at most, 0 for all."""
        if upsert:
            raise NotInDryRun("an upsert")
        ids = _ids(which)
        if not ids:
            matched = min(self.count_documents(which), most or sys.maxsize)
        elif isinstance(change, list):
            matched = self._carry_out(ids, which, change)
        else:
            matched = len(list(self.find(which, {"_id": 1})))
        return UpdateResult({"n": matched, "nModified": matched}, acknowledged=True)

    def _carry_out(self, ids: Sequence[Any], which: Any, pipeline: Sequence[Document]) -> int:
        """Pipelines of updates are stages of aggregations: mongod says what documents would become."""
        before = list(self.find(which))
        if before:
            stages = [{"$documents": before}, *pipeline]
            with raising_store_faults():
                self._made |= {row["_id"]: row for row in self.database.aggregate(stages)}
        return len(before)

    def _plain(self, document: Mapping[str, Any]) -> Document:
        if isinstance(document, RawBSONDocument):
            return bson.decode(document.raw, self.codec_options)
        return dict(document)


def _ids(which: Any) -> list[Any]:
    """The ids that a condition names; none where it chooses by something else."""
    named = which.get("_id") if isinstance(which, Mapping) else None
    if isinstance(named, Mapping):
        named = named.get("$in", named.get("$eq"))
        return list(named) if isinstance(named, list) else [] if named is None else [named]
    return [] if named is None else [named]


def _refused(verb: str) -> Any:
    def refuse(self: DryRunDocuments, *args: Any, **options: Any) -> NoReturn:
        raise NotInDryRun(verb)

    return refuse


for _name in dir(Collection):
    _public = not _name.startswith("_") and callable(getattr(Collection, _name))
    if _public and _name not in READS and _name not in vars(DryRunDocuments):
        setattr(DryRunDocuments, _name, _refused(_name))
