"""Reads of what waits, in the order of time, in which the backlog of one owner hides nobody else's."""

import math
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final, Protocol, TypeVar

from scheduler_app.clock import monotonic
from scheduler_app.domain.action import in_turn
from scheduler_app.domain.ids import tenant_of
from scheduler_app.store.tenants import Tenants

#: Who has one row of so many in a full read may hide those of others.
HOG_SHARE: Final = 8
#: Reads without those owners. What these rounds do not show waits until it is due.
ROUNDS: Final = 3
#: How often a beat that reads more than it can do looks whether there are tenants.
TENANTS_LOOK_SECONDS: Final = 10.0
#: One second in so many goes into reading behind what fills a read.
BEHIND_SHARE: Final = 6


class Waiting(Protocol):
    @property
    def id(self) -> str: ...


Row = TypeVar("Row", bound=Waiting)


def with_those_behind(
    found: list[Row],
    owner: Callable[[Row], str],
    read_but: Callable[[Collection[str]], list[Row]],
    *,
    full: int,
) -> list[Row]:
    """`found`, and behind it what is read without the owners that have most of it. A read of `full` rows may
    have more behind it."""
    rows, hogs = found, set[str]()
    for _ in range(ROUNDS):
        hogs |= {each for each, count in Counter(map(owner, rows)).items() if count * HOG_SHARE >= full}
        if not hogs or len(rows) < full:
            break
        rows = read_but(hogs)
        there = {each.id for each in found}
        found = found + [each for each in rows if each.id not in there]
    return found


class TenantLook:
    """Whether there are tenants beside `default`, as a beat knows it, which asks now and then."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants
        self._found, self._looked_at = False, -math.inf

    def __call__(self) -> bool:
        """Raises a STORE_FAULT."""
        if monotonic() - self._looked_at >= TENANTS_LOOK_SECONDS:
            self._found = self._tenants.beside_default()
            self._looked_at = monotonic()
        return self._found


def tenant_of_row(row: Waiting) -> str:
    return tenant_of(str(row.id))  # a document that was made by hand may have any id


class TenantTurns:
    """Tenants take turns at what a beat reads in the order of time, also where one of them fills the read.

    To read behind a backlog takes MongoDB the longer, the larger it is. No more than a share of the time is
    spent on that; the reads in between show what the index has first.
    """

    def __init__(self, tenants: Tenants) -> None:
        self._has_tenants = TenantLook(tenants)
        self._read_behind_from = -math.inf

    def of(
        self, found: list[Row], read_but: Callable[[Collection[str]], list[Row]], *, full: int
    ) -> list[Row]:
        """A full read, and what `read_but` finds without the tenants that fill it, in turn among tenants.
        Raises a STORE_FAULT."""
        if not self._has_tenants():
            return found
        if (began := monotonic()) >= self._read_behind_from:
            found = with_those_behind(found, tenant_of_row, read_but, full=full)
            self._read_behind_from = began + (monotonic() - began) * BEHIND_SHARE
        return list(in_turn(found, tenant_of_row))
