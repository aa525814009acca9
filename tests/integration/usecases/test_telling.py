"""Of each cause somebody is told once, and once when it is over; whoever dies in between."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.domain.cause import Cause, CauseKey, CauseKind, Tally
from scheduler_app.domain.cause_match import CauseMatch
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import http_action
from scheduler_app.domain.ids import TENANT, WholeId, whole_id
from scheduler_app.domain.message import Message
from scheduler_app.domain.notification_rule import (
    MAX_AN_HOUR,
    NotificationHours,
    NotificationRule,
    Told,
)
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.domain.silence import Silence
from scheduler_app.store import Store
from scheduler_app.usecases.duties.telling import RuleTelling
from scheduler_app.usecases.notices import Notices
from tests.builders import notification_rule
from tests.integration.conftest import NOON

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


class Desk:
    """Causes that begin and end, and what a rule tells of them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.new_beat()
        self.dies = False

    def new_beat(self) -> None:
        self.telling = RuleTelling(
            self.store, Notices(self.store, self._send, RetryPolicy(max_retries=3), "https://rrs.example")
        )

    def _send(self, made: Sequence[Event], now: datetime) -> None:
        if self.dies:
            raise AutoReconnect("it dies here")
        self.store.messages.insert_many(made, now)

    def rule(self, name: str = "ops", **given: Any) -> NotificationRule:
        made = notification_rule(NOON, name, **given)
        self.store.notification_rules.put(made)
        return made

    def fails(
        self,
        at: datetime = NOON,
        receiver: str = "http://127.0.0.1:1",
        *,
        schedules: int = 1,
        tags: Sequence[str] = (),
        dead: int = 0,
        kind: CauseKind = CauseKind.FAILING,
        event_id: str = "s0-1-x",
        tenant: str = TENANT,
    ) -> None:
        self.store.causes.touch([self.tally(at, receiver, schedules, tags, dead, kind, event_id, tenant)])

    def tally(
        self,
        at: datetime,
        receiver: str,
        schedules: int = 1,
        tags: Sequence[str] = (),
        dead: int = 0,
        kind: CauseKind = CauseKind.FAILING,
        event_id: str = "s0-1-x",
        tenant: str = TENANT,
    ) -> Tally:
        failure = "status 500" if kind is CauseKind.FAILING else ""
        made = Tally(CauseKey(tenant, kind, receiver, failure), at, at)
        made.failed, made.gave_up, made.dead, made.event_id = max(1, schedules), dead, dead, event_id
        made.error = "status 500"
        made.schedules = {whole_id(tenant, f"s{number}"): at for number in range(schedules)}
        made.tags = dict.fromkeys(tags)
        return made

    def over(self, now: datetime) -> None:
        self.store.causes.write([each.over(now) for each in self.store.causes.living()])

    def tell(self, now: datetime) -> None:
        self.telling.tell_page(now)

    @property
    def causes(self) -> list[Cause]:
        return self.store.causes.living()

    @property
    def told(self) -> list[dict[str, Any]]:
        """The bodies of all messages that were made, in their order."""
        rows = (
            self.store.mongo.collection("events")
            .find({"kind": "message"})
            .sort([("run_time", 1), ("_id", 1)])
        )
        records = self.store.messages.get_many([row["_id"] for row in rows])
        found = []
        for record in sorted(records.values(), key=lambda each: (each.event.run_time, each.event.id)):
            content = record.content
            assert isinstance(content, Message)
            assert content.signing is not None
            request = http_action(content.action)
            assert request.body is not None
            assert request.url == "http://127.0.0.1:9/alerts"
            found.append(request.body.shown())
        return found

    @property
    def types(self) -> list[str]:
        return [each["type"] for each in self.told]


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def test_one_message_tells_of_a_receiver_and_one_that_it_is_over(desk: Desk) -> None:
    desk.rule()
    desk.fails(schedules=500, tags=("customer:x",))
    desk.tell(NOON + 59 * SECOND)
    assert desk.told == []
    for second in (60, 61, 62):
        desk.tell(NOON + second * SECOND)
    [told] = desk.told
    assert (told["type"], told["timestamp"]) == ("failure.began", "2026-03-02T12:01:00Z")
    failure = told["data"]["failure"]
    assert failure["schedules"]["count"] == 500
    assert len(failure["schedules"]["first"]) == 20
    assert failure["tags"] == {"count": 1, "first": ["customer:x"]}
    assert failure["url"] == f"https://rrs.example/api/v1/failures/{desk.causes[0].id}"
    assert told["data"]["text"] == (
        "failing: http://127.0.0.1:1 (status 500), since 2026-03-02T12:00:00Z, 500 schedules"
    )
    desk.over(NOON + HOUR)
    for second in (1, 2):
        desk.tell(NOON + HOUR + second * SECOND)
    assert desk.types == ["failure.began", "failure.over"]
    assert desk.store.tellings.open(WholeId("ops")) == {}
    assert desk.store.tellings.owed(WholeId("ops")) == []
    assert desk.told[1]["data"]["failure"]["over_at"] == "2026-03-02T13:00:00Z"
    # What fails again is another failure.
    desk.fails(NOON + 2 * HOUR)
    desk.tell(NOON + 2 * HOUR + MINUTE)
    assert desk.types == ["failure.began", "failure.over", "failure.began"]


def test_a_fact_is_told_once_by_those_who_ask_for_it(desk: Desk) -> None:
    desk.rule("usual", remind_seconds=600.0)
    desk.rule("facts", on=(Told.KILL_SWITCH, Told.RECOVERED), remind_seconds=600.0)
    desk.fails(receiver="all", kind=CauseKind.KILL_SWITCH)
    for minute in (1, 20, 60):
        desk.tell(NOON + minute * MINUTE)
    desk.over(NOON + 2 * HOUR)
    desk.tell(NOON + 2 * HOUR + MINUTE)
    [told] = desk.told
    assert (told["type"], told["data"]["notification"]) == ("failure.began", "facts")
    assert desk.store.tellings.open(WholeId("facts")) == {}


def test_what_lasts_for_a_moment_is_not_told(desk: Desk) -> None:
    desk.rule()
    desk.fails()
    desk.tell(NOON + 30 * SECOND)
    desk.over(NOON + 40 * SECOND)
    desk.tell(NOON + 2 * MINUTE)
    assert desk.told == []


def test_a_beat_that_dies_before_its_message_is_made_loses_none_and_repeats_none(desk: Desk) -> None:
    desk.rule()
    desk.fails()
    desk.dies = True
    with pytest.raises(AutoReconnect):
        desk.tell(NOON + MINUTE)
    desk.dies = False
    desk.new_beat()
    desk.tell(NOON + MINUTE + SECOND)
    assert desk.told == []  # the turn of the one that died is not over
    desk.store.mongo.collection("notifications").update_one({}, {"$unset": {"turn": ""}})
    desk.tell(NOON + MINUTE + 2 * SECOND)
    desk.tell(NOON + MINUTE + 3 * SECOND)
    assert desk.types == ["failure.began"]
    # Dying after the message was made and before that was noted makes the same one again.
    desk.store.mongo.collection("tellings").update_many({}, {"$set": {"owed": True}})
    desk.tell(NOON + MINUTE + 4 * SECOND)
    assert desk.types == ["failure.began"]


@pytest.mark.parametrize("count", [500, pytest.param(5_000, marks=pytest.mark.long)])
def test_thousands_at_once_are_a_few_messages_the_last_of_which_says_how_many_more(
    desk: Desk, count: int
) -> None:
    desk.rule()
    many = [desk.tally(NOON, f"http://127.0.0.1:{port}") for port in range(1, count + 1)]
    desk.store.causes.touch(many)
    for second in range(60, 100, 5):
        desk.tell(NOON + second * SECOND)
    assert len(desk.told) == MAX_AN_HOUR
    last = desk.told[-1]["data"]
    assert last["more"] == count - MAX_AN_HOUR
    assert last["text"].endswith(f"and {count - 20} more")
    assert len(last["others"]) == 19
    # What begins later in the hour waits for the next.
    desk.fails(NOON + 5 * MINUTE, "http://127.0.0.1:9001")
    desk.tell(NOON + 30 * MINUTE)
    assert len(desk.told) == MAX_AN_HOUR
    desk.tell(NOON + 2 * HOUR)
    assert len(desk.told) == MAX_AN_HOUR + 1
    desk.over(NOON + 2 * HOUR + MINUTE)
    for second in range(0, 40, 5):
        desk.tell(NOON + 2 * HOUR + MINUTE + second * SECOND)
    ends = [each for each in desk.told if each["type"] == "failure.over"]
    assert len(ends) == MAX_AN_HOUR
    assert sum(1 + each["data"].get("more", 0) for each in ends) == count + 1


def test_it_reminds_as_often_as_it_is_asked_to(desk: Desk) -> None:
    desk.rule(remind_seconds=600.0)
    desk.fails()
    for minute in (1, 2, 10, 11, 12, 21):
        desk.tell(NOON + minute * MINUTE)
        desk.tell(NOON + minute * MINUTE + SECOND)
    assert desk.types == ["failure.began", "failure.reminder", "failure.reminder"]
    # Two that were due while no beat was there are one.
    desk.tell(NOON + 52 * MINUTE)
    assert desk.types.count("failure.reminder") == 3


def test_a_silence_holds_back_until_it_ends(desk: Desk) -> None:
    desk.rule(remind_seconds=300.0)
    desk.store.silences.put(
        Silence(
            id=WholeId("night"),
            match=CauseMatch(tags=("customer:*",)),
            until=NOON + HOUR,
            reason="an upgrade",
            created_at=NOON,
        )
    )
    desk.fails(tags=("customer:x",))
    desk.fails(receiver="http://127.0.0.1:2", tags=("other",))
    desk.tell(NOON + 30 * MINUTE)
    assert ["127.0.0.1:2" in each["data"]["text"] for each in desk.told] == [True]
    desk.tell(NOON + HOUR + SECOND)
    assert sum("127.0.0.1:1 " in each["data"]["text"] for each in desk.told) == 1


def test_the_end_of_what_was_told_is_told_in_spite_of_a_silence(desk: Desk) -> None:
    desk.rule()
    desk.fails()
    desk.tell(NOON + MINUTE)
    everything = Silence(
        id=WholeId("all"), match=CauseMatch(), until=NOON + HOUR, reason="why", created_at=NOON
    )
    desk.store.silences.put(everything)
    desk.over(NOON + 2 * MINUTE)
    desk.tell(NOON + 3 * MINUTE)
    assert desk.types == ["failure.began", "failure.over"]


def test_outside_of_its_hours_it_waits(desk: Desk) -> None:
    hours = NotificationHours.of({"cron": "0 14 * * *"}, 2 * HOUR, NOON, "UTC")
    desk.rule(hours=hours)
    desk.fails()
    desk.tell(NOON + HOUR)
    assert desk.told == []
    desk.tell(NOON + 2 * HOUR)
    assert desk.types == ["failure.began"]


def test_silence_hours_and_reminders_each_have_an_end(desk: Desk) -> None:
    hours = NotificationHours.of({"cron": "0 14 * * *"}, 2 * HOUR, NOON, "UTC")
    desk.rule(hours=hours, remind_seconds=600.0)
    everything: dict[str, Any] = {"match": CauseMatch(), "reason": "why", "created_at": NOON}
    desk.store.silences.put(Silence(id=WholeId("all"), until=NOON + 150 * MINUTE, **everything))
    desk.fails()
    told: list[str] = ["failure.began", "failure.reminder"]
    for minute, number in ((130, 0), (151, 1), (162, 2), (245, 2)):
        desk.tell(NOON + minute * MINUTE)
        assert desk.types == told[:number], minute
    # It is over outside of the hours: that waits for them, too, and no reminder follows.
    desk.over(NOON + 270 * MINUTE)
    desk.tell(NOON + 300 * MINUTE)
    assert desk.types == told
    for minute in (121, 140):
        desk.tell(NOON + timedelta(days=1, minutes=minute))
        assert desk.types == [*told, "failure.over"]


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ({"match": CauseMatch(tags=("customer:*",))}, True),
        ({"match": CauseMatch(tags=("cust",))}, False),
        ({"match": CauseMatch(schedules=("s1", "s499"))}, True),
        ({"match": CauseMatch(schedules=("s500",))}, False),
        ({"match": CauseMatch(destinations=("erp",))}, True),
        ({"match": CauseMatch(destinations=("erp2",))}, False),
        ({"match": CauseMatch(tags=("customer:*",), destinations=("erp2",))}, False),
        ({"on": (Told.LATE, Told.RECOVERED)}, False),
    ],
    ids=str,
)
def test_a_rule_is_about_what_it_names(desk: Desk, given: dict[str, Any], is_told: bool) -> None:
    desk.rule(**given)
    desk.fails(receiver="destination erp", schedules=500, tags=("customer:x", "team:[a]"))
    desk.tell(NOON + MINUTE)
    assert bool(desk.told) is is_told


def test_a_bracket_in_a_pattern_is_a_bracket(desk: Desk) -> None:
    desk.rule(match=CauseMatch(tags=("team:[a]",)))
    desk.fails(tags=("team:a",))
    desk.tell(NOON + MINUTE)
    assert desk.told == []
    desk.fails(receiver="http://127.0.0.1:2", tags=("team:[a]",))
    desk.tell(NOON + MINUTE)
    assert len(desk.told) == 1


def test_a_rule_is_told_nothing_of_another_tenant(desk: Desk) -> None:
    desk.rule()
    desk.fails(tenant="acme")
    desk.tell(NOON + MINUTE)
    assert desk.told == []


def test_dead_letters_are_told_where_that_is_asked_for(desk: Desk) -> None:
    desk.rule(on=(Told.DEAD_LETTER,))
    desk.fails()
    desk.tell(NOON + MINUTE)
    assert desk.told == []
    desk.fails(NOON + 2 * MINUTE, dead=3)
    for minute in (2, 3, 4):
        desk.tell(NOON + minute * MINUTE)
    assert desk.types == ["failure.dead_letters"]


def test_a_dismissed_failure_is_told_no_more(desk: Desk) -> None:
    desk.rule(remind_seconds=300.0)
    desk.fails()
    desk.tell(NOON + MINUTE)
    desk.store.causes.write([each.dismissed(NOON + 2 * MINUTE, "ann", "") for each in desk.causes])
    desk.tell(NOON + 10 * MINUTE)
    desk.over(NOON + 20 * MINUTE)
    desk.tell(NOON + 21 * MINUTE)
    assert desk.types == ["failure.began"]


def test_what_is_dismissed_before_it_is_told_is_not_told(desk: Desk) -> None:
    desk.rule()
    desk.fails()
    desk.store.causes.write([each.dismissed(NOON + SECOND, "ann", "") for each in desk.causes])
    desk.tell(NOON + MINUTE)
    assert desk.told == []


def test_notifications_that_fail_are_told_by_none(desk: Desk) -> None:
    desk.rule()
    desk.fails(receiver="http://127.0.0.1:9", schedules=0, event_id="msg_ops-x-begin-on-notice-0")
    desk.tell(NOON + MINUTE)
    assert desk.told == []
    # A message that a person sends is another matter.
    desk.fails(receiver="http://127.0.0.1:8", schedules=0, event_id="msg_of-a-person")
    desk.tell(NOON + MINUTE)
    assert desk.types == ["failure.began"]


def test_a_rule_that_is_gone_owes_nothing(desk: Desk) -> None:
    desk.rule()
    desk.fails()
    desk.tell(NOON + MINUTE)
    desk.store.notification_rules.delete(WholeId("ops"))
    desk.store.tellings.forget(WholeId("ops"), NOON + 2 * MINUTE)
    desk.over(NOON + 3 * MINUTE)
    desk.tell(NOON + 4 * MINUTE)
    assert desk.types == ["failure.began"]
