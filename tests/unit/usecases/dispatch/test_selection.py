"""Which of the waiting events a beat takes, and in which order; the bounds are smaller than the real ones."""

from bisect import insort
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.action import FRESH_FOR
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.states import SUSPECT_AFTER
from scheduler_app.store.events.outbox import DueEvent
from scheduler_app.usecases.duties import dispatch_selection, fair_reads
from scheduler_app.usecases.duties.dispatch_selection import (
    FIRST_SLICE,
    SLICE,
    DispatchSelection,
    Room,
    select,
)

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
UNTIL = NOW + timedelta(seconds=60)
MOMENT = timedelta(milliseconds=1)
LONG_AGO = NOW - 2 * FRESH_FOR
ROOM = Room(10, 10, 10)
CANDIDATES, HOG = 40, 10


class Waiting:
    """Events as the outbox gives them: the soonest first. `reads` are the answers' sizes."""

    def __init__(self, events: Sequence[DueEvent]) -> None:
        self._events: list[DueEvent] = []
        for each in events:
            insort(self._events, each)
        self.reads: list[tuple[int, datetime | None, frozenset[str]]] = []

    def __call__(
        self,
        until: datetime,
        *,
        limit: int,
        after: datetime | None = None,
        but: Collection[str] = (),
        but_tenants: Collection[str] = (),
    ) -> list[DueEvent]:
        found = [
            each
            for each in self._events
            if each.due_at <= until
            and (after is None or each.due_at > after)
            and each.origin not in but
            and tenant_of(each.id) not in but_tenants
        ][:limit]
        self.reads.append((len(found), after, frozenset((*but, *but_tenants))))
        return found


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_selection, "CANDIDATES", CANDIDATES)
    monkeypatch.setattr(fair_reads, "HOG_SHARE", CANDIDATES / HOG)
    monkeypatch.setattr(dispatch_selection, "EVENTS_A_PAGE", 4)


def due(at: datetime, number: int = 0, *, origin: str = "a", schedule: str = "s", lost: int = 0) -> DueEvent:
    return DueEvent(at, f"{schedule}-1-{number:04}", origin, lost)


def many(count: int, at: datetime, *, origin: str = "a", schedule: str = "s") -> list[DueEvent]:
    return [due(at + number * MOMENT, number, origin=origin, schedule=schedule) for number in range(count)]


def origins(events: Sequence[DueEvent]) -> list[str]:
    return [each.origin for each in events]


def test_what_waits_is_parted_into_fresh_and_late_by_one_read() -> None:
    waiting = Waiting(
        [due(NOW, 1), due(LONG_AGO, 2), due(NOW, 3, lost=SUSPECT_AFTER), due(UNTIL + MOMENT, 4)]
    )
    found = select(waiting, NOW, UNTIL, ROOM)
    assert [each.id for each in found.fresh] == ["s-1-0001"]
    assert {each.id for each in found.late} == {"s-1-0002", "s-1-0003"}
    assert not found.more
    assert waiting.reads == [(3, None, frozenset())]


def test_a_backlog_that_there_is_no_room_for_is_not_read() -> None:
    waiting = Waiting([due(LONG_AGO, 1), due(NOW, 2)])
    found = select(waiting, NOW, UNTIL, Room(10, 10, 0))
    assert ([each.id for each in found.fresh], found.late, found.more) == (["s-1-0002"], [], False)
    assert waiting.reads == [(1, NOW - FRESH_FOR, frozenset())]


def test_a_backlog_that_there_is_no_room_for_is_not_read_behind_a_tenant_s_fresh_events_either() -> None:
    last = due(NOW + MOMENT, origin="z", schedule="globex:s")
    waiting = Waiting([*of_tenant("initech", 5, LONG_AGO), *of_tenant("acme", CANDIDATES), last])
    found = select(waiting, NOW, UNTIL, Room(10, 10, 0), lambda: True)
    assert (last in found.fresh, found.late) == (True, [])
    assert {after for _, after, _ in waiting.reads} == {NOW - FRESH_FOR}
    assert (1, NOW - FRESH_FOR, frozenset({"acme"})) in waiting.reads


@pytest.mark.parametrize(("waits", "more"), [(15, False), (16, True)])
def test_what_there_is_no_room_for_waits_and_is_told_of(
    monkeypatch: pytest.MonkeyPatch, waits: int, *, more: bool
) -> None:
    monkeypatch.setattr(dispatch_selection, "EVENTS_A_BATCH", 15)
    found = select(Waiting(many(waits, LONG_AGO)), NOW, UNTIL, Room(0, 0, 1))
    assert (len(found.late), found.more) == (15, more)
    fresh = select(Waiting(many(5, NOW)), NOW, UNTIL, Room(0, 0, 1))
    assert fresh == DispatchSelection([], [], more=False), (
        "nothing can go out: a beat does not look again at once"
    )


def test_a_suspect_takes_a_whole_message() -> None:
    suspects = [due(LONG_AGO + number * MOMENT, number, lost=SUSPECT_AFTER) for number in range(3)]
    assert len(select(Waiting(suspects), NOW, UNTIL, Room(0, 0, 2)).late) == 2
    assert select(Waiting(suspects), NOW, UNTIL, Room(0, 0, 2)).more
    beside = [due(LONG_AGO - MOMENT, 9), *suspects]
    assert len(select(Waiting(beside), NOW, UNTIL, Room(0, 0, 1)).late) == 1


def test_beyond_a_page_origins_and_schedules_take_turns() -> None:
    waiting = Waiting([*many(6, NOW), *many(3, NOW + 10 * MOMENT, origin="b", schedule="t")])
    assert origins(select(waiting, NOW, UNTIL, ROOM).fresh)[:6] == ["a", "b"] * 3
    late = Waiting([*many(6, LONG_AGO), *many(3, LONG_AGO + 10 * MOMENT, origin="b", schedule="t")])
    assert origins(select(late, NOW, UNTIL, ROOM).late)[:6] == ["a", "b"] * 3
    few = Waiting([*many(2, NOW), *many(2, NOW + 10 * MOMENT, origin="b", schedule="t")])
    assert origins(select(few, NOW, UNTIL, ROOM).fresh) == ["a", "a", "b", "b"], "these go out together"
    of_one = Waiting([*many(6, NOW), *many(3, NOW + 10 * MOMENT, schedule="t")])
    assert [each.id[0] for each in select(of_one, NOW, UNTIL, ROOM).fresh][:6] == ["s", "t"] * 3


def test_a_turn_goes_as_far_as_a_slice_of_time() -> None:
    first, second = NOW + FIRST_SLICE - 100 * MOMENT, NOW + FIRST_SLICE
    waiting = Waiting([*many(6, NOW), due(first, 1, origin="b"), due(second, 2, origin="c")])
    assert origins(select(waiting, NOW, UNTIL, ROOM).fresh) == ["a", "b", *["a"] * 5, "c"]
    behind = Waiting([*many(6, second), due(second + SLICE - MOMENT, 1, origin="b")])
    assert origins(select(behind, NOW, UNTIL, ROOM).fresh) == ["a", "b", *["a"] * 5]
    next_slice = Waiting([*many(6, second), due(second + SLICE, 1, origin="b")])
    assert origins(select(next_slice, NOW, UNTIL, ROOM).fresh) == [*["a"] * 6, "b"]


def test_behind_a_full_read_of_one_origin_the_others_are_found() -> None:
    waiting = Waiting([*many(CANDIDATES, NOW), *many(3, NOW + 1_000 * MOMENT, origin="b", schedule="t")])
    found = select(waiting, NOW, UNTIL, ROOM)
    assert origins(found.fresh).count("b") == 3
    assert found.more
    stale = NOW - FRESH_FOR
    assert waiting.reads == [
        (CANDIDATES, None, frozenset()),
        (3, stale, frozenset({"a"})),
    ]


def test_hogs_are_left_out_one_after_the_other_for_a_bounded_number_of_reads() -> None:
    hogs = "abcdefgh"
    events: list[DueEvent] = []
    for place, origin in enumerate(hogs):
        events += many(CANDIDATES, NOW + place * 1_000 * MOMENT, origin=origin, schedule=origin)
    waiting = Waiting(events)
    found = select(waiting, NOW, UNTIL, ROOM)
    assert len(waiting.reads) == 1 + fair_reads.ROUNDS
    assert [but for _, _, but in waiting.reads] == [
        frozenset(hogs[:count]) for count in range(fair_reads.ROUNDS + 1)
    ]
    assert len(found.fresh) == CANDIDATES


def test_a_full_read_without_a_hog_is_enough() -> None:
    events = [
        due(NOW + n * MOMENT, n, origin=f"o{n % 8}", schedule=f"s{n % 8}") for n in range(2 * CANDIDATES)
    ]
    waiting = Waiting(events)
    found = select(waiting, NOW, UNTIL, ROOM)
    assert len(waiting.reads) == 1
    assert (len(found.fresh), found.more) == (CANDIDATES, True)


def test_an_origin_hides_others_from_a_certain_share_of_a_full_read_on() -> None:
    last = due(NOW + 1_000 * MOMENT, origin="z", schedule="z")
    sharing = [event for origin in "abcd" for event in many(HOG, NOW, origin=origin, schedule=origin)]
    assert last in select(Waiting([*sharing, last]), NOW, UNTIL, ROOM).fresh


def test_what_has_just_become_late_is_selected_with_what_is_late() -> None:
    just = due(NOW - FRESH_FOR, 1, origin="b", schedule="t")
    waiting = Waiting([*many(CANDIDATES - 1, LONG_AGO), just, due(NOW, 1)])
    found = select(waiting, NOW, UNTIL, ROOM)
    assert (just in found.late, len(found.fresh)) == (True, 1)


def test_late_events_hide_no_fresh_ones_nor_those_of_other_origins() -> None:
    events = [*many(CANDIDATES, LONG_AGO), due(LONG_AGO + 1_000 * MOMENT, 1, origin="b", schedule="t")]
    events += [*many(CANDIDATES, NOW, origin="c", schedule="u"), due(NOW + 1_000 * MOMENT, 1, origin="d")]
    waiting = Waiting(events)
    found = select(waiting, NOW, UNTIL, ROOM)
    assert set(origins(found.late)) == {"a", "b"}
    assert set(origins(found.fresh)) == {"c", "d"}
    stale = NOW - FRESH_FOR
    assert [(after, but) for _, after, but in waiting.reads] == [
        (None, frozenset()),
        (stale, frozenset()),
        (None, frozenset({"a"})),
        (stale, frozenset({"c"})),
    ]


def test_pages_take_what_is_fresh_first_and_a_share_of_what_is_late() -> None:
    fresh, late = many(30, NOW), many(30, LONG_AGO, origin="b", schedule="t")
    pages = list(DispatchSelection(fresh, late, more=False).pages(16))
    share = 16 // dispatch_selection.LATE_SHARE
    assert origins(pages[0]).count("b") == share
    assert all(page == sorted(page) for page in pages)
    assert sorted(each for page in pages for each in page) == sorted([*fresh, *late])
    assert [len(page) for page in pages] == [16, 16, 16, 12]
    assert [len(page) for page in DispatchSelection(fresh, late[:5], more=False).pages(16)] == [16, 16, 3]
    assert [len(page) for page in DispatchSelection(fresh, [], more=False).pages(16)] == [16, 14]
    assert [len(page) for page in DispatchSelection([], late, more=False).pages(16)] == [16, 14]
    assert list(DispatchSelection([], [], more=False).pages(16)) == []


def of_tenant(tenant: str, count: int, at: datetime = NOW) -> list[DueEvent]:
    """Each calls an origin of its own."""
    return [due(at, number, origin=f"{tenant}{number}", schedule=f"{tenant}:s") for number in range(count)]


@pytest.mark.parametrize("at", [NOW, NOW - FRESH_FOR - MOMENT], ids=["fresh", "late"])
def test_tenants_take_turns_before_their_origins_do(at: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_selection, "EVENTS_A_PAGE", 3)
    events = [*of_tenant("acme", 6, at), *of_tenant("globex", 2, at), *many(2, at)]
    found = select(Waiting(events), NOW, UNTIL, ROOM)
    order = [tenant_of(each.id) for each in (*found.fresh, *found.late)]
    assert sorted(order[:3]) == sorted(order[3:6]) == ["acme", "default", "globex"]
    assert order[6:] == ["acme"] * 4


@pytest.mark.parametrize("at", [NOW, NOW - FRESH_FOR - MOMENT], ids=["fresh", "late"])
def test_a_tenant_with_any_number_of_origins_hides_no_other_tenant(at: datetime) -> None:
    last = due(at + MOMENT, origin="z", schedule="globex:s")
    waiting = Waiting([*of_tenant("acme", 20 * CANDIDATES, at), last])
    assert last not in waiting_without_tenants(waiting)
    waiting.reads.clear()
    found = select(waiting, NOW, NOW + MOMENT, ROOM, lambda: True)
    chosen = [*found.fresh, *found.late]
    assert chosen.index(last) <= 1
    assert frozenset({"acme"}) in [each[2] for each in waiting.reads]


def waiting_without_tenants(waiting: "Waiting") -> list[DueEvent]:
    found = select(waiting, NOW, NOW + MOMENT, ROOM)
    return [*found.fresh, *found.late]


def test_whether_there_are_tenants_is_asked_of_a_full_read_alone() -> None:
    def has_tenants() -> bool:
        raise AssertionError

    assert len(select(Waiting(many(3, NOW)), NOW, UNTIL, ROOM, has_tenants).fresh) == 3
