"""Beats share the partitions, and with them what there is to read."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.config import Settings
from scheduler_app.domain.action import QueueLengths
from scheduler_app.domain.ids import PARTITIONS, partition_of
from scheduler_app.domain.partitions import UNPARTITIONED, Ownership
from scheduler_app.store import Store
from scheduler_app.usecases.duties import partition_share
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.housekeeping import Inspection, Recovery
from scheduler_app.usecases.duties.partition_share import PartitionShare, lease_seconds
from tests.builders import LONG_OVER, event, schedule
from tests.examined import examined
from tests.integration.usecases.queued import messages

SECOND = timedelta(seconds=1)
ALL = frozenset(range(PARTITIONS + 1))
LONG = 3_600.0
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def publisher(settings: Settings) -> CeleryPublisher:
    return CeleryPublisher(make_app(settings))


def shares(store: Store, count: int, *, seconds: float = LONG) -> list[PartitionShare]:
    """So many beats, when all have looked three times."""
    made = [PartitionShare(store, lease_seconds=seconds) for _ in range(count)]
    look(made)
    return made


def look(beats: Sequence[PartitionShare], times: int = 3) -> None:
    for _ in range(times):
        for each in beats:
            each.refresh()


def owned(beats: Sequence[PartitionShare]) -> list[frozenset[int]]:
    found = [each.owned() for each in beats]
    assert None not in found
    return [each for each in found if each is not None]


def end_lease(store: Store, number: int = 0) -> str:
    """Lets the lease of one beat be over; the beats in the order of their names."""
    owners = store.mongo.collection("partitions")
    document = owners.find_one({"_id": "owners"})
    assert document is not None
    name: str = list(document["beats"])[number]
    owners.update_one({"_id": "owners"}, {"$set": {f"beats.{name}.until": LONG_AGO}})
    return name


@pytest.mark.parametrize("count", [1, 2, 4])
def test_beats_own_everything_between_them_and_nothing_twice(store: Store, count: int) -> None:
    found = owned(shares(store, count))
    assert frozenset().union(*found) == ALL
    assert sum(map(len, found)) == len(ALL)
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_a_beat_gives_up_what_another_one_then_takes(store: Store) -> None:
    first, second = (PartitionShare(store, lease_seconds=LONG) for _ in range(2))
    first.refresh()
    second.refresh()
    assert owned([second]) == [frozenset()]
    first.refresh()
    (left,) = owned([first])
    assert len(left) in (128, 129)
    second.refresh()
    assert owned([second]) == [ALL - left]


def test_what_a_dead_beat_owned_is_taken_over_and_its_epochs_rise(store: Store) -> None:
    first, second = shares(store, 2)
    (had,) = owned([second])
    owners = store.mongo.collection("partitions")
    before = owners.find_one()
    name = list(before["beats"])[1]  # type: ignore[index]
    owners.update_one({}, {"$set": {f"beats.{name}.until": LONG_AGO}})
    first.refresh()
    assert owned([first]) == [ALL]
    after = owners.find_one()
    assert before is not None
    assert after is not None
    rose = {place for place, epoch in enumerate(after["epochs"]) if epoch > before["epochs"][place]}
    assert rose == set(had)
    assert list(after["beats"]) != list(before["beats"])
    # It was only slow: it is listed again, and gets its share once the other has given it up.
    look([second, first, second])
    assert frozenset().union(*owned([first, second])) == ALL


def test_a_beat_that_ends_frees_its_share_at_once(store: Store) -> None:
    first, second = shares(store, 2)
    second.stop()
    first.refresh()
    assert owned([first]) == [ALL]


def test_of_two_beats_that_see_the_same_free_partitions_one_takes_each(store: Store) -> None:
    first = PartitionShare(store, lease_seconds=LONG)
    seen = store.partition_owners.renew("a", lease_seconds=LONG)
    first.refresh()
    (own,) = owned([first])
    epochs = seen.epochs
    assert not store.partition_owners.change(seen, "a", ALL, epochs=epochs, lease_seconds=LONG)
    assert own


class Turns:
    """In place of the event that ends a thread: a minute of seconds that pass while it is waited for."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return self.passed

    def wait(self, seconds: float) -> bool:
        self.passed += seconds
        return self.passed > 60


@pytest.mark.parametrize(
    ("others", "seconds", "asked"),
    [(0, 3.0, 30), (0, 10.0, 30), (1, 3.0, 60), (0, 1.0, 60)],
    ids=["alone", "alone, long lease", "two", "alone, short lease"],
)
def test_a_beat_that_is_alone_renews_its_lease_every_other_second_and_well_before_its_end(
    others: int, seconds: float, asked: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, renewed, renew = Turns(), list[float](), store.partition_owners.renew
    monkeypatch.setattr(partition_share, "monotonic", turns)
    for number in range(others):
        renew(f"other-{number}", lease_seconds=LONG)
    share = PartitionShare(store, lease_seconds=seconds)
    look([share])

    def noted(beat: str, *, lease_seconds: float) -> Ownership:
        renewed.append(turns.passed)
        return renew(beat, lease_seconds=LONG)  # however long this machine takes, it is not over

    monkeypatch.setattr(store.partition_owners, "renew", noted)
    monkeypatch.setattr(share, "_ended", turns)
    share._keep(lambda: False)
    assert len(renewed) == asked
    assert share.owned() is not None


def test_a_beat_that_is_not_alone_any_more_or_could_not_renew_looks_again_in_the_next_second(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(partition_share, "monotonic", lambda: now[0])
    (share,) = shares(store, 1)
    now[0] = 1.0
    assert share._may_skip_a_turn()
    now[0] = 2.0
    assert not share._may_skip_a_turn()
    store.partition_owners.renew("other", lease_seconds=LONG)
    share.refresh()
    now[0] = 3.0
    assert not share._may_skip_a_turn(), "it has given up a half, which the other one has not taken yet"


def test_a_beat_that_renews_while_another_removes_it_stays(store: Store) -> None:
    first, second = shares(store, 2)
    end_lease(store, 1)
    owners = store.partition_owners
    name = first._beat
    seen = owners.renew(name, lease_seconds=LONG)
    second.refresh()
    assert not owners.change(seen, name, ALL, epochs=seen.epochs, lease_seconds=LONG)


def test_a_beat_that_has_not_renewed_within_its_lease_reads_everything(store: Store) -> None:
    share = PartitionShare(store, lease_seconds=0.0)
    share.refresh()
    assert share.owned() is None


@pytest.mark.parametrize(
    "damage",
    [
        {"$set": {"beats": []}},
        {"$set": {"beats": "x"}},
        {"$set": {"version": "x"}},
        {"$unset": {"version": ""}},
        {"$set": {"epochs": "x"}},
        {"$set": {"epochs": [1, "x"]}},
    ],
)
def test_a_damaged_document_of_the_owners_is_replaced(store: Store, damage: dict[str, object]) -> None:
    (share,) = shares(store, 1)
    store.mongo.collection("partitions").update_one({}, damage)
    look([share])
    assert share.owned() == ALL


@pytest.mark.parametrize(
    ("horizon", "ticker", "seconds"), [(5.0, 1.0, 3.0), (9.0, 5.0, 3.0), (60.0, 1.0, 10.0), (5.0, 4.5, 1.0)]
)
def test_a_lease_is_over_before_what_was_dispatched_ahead_is_due(
    horizon: float, ticker: float, seconds: float
) -> None:
    assert lease_seconds(horizon_seconds=horizon, ticker_seconds=ticker) == seconds


def dispatches(store: Store, publisher: CeleryPublisher, beats: Sequence[PartitionShare]) -> list[Dispatch]:
    return [Dispatch(store, publisher, horizon_seconds=5, partitions=each.owned) for each in beats]


def test_the_documents_examined_for_an_event_are_the_same_with_one_two_and_four_beats(
    store: Store, publisher: CeleryPublisher, now: datetime
) -> None:
    found = {}
    for count in (1, 2, 4):
        events = [event(now + SECOND, f"{count}-s{number}") for number in range(2_000)]
        store.events.insert(events, now, "made")
        all_of_them = dispatches(store, publisher, shares(store, count))

        def tick(beats: Sequence[Dispatch] = all_of_them) -> int:
            return sum(each.dispatch_page(now).dispatched for each in beats)

        sent, seen = examined(store, tick)
        assert sent == len(events)
        found[count] = seen.documents / len(events)
        store.mongo.collection("partitions").drop()
    assert max(found.values()) <= 1.15 * min(found.values()), found


def test_beats_expand_their_own_schedules_alone(store: Store, now: datetime) -> None:
    rule = f"DTSTART:{now:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=MINUTELY;COUNT=3"
    made = [schedule(now, f"s{number}", rrule=rule) for number in range(40)]
    store.schedules.insert_many(made)
    beats = [Expansion(store, timeframe_seconds=600, partitions=each.owned) for each in shares(store, 2)]

    def tick() -> list[int]:
        return [each.expand_page(now).claimed for each in beats]

    claimed, seen = examined(store, tick)
    assert sum(claimed) == len(made)
    assert all(claimed)
    # Each is read to be found, and read once it is claimed.
    assert seen.documents == 2 * len(made)


def test_lost_messages_are_looked_for_by_the_owner_alone(store: Store, now: datetime) -> None:
    made = [event(now - timedelta(minutes=5), f"s{number}") for number in range(20)]
    store.events.insert(made, now, "made")
    gone = {"state": "worker_queue", "dispatched_at": now - timedelta(minutes=4), "dispatches": 1}
    store.mongo.collection("events").update_many({}, {"$set": gone})
    mine = frozenset({made[0].partition})
    own = [each.id for each in made if each.partition in mine]
    owner = Recovery(store, partitions=lambda: mine)
    assert owner.recover_messages(now, queue=QueueLengths()).messages == len(own)
    found = store.mongo.collection("events").distinct("_id", {"state": "ready_queue"})
    assert sorted(found) == sorted(own)
    all_others = Recovery(store).recover_messages(now, queue=QueueLengths())
    assert all_others.messages == len(made) - len(own)
    assert Recovery(store).named_queues() == []


@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_running_event_is_looked_at_by_its_owner_alone(store: Store, now: datetime, count: int) -> None:
    made = [event(now, f"s{number}") for number in range(100)]
    store.events.insert(made, now, "made")
    store.claims.claim([each.id for each in made], until=now, now=now, lease_seconds=LONG, worker="w")
    beats = [Recovery(store, partitions=each.owned) for each in shares(store, count)]

    def tick() -> int:
        return sum(each.recover_workers(now).workers for each in beats)

    recovered, seen = examined(store, tick)
    assert (recovered, seen.documents) == (0, len(made))


def test_leases_that_are_over_are_ended_by_one_beat_or_another(store: Store, now: datetime) -> None:
    made = [event(now, f"s{number}") for number in range(100)]
    store.events.insert(made, now, "made")
    store.claims.claim([each.id for each in made], until=now, now=now, lease_seconds=LONG_OVER, worker="w")
    ended = [Recovery(store, partitions=each.owned).recover_workers(now).workers for each in shares(store, 2)]
    assert sum(ended) == len(made)
    assert all(ended)


@pytest.mark.parametrize("stored", [{"$unset": {"partition": ""}}, {"$set": {"partition": None}}])
def test_what_has_no_partition_belongs_to_one_beat_like_any_partition(
    store: Store, publisher: CeleryPublisher, redis_url: str, now: datetime, stored: dict[str, object]
) -> None:
    made = event(now + SECOND, "old")
    store.events.insert([made], now, "made")
    store.mongo.collection("events").update_one({}, stored)
    beats = shares(store, 2)
    for beat, own in zip(dispatches(store, publisher, beats), owned(beats), strict=True):
        assert beat.dispatch_page(now).dispatched == (UNPARTITIONED in own)
    (message,) = messages(redis_url)
    assert message["ids"] == [made.id]


def test_an_inspection_gives_the_schedules_of_older_releases_their_partitions(
    store: Store, now: datetime
) -> None:
    made = [schedule(now, f"s{number}") for number in range(3)]
    store.schedules.insert_many(made)
    schedules = store.mongo.collection("schedules")
    schedules.update_many({"_id": {"$in": ["s0", "s1"]}}, {"$unset": {"partition": ""}})
    schedules.update_one({"_id": "s2"}, {"$set": {"partition": 7}})
    Inspection(store).inspect(now)
    found = {row["_id"]: row.get("partition") for row in schedules.find({}, {"partition": 1})}
    assert found == {"s0": partition_of("s0"), "s1": partition_of("s1"), "s2": 7}


def test_a_stopped_beat_that_publishes_after_another_took_over_sends_nothing_twice(
    store: Store, publisher: CeleryPublisher, redis_url: str, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands still between reading what is due and marking it; meanwhile its lease ends, and the other one
    dispatches."""
    made = [event(now + SECOND, f"s{number}") for number in range(50)]
    store.events.insert(made, now, "made")
    stopped, other = shares(store, 2)
    (theirs,) = owned([stopped])
    read = store.outbox.due

    def stands_still(*args: object, **options: object) -> object:
        found = read(*args, **options)  # type: ignore[arg-type]
        monkeypatch.setattr(store.outbox, "due", read)
        end_lease(store)
        other.refresh()
        assert owned([other]) == [ALL]
        assert dispatches(store, publisher, [other])[0].dispatch_page(now).dispatched == len(made)
        return found

    monkeypatch.setattr(store.outbox, "due", stands_still)
    assert dispatches(store, publisher, [stopped])[0].dispatch_page(now).dispatched == 0
    sent = [one for message in messages(redis_url) for one in message["ids"]]
    assert sorted(sent) == sorted(each.id for each in made)
    assert any(partition_of(each.schedule_id) in theirs for each in made)
