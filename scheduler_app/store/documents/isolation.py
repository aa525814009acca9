"""One bad document harms only itself: a write that MongoDB rejects is tried again in halves, down to the
single item that is at fault."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from scheduler_app.store.faults import REJECTED, of_one_document
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")


class Isolated(NamedTuple, Generic[Result]):
    """`results` are those of the parts that were accepted. `at_once` says that there was one part, with
    every item."""

    results: list[Result]
    at_once: bool


def isolated(
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Result],
    condemn: Callable[[Item, Exception], bool],
) -> Isolated[Result]:
    """Does `work` on all items together or, where that is rejected, on as large parts as are accepted.

    An item that is rejected alone goes to `condemn`, which sets it aside, or returns False where it finds no
    fault with it. An item without a fault is logged and passed over, and so is one that cannot even be set
    aside: the others go on. If nothing at all was accepted, the
    command itself is at fault, and not what it was done on: then the error is raised, and nothing with a
    sound document is set aside. A rejected part may have been done for some of its items: what was done must
    be read back. Raises a STORE_FAULT, too.
    """
    try:
        return Isolated([work(items)], at_once=True)
    except REJECTED as error:
        if not items:
            raise
        first = error
    results: list[Result] = []
    innocent: list[tuple[Item, Exception]] = []
    parts = _halves(items) if len(items) > 1 else []
    if not parts and not _condemned(condemn, items[0], first):
        raise first
    while parts:
        part = parts.pop()
        try:
            results.append(work(part))
        except REJECTED as error:
            if len(part) > 1:
                parts += _halves(part)
            elif not _condemned(condemn, part[0], error):
                innocent.append((part[0], error))
    if innocent and len(innocent) == len(items):
        raise first
    for item, refusal in innocent:
        log.error(
            "store.rejected",
            message="MongoDB rejects a write to a document with which nothing is wrong; it is passed over",
            item=str(item)[:200],
            error=str(refusal)[:300],
        )
    return Isolated(results, at_once=False)


def _condemned(condemn: Callable[[Item, Exception], bool], item: Item, error: Exception) -> bool:
    """Calls `condemn`. An item that cannot even be set aside is logged and passed over."""
    try:
        return condemn(item, error)
    except REJECTED as worse:
        if not of_one_document(worse):
            raise
    log.error(
        "store.not_set_aside",
        message="MongoDB rejects every write to a document; it is skipped until the document is corrected",
        item=str(item)[:200],
        error=str(error)[:300],
    )
    return True


def _halves(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Both halves; the first half comes last, because the next part is taken from the end."""
    middle = len(items) // 2
    return [items[middle:], items[:middle]]
