"""The audit: lines that are written with the changes they tell of, in one transaction.

A line is never changed afterwards but for its place in the chain, which a beat gives it within seconds:
writers do not wait for each other. A new schedule has its line in its own document until a beat has moved it.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Protocol, TypeVar, cast

from bson import ObjectId
from pymongo.errors import BulkWriteError

from scheduler_app.domain.act import ActorKind
from scheduler_app.domain.audit import AuditLine, Change, difference_of
from scheduler_app.domain.ids import WholeId, tenant_of
from scheduler_app.store.audit_lines import (
    BY_RESOURCE,
    OF_ALL,
    new_line_document,
    plain_fields,
    read_line,
    with_names,
)
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.faults import STORE_FAULTS, only_duplicates
from scheduler_app.store.mongo import BY_ID, Document, Documents, Mongo, is_in_transaction, met_another_write
from scheduler_app.store.paging import Page, PagedQuery, PageRequest, RowFilter

#: How often a change is tried again that met a write of somebody else, and how long it waits at most between.
TRIES: Final = 20
MAX_PAUSE_SECONDS: Final = 0.05

Result = TypeVar("Result")
#: What is told of a document, with nothing secret in it.
Shown = Callable[[Document], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which lines; None for all."""

    who: str | None = None
    """Done by the key or the person of this name."""
    what: str | None = None
    kind: str | None = None
    resource: str | None = None
    """The whole id of a resource of that kind."""
    of_installation: bool = False
    """Whether lines are among them that are no single tenant's matter."""
    are_changes: bool = False
    """Only what people and programs have changed: no sign-ins, and nothing that the scheduler did by
    itself."""


class Audit:
    """Every change of what people keep goes through `change`, or brings its line itself."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._lines = mongo.collection("audit")
        self._majority = mongo.majority("audit")

    # -- written with what they tell of --------------------------------------------------------------------

    def change(self, change: Change | Callable[[Any], Change], write: Callable[[], Result]) -> Result:
        """Does `write` and its line, both or neither; there is no line where it returns None or False, which
        say that it has changed nothing. It may be called several times. A `change` that is a function is made
        of what it returns. Raises a STORE_FAULT."""

        def told(result: Result) -> Change | None:
            if result is None or result is False:
                return None
            return change if isinstance(change, Change) else change(result)

        return self._written(told, write)

    def change_of(
        self,
        documents: Documents,
        kind: str,
        resource: WholeId,
        write: Callable[[], Result],
        *,
        row_ids: Sequence[str] = (),
        what: str = "",
        shown: Shown | None = None,
        of_installation: Callable[[Document], bool] = lambda row: False,
    ) -> Result:
        """`change` for a resource that is one document: there is a line where the document differs before and
        after, and that is what it tells. It says what was done where `what` is empty."""
        which = {"_id": {"$in": list(row_ids or (resource,))}}
        before: Document | None = None

        def written() -> Result:
            nonlocal before
            before = documents.find_one(which, hint=BY_ID)
            return write()

        def change() -> Change | None:
            after = documents.find_one(which, hint=BY_ID)
            if before == after:
                return None
            was, will = (
                with_names((shown or plain_fields)(row), tenant_of(resource)) if row else {}
                for row in (before, after)
            )
            done = what or ("edited" if before and after else "created" if after else "deleted")
            version = (after or {}).get("version")
            told = difference_of(was, will)
            whole_version = version if type(version) is int else 0
            is_installations = of_installation(after or before or {})
            return Change(done, kind, resource, told, whole_version, is_installations)

        return self._written(lambda result: change(), written)

    def note(self, change: Change, line_id: str | None = None) -> None:
        """Writes the line of an act that changes nothing people keep, such as a wrong key; once under an id.
        Raises a STORE_FAULT."""
        if not self._mongo.is_dry_run:
            insert_new(self._lines, [new_line_document(change, line_id)])

    def _written(self, change: Callable[[Result], Change | None], write: Callable[[], Result]) -> Result:
        if self._mongo.is_dry_run:
            return write()
        line_id = str(ObjectId())
        for number in range(TRIES):
            try:
                with self._mongo.transaction():
                    result = write()
                    made = change(result)
                    if made is not None:
                        self._lines.insert_many([new_line_document(made, line_id)])
                return result
            except _CONFLICTS as error:
                if number == TRIES - 1 or is_in_transaction() or not _may_begin_anew(error):
                    raise
                time.sleep(min(MAX_PAUSE_SECONDS, 0.001 * 2**number))
        raise AssertionError("the last try returns or raises")

    # -- what people ask -----------------------------------------------------------------------------------

    def edits(self, window: PageRequest, schedule_id: str) -> Page[AuditLine]:
        """What was changed of a schedule after it was made, newest first."""
        return self._page(window, {"resource": f"schedule/{schedule_id}"}, BY_RESOURCE, [_IS_EDIT])

    def edits_of_schedules(self, window: PageRequest, schedule_ids: Collection[str]) -> Page[AuditLine]:
        """The edits of several schedules, newest first; mongod merges at most 200 of them in this order."""
        which = {"resource": {"$in": [f"schedule/{each}" for each in schedule_ids]}}
        return self._page(window, which, BY_RESOURCE, [_IS_EDIT], merged=True)

    def edits_of_all(self, window: PageRequest, tenant: str, *, by: str | None = None) -> Page[AuditLine]:
        """The edits of all schedules of a tenant, newest first; those by the key of this name, if it is
        given."""
        conditions: list[Any] = [_IS_EDIT, {"$eq": ["$kind", "schedule"]}]
        if by is not None:
            conditions.append({"$eq": ["$by.name", {"$literal": by}]})
        return self._page(window, {"tenant": tenant}, OF_ALL, conditions)

    def page(self, tenant: str, window: PageRequest, which: AuditFilter) -> Page[AuditLine]:
        """A tenant's lines that match, newest first."""
        chosen, hint = {"tenant": tenant}, OF_ALL
        conditions: list[Any] = [] if which.of_installation else [{"$ne": ["$installation", True]}]
        if which.resource is not None:
            chosen, hint = {"resource": f"{which.kind}/{which.resource}"}, BY_RESOURCE
            conditions.append({"$eq": ["$tenant", {"$literal": tenant}]})
        if which.are_changes:
            conditions += [
                {"$ne": ["$kind", "access"]},
                {"$ne": ["$by.kind", ActorKind.SCHEDULER.value]},
            ]
        asked = {"what": which.what, "kind": which.kind, "by.name": which.who}
        for name, value in asked.items():
            if value is not None:
                conditions.append({"$eq": [f"${name}", {"$literal": value}]})
        return self._page(window, chosen, hint, conditions)

    def _page(
        self,
        window: PageRequest,
        which: Document,
        hint: str,
        conditions: Sequence[Any],
        *,
        merged: bool = False,
    ) -> Page[AuditLine]:
        row_filter = RowFilter({"$and": list(conditions)}) if conditions else None
        found = PagedQuery(self._lines, "at", which, hint, row_filter, merged=merged).page(window)
        return Page(list(map(read_line, found.rows)), found.next)

    def get(self, line_id: str, kind: str, resource: str) -> AuditLine | None:
        """One line of a resource; None if there is none of that id."""
        row = self._majority.find_one({"_id": line_id, "resource": f"{kind}/{resource}"}, hint=BY_ID)
        return read_line(row) if row else None


_CONFLICTS: Final[tuple[type[Exception], ...]] = (*STORE_FAULTS, BulkWriteError)


def _may_begin_anew(error: Exception) -> bool:
    """Also where somebody has inserted the same id since it was looked for."""
    return only_duplicates(error) if isinstance(error, BulkWriteError) else met_another_write(error)


#: People, and not the scheduler, make edits.
_IS_EDIT: Final = {"$and": [{"$ne": ["$what", "created"]}, {"$ne": ["$by.kind", ActorKind.SCHEDULER.value]}]}


class AuditedDocuments:
    """A collection of resources, each of which is one document, and the lines of what is done to them."""

    def __init__(
        self,
        mongo: Mongo,
        documents: Documents,
        kind: str,
        *,
        shown: Shown | None = None,
        row_ids: Callable[[WholeId], Sequence[str]] = lambda resource: (resource,),
        of_installation: Callable[[Document], bool] = lambda row: False,
    ) -> None:
        """`row_ids`: the ids that a resource's document may have. `of_installation` says of a document
        whether it is no single tenant's."""
        self._audit = Audit(mongo)
        self._documents, self._kind, self._row_ids = documents, kind, row_ids
        self._shown, self._of_installation = shown, of_installation

    def write(self, resource: WholeId, write: Callable[[], Result], *, what: str = "") -> Result:
        """Does `write` with its line; see `Audit.change_of`."""
        return self._audit.change_of(
            self._documents,
            self._kind,
            resource,
            write,
            row_ids=self._row_ids(resource),
            what=what,
            shown=self._shown,
            of_installation=self._of_installation,
        )


class HasAudited(Protocol):
    """A store whose verbs are `audited`."""

    audited: AuditedDocuments


def _own_id(resource: Any) -> str:
    return resource if isinstance(resource, str) else str(resource.id)


Verb = TypeVar("Verb", bound=Callable[..., Any])


def audited(what: str = "", *, of: Callable[[Any], str] = _own_id) -> Callable[[Verb], Verb]:
    """Makes a line of what a verb of such a store does. Its first argument is the resource, or its id, or
    something that `of` finds the id by."""

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def with_line(self: HasAudited, resource: Any, *args: Any, **options: Any) -> Any:
            own_id = WholeId(of(resource))
            return self.audited.write(own_id, lambda: verb(self, resource, *args, **options), what=what)

        return cast("Verb", with_line)

    return decorate
