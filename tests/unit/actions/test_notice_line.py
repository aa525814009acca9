"""Whatever services of one tenant hang, notices of others have a process at once."""

from scheduler_app.actions.notice.line import NoticeLine, NoticeOwner


def begun(line: NoticeLine[int]) -> list[NoticeOwner]:
    found = []
    while (each := line.next()) is not None:
        found.append(each[0])
    return found


def add(line: NoticeLine[int], tenant: str, receivers: int, each: int = 1) -> int:
    """How many it takes."""
    owners = [NoticeOwner(tenant, f"r{number}") for number in range(receivers) for _ in range(each)]
    return sum(line.add(owner, number) for number, owner in enumerate(owners))


def test_a_receiver_that_hangs_holds_up_its_own_notices_alone() -> None:
    line = NoticeLine[int](running=8, held=100)
    add(line, "a", 2, each=9)
    assert begun(line) == [NoticeOwner("a", "r0"), NoticeOwner("a", "r1")]
    line.add(NoticeOwner("a", "r2"), 0)
    assert begun(line) == [NoticeOwner("a", "r2")]
    line.ended(NoticeOwner("a", "r0"))
    assert begun(line) == [NoticeOwner("a", "r0")]


def test_a_tenant_leaves_room_for_the_next_one_and_they_take_turns() -> None:
    line = NoticeLine[int](running=8, held=100)
    add(line, "a", 20)
    assert len(begun(line)) == 4
    for tenant, room in (("b", 2), ("c", 1)):
        add(line, tenant, 5)
        assert [each.tenant for each in begun(line)] == [tenant] * room
    line.ended(NoticeOwner("a", "r0"))
    line.ended(NoticeOwner("a", "r1"))
    assert [each.tenant for each in begun(line)] == ["a", "c"]


def test_a_tenant_holds_no_more_than_are_left() -> None:
    line = NoticeLine[int](running=2, held=100)
    assert add(line, "a", 90) == 50
    assert add(line, "b", 90) == 25
    for _ in range(50):
        for owner in begun(line):
            line.ended(owner)
    assert add(line, "a", 90) == 50
