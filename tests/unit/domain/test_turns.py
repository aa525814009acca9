"""Who is served next when several want more than there is."""

from scheduler_app.domain.action import in_turn


def first(item: str) -> str:
    return item[0]


def second(item: str) -> str:
    return item[1]


def test_each_owner_has_one_item_in_turn_and_keeps_its_own_order() -> None:
    assert list(in_turn(["a1", "a2", "a3", "b1", "c1", "c2"], first)) == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_within_an_owner_the_next_kind_of_owner_has_its_turns() -> None:
    items = ["ax1", "ax2", "ax3", "ay1", "bz1", "bz2"]
    assert list(in_turn(items, first, second)) == ["ax1", "bz1", "ay1", "bz2", "ax2", "ax3"]


def test_a_few_items_behind_very_many_are_served_with_the_first() -> None:
    many = [f"a{number}" for number in range(10_000)]
    assert set(list(in_turn([*many, "b1", "b2"], first))[:4]) == {"a0", "b1", "a1", "b2"}


def test_a_single_owner_or_none_changes_nothing() -> None:
    assert list(in_turn(["a2", "a1"], first)) == ["a2", "a1"]
    assert list(in_turn(["b", "a"])) == ["b", "a"]
    assert list(in_turn([], first)) == []
