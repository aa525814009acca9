"""What each claimed event becomes: an attempt, or the result that it ends with instead."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event, token_digest
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.message import UnreadableMessage
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import SUSPECT_AFTER, Kind, State
from scheduler_app.store import Store
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.events.completions import Completions, ExpectedCompletion
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.attempt_maker import (
    LEFT_TO_OTHERS,
    AttemptMaker,
    CompletionTokens,
    Isolation,
    with_tokens,
)
from scheduler_app.worker.batch import ClaimedBatch, Destinations, Schedules
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import AttemptResult, Delayed, GivenBack, Recorder, Withdrawn
from tests.builders import event, message, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NAMED = WholeId("billing")


def lease_of(*events: Event) -> Lease:
    return Lease("token", [each.id for each in events], asked_at=0, timeout_seconds=10)


class Maker:
    """One that serves the kind `http` and two queues, and what it gives to the recorder."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self._maker = AttemptMaker(
            cast(Recorder, SimpleNamespace(put=self.results.extend)),
            serves=lambda kind: kind == "http",
            now=lambda: NOON + SECOND,
            worker="w1",
            queues=(CALLBACKS, "slow"),
        )

    def attempts(
        self,
        events: list[Event],
        schedules: Schedules | None = None,
        destinations: Destinations | None = None,
        held: Any = None,
    ) -> list[Attempt]:
        batch = ClaimedBatch(events, lease_of(*events))
        return self._maker.attempts(batch, schedules or {}, destinations or {}, held or {}, NOON)

    def result_of(self, made: Event, schedules: Schedules | None = None, **rest: Any) -> Any:
        """The only result of an event that gets no attempt."""
        assert self.attempts([made], schedules, **rest) == []
        (result,) = self.results
        assert result.event_id == made.id
        assert result.lease.token == "token"
        return result


@pytest.fixture
def maker() -> Maker:
    return Maker()


def set_aside(result: Any) -> str:
    assert isinstance(result, AttemptResult)
    assert result.record.state is State.ERROR
    return result.record.message.removeprefix("Set aside: ")


def left_to_others(result: Any, queue: str | None = None) -> str:
    assert isinstance(result, Delayed)
    asked = result.postponement
    assert (asked.due_at, asked.queue) == (NOON + SECOND + LEFT_TO_OTHERS, queue)
    return asked.message.partition("w1 leaves it to others: ")[2]


def to_billing(**fields: Any) -> Schedule:
    named: dict[str, Any] = {"url": NOT_GIVEN, "destination": "billing", "method": "POST"}
    return schedule(NOON, **named | fields)


def billing(**fields: Any) -> Destination:
    return Destination(id=NAMED, url="http://127.0.0.1:9/", created_at=NOON, updated_at=NOON, **fields)


def test_an_event_becomes_an_attempt_of_its_schedule(maker: Maker) -> None:
    made = schedule(NOON)
    (attempt,) = maker.attempts([event(NOON)], {"s1": made})
    assert (attempt.event, attempt.deliverable, attempt.token, attempt.worker) == (
        event(NOON),
        made,
        "token",
        "w1",
    )
    assert (attempt.destination_version, attempt.judged_again_at) == (None, None)
    assert maker.results == []


def test_an_attempt_knows_until_when_it_is_not_late(maker: Maker) -> None:
    made = schedule(NOON, catch_up=CatchUp.NONE, late_after_seconds=30)
    (attempt,) = maker.attempts([event(NOON)], {"s1": made})
    assert attempt.judged_again_at == NOON + 30 * SECOND


def test_each_event_is_judged_by_itself(maker: Maker) -> None:
    events = [event(NOON, each) for each in ("gone", "s1", "held", "corrupt", "s2")]
    known: dict[str, Any] = {each: schedule(NOON, each) for each in ("s1", "held", "s2")}
    held = {events[2].id: GivenBack(events[2].id, lease_of(events[2]))}
    found = maker.attempts(events, known | {"corrupt": CorruptSchedule("corrupt", "bent")}, held=held)
    assert [each.event.schedule_id for each in found] == ["s1", "s2"]
    assert [type(each) for each in maker.results] == [Withdrawn, GivenBack, AttemptResult]


def test_what_an_edit_or_a_deletion_took_is_withdrawn(maker: Maker) -> None:
    deleted = replace(schedule(NOON), state=ScheduleState.DELETED)
    assert isinstance(maker.result_of(event(NOON, kind=Kind.MANUAL), {"s1": deleted}), Withdrawn)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_schedule_that_cannot_be_read_here_is_left_to_others_and_a_corrupt_one_is_set_aside(
    maker: Maker, *, elsewhere: bool
) -> None:
    result = maker.result_of(event(NOON), {"s1": CorruptSchedule("s1", "bent", readable_elsewhere=elsewhere)})
    if elsewhere:
        assert left_to_others(result) == "it cannot read the schedule: bent"
    else:
        assert set_aside(result) == "its schedule cannot be read: bent"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_message_that_cannot_be_read_here_is_left_to_others_and_a_corrupt_one_is_set_aside(
    maker: Maker, *, elsewhere: bool
) -> None:
    made = message(NOON)._replace(message=UnreadableMessage("bent", readable_elsewhere=elsewhere))
    result = maker.result_of(made)
    if elsewhere:
        assert left_to_others(result) == "it cannot read the message: bent"
    else:
        assert set_aside(result) == "its message cannot be read: bent"


def test_a_message_without_content_is_set_aside(maker: Maker) -> None:
    assert set_aside(maker.result_of(message(NOON)._replace(message=None))) == (
        "its message cannot be read: it has no content"
    )


def test_a_kind_of_action_that_this_worker_does_not_execute_is_left_to_the_queue_of_its_schedule(
    maker: Maker,
) -> None:
    maker._maker._serves = lambda kind: kind != "http"
    made = schedule(NOON, queue="slow")
    result = maker.result_of(event(NOON), {"s1": made})
    assert left_to_others(result, "slow") == "it executes no actions of kind http"
    maker.results.clear()
    assert left_to_others(maker.result_of(message(NOON))) == "it executes no actions of kind http"


def test_an_event_is_sent_as_its_destination_says_now(maker: Maker) -> None:
    made = to_billing(timeout_seconds=None)
    found = maker.attempts([event(NOON)], {"s1": made}, {NAMED: billing(timeout_seconds=7.0, version=3)})
    (attempt,) = found
    assert (attempt.deliverable.timeout_seconds, attempt.destination_version) == (7.0, 3)


def test_a_destination_that_is_gone_sets_its_events_aside(maker: Maker) -> None:
    why = set_aside(maker.result_of(event(NOON), {"s1": to_billing()}))
    assert why == "there is no destination billing; create it, and redrive"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_destination_that_cannot_be_read_here_is_left_to_others_and_a_corrupt_one_sets_aside(
    maker: Maker, *, elsewhere: bool
) -> None:
    corrupt = CorruptDestination(NAMED, "bent", readable_elsewhere=elsewhere)
    result = maker.result_of(event(NOON), {"s1": to_billing()}, destinations={NAMED: corrupt})
    assert "bent" in (left_to_others(result) if elsewhere else set_aside(result))


def test_what_its_destination_does_not_allow_is_set_aside(maker: Maker) -> None:
    narrow = billing(allowed_methods=("PUT",))
    why = set_aside(maker.result_of(event(NOON), {"s1": to_billing()}, destinations={NAMED: narrow}))
    assert "InvalidField" not in why, "it is no defect of ours"


@pytest.mark.parametrize(
    ("queue", "of_schedule", "moved"),
    [
        ("fast", CALLBACKS, True),
        ("slow", CALLBACKS, False),
        (None, CALLBACKS, False),
        ("fast", "slow", False),
    ],
)
def test_an_event_whose_destination_has_another_queue_by_now_moves_there(
    maker: Maker, queue: str | None, of_schedule: str, *, moved: bool
) -> None:
    made = to_billing(queue=of_schedule)
    found = maker.attempts([event(NOON)], {"s1": made}, {NAMED: billing(queue=queue)})
    assert len(found) == (not moved)
    if moved:
        (result,) = maker.results
        asked = result.postponement
        assert (asked.queue, asked.queue_by_destination, asked.due_at) == ("fast", True, NOON + SECOND)


def test_an_event_that_breaks_our_code_is_set_aside(maker: Maker) -> None:
    broken = cast(Schedule, SimpleNamespace(first_revision="soon"))
    assert "TypeError" in set_aside(maker.result_of(event(NOON), {"s1": broken}))


class Completing:
    """Stores the tokens of all but some events, or does not answer; it takes the place of a MongoDB."""

    def __init__(self, *lost: str) -> None:
        self.lost = lost
        self.is_away = False
        self.expected: list[ExpectedCompletion] = []

    def expect(self, expected: list[ExpectedCompletion]) -> set[str]:
        if self.is_away:
            raise AutoReconnect("of the test")
        self.expected += expected
        return {each.event_id for each in expected} - {*self.lost}


def waiting(name: str, completion: str = "callback", **changes: Any) -> Attempt:
    fields = {"completion": completion, "completion_timeout_seconds": 90.0} if completion else {}
    return Attempt(event(NOON, name, **changes), schedule(NOON, name, **fields), "token", "w1")


def test_each_attempt_that_is_awaited_has_a_token_and_what_was_lost_meanwhile_none() -> None:
    plain, awaited, lost, other = waiting("p", ""), waiting("a"), waiting("l"), waiting("o")
    completions = Completing(lost.event.id)
    found = with_tokens(cast(Completions, completions), [plain, awaited, lost, other])
    assert [each.event.id for each in found] == [each.event.id for each in (plain, awaited, other)]
    tokens = [each.event.completion_token for each in found]
    assert tokens[0] == plain.event.completion_token
    stored = {each.event_id: each.digest for each in completions.expected}
    for each, token in zip(found[1:], tokens[1:], strict=True):
        assert token
        assert stored[each.event.id] == token_digest(token)


def test_what_follows_a_failure_that_is_told_later_is_decided_by_the_tries_since_a_redrive() -> None:
    """Its delays begin at half of ten seconds, doubled with each try; three retries are allowed."""
    completions = Completing()
    tries = [waiting(f"s{number}", attempt=number + 4, attempts_before=4) for number in range(4)]
    with_tokens(cast(Completions, completions), tries)
    facts = [(each.event_id, each.claim, each.number, each.seconds) for each in completions.expected]
    assert facts == [(each.event.id, "token", each.event.attempt + 1, 90.0) for each in tries]
    *again, last = [each.retry_in for each in completions.expected]
    assert last is None
    for number, delay in enumerate(again):
        assert delay is not None
        assert 5 * 2**number * SECOND <= delay <= 10 * 2**number * SECOND


def test_events_whose_tokens_are_not_stored_are_given_back() -> None:
    completions, results = Completing(), list[Any]()
    recorder = cast(Recorder, SimpleNamespace(put=results.extend))
    tokens = CompletionTokens(cast(Store, SimpleNamespace(completions=completions)), recorder)
    plain, awaited, lease = waiting("p", ""), waiting("a"), lease_of()
    assert tokens.added_to([plain], lease) == [plain]
    ready = tokens.added_to([plain, awaited], lease)
    assert [each.event.id for each in ready] == [plain.event.id, awaited.event.id]
    assert (results, len(completions.expected)) == ([], 1)
    assert [bool(each.event.completion_token) for each in tokens.added_to([awaited], lease)] == [True]
    completions.is_away = True
    assert tokens.added_to([plain, awaited], lease) == [plain]
    assert results == [GivenBack(awaited.event.id, lease)]


def test_a_suspect_is_isolated_by_its_mark_and_given_back_without_it() -> None:
    marked, results = list[tuple[str, str]](), list[Any]()
    answers = iter([True, False, None])

    def isolate(event_id: str, token: str) -> bool:
        marked.append((event_id, token))
        if (answer := next(answers)) is None:
            raise AutoReconnect("of the test")
        return answer

    store = cast(Store, SimpleNamespace(claims=SimpleNamespace(isolate=isolate)))
    isolation = Isolation(store, cast(Recorder, SimpleNamespace(put=results.extend)))
    plain = waiting("p", "", lost_leases=SUSPECT_AFTER - 1)
    suspects = [waiting(f"s{number}", "", lost_leases=SUSPECT_AFTER) for number in range(3)]
    lease = lease_of()
    jobs = isolation.jobs([*suspects, plain], lease)
    key = plain.deliverable.action.isolation_key
    assert jobs == [Job(suspects[0], lease, key, isolated=True), Job(plain, lease, key)]
    assert marked == [(each.event.id, "token") for each in suspects]
    assert results == [GivenBack(each.event.id, lease) for each in suspects[1:]]
