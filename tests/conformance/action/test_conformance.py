"""What every kind of action promises to delivery, to the store and to people: against real receivers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime

import bson
import pytest
from flask import Flask

from scheduler_app.actions.kind import Executor, Executors, Outcome, Verdict
from scheduler_app.actions.registry import KINDS, kind_of
from scheduler_app.api.wire.action import ACTION_TYPES
from scheduler_app.api.wire.schedule import NewSchedule
from scheduler_app.api.wire.schedule_fields import OUTPUT_FIELDS, SHOWN, ShownSchedule
from scheduler_app.domain.action import MAX_ORIGIN, Action
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.embedded.brokers import Redis
from scheduler_app.store import Store
from scheduler_app.store.encryption import WIPE, SecretBox
from scheduler_app.store.schedules.documents import read_schedule
from tests.builders import event, schedule
from tests.celery_application import CeleryApplication, celery_application
from tests.conformance.action.harness import HARNESSES, SECRET, Harness, missing, resources
from tests.integration.conftest import settings, store
from tests.processes import PATIENCE_SECONDS, wait_until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def nothing() -> None:
    """The `ready` of an executor that is waited for alone."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture(scope="session")
def shop(redis_server: Redis) -> Iterator[CeleryApplication]:
    """An application of a user's with one worker, which these tests share."""
    with celery_application(redis_server) as application:
        worker = application.worker()
        try:
            worker.wait_for("ready")
            yield application
        finally:
            worker.kill()


@pytest.fixture(params=sorted(KINDS))
def harness(request: pytest.FixtureRequest, stack: ExitStack) -> Harness:
    return HARNESSES[request.param](stack, request.getfixturevalue)


@pytest.fixture
def executor(harness: Harness, stack: ExitStack) -> Executor:
    return stack.enter_context(closing(KINDS[harness.name].executor(harness.settings(), nothing)))


def begin(
    executor: Executor, action: Action, name: str = "s1", *, timeout_seconds: float = PATIENCE_SECONDS
) -> str:
    """Starts an attempt; returns the id of its event."""
    made = event(NOON, name)
    executor.start(made, replace(schedule(NOON, name), action=action, timeout_seconds=timeout_seconds), NOON)
    return made.id


def collect(executor: Executor, count: int) -> list[Verdict]:
    """So many verdicts, in the order in which they come."""
    verdicts: list[Verdict] = []
    while len(verdicts) < count:
        verdicts += executor.wait(1.0)
    return verdicts


def test_every_kind_has_a_harness() -> None:
    assert missing() == set()


# -- the executor ----------------------------------------------------------------------------------------


def test_a_success_is_one(harness: Harness, executor: Executor) -> None:
    started = begin(executor, harness.succeeds())
    (verdict,) = collect(executor, 1)
    assert (verdict.event_id, verdict.outcome, verdict.error) == (started, Outcome.SUCCESS, None)
    assert verdict.duration_ms > 0
    assert not executor.wait(0)


def test_a_failure_may_be_tried_again_and_says_why(harness: Harness, executor: Executor) -> None:
    begin(executor, harness.fails())
    (verdict,) = collect(executor, 1)
    assert verdict.outcome is Outcome.RETRY
    assert verdict.reason
    assert verdict.retry_after is None


def test_a_receiver_may_say_when_to_try_again(harness: Harness, executor: Executor) -> None:
    action = harness.fails_for(77)
    if action is None:
        return  # this kind's receivers have no way to ask for it
    begin(executor, action)
    (verdict,) = collect(executor, 1)
    assert (verdict.outcome, verdict.retry_after) == (Outcome.RETRY, 77.0)


def test_a_permanent_failure_is_one(harness: Harness, executor: Executor) -> None:
    begin(executor, harness.fails_for_good())
    (verdict,) = collect(executor, 1)
    assert verdict.outcome is Outcome.PERMANENT
    assert verdict.reason


def test_an_attempt_ends_with_its_timeout(harness: Harness, executor: Executor) -> None:
    begin(executor, harness.hangs(), timeout_seconds=0.2)
    (verdict,) = collect(executor, 1)
    assert (verdict.outcome, verdict.status_code) == (Outcome.RETRY, None)
    assert "0.2 s" in (verdict.error or "")


def test_what_hangs_holds_up_nobody(harness: Harness, executor: Executor) -> None:
    hanging = harness.hangs()
    hung = {begin(executor, hanging, f"hung-{number}") for number in range(20)}
    quick = harness.succeeds()
    served = {begin(executor, quick, f"quick-{number}") for number in range(20)}
    assert {verdict.event_id for verdict in collect(executor, 20)} == served
    executor.interrupt()
    assert not hung & served


@pytest.mark.parametrize("count", [30, pytest.param(100, marks=pytest.mark.long)])
def test_many_run_at_once(harness: Harness, executor: Executor, count: int) -> None:
    action = harness.succeeds()
    started = {begin(executor, action, f"s{number}") for number in range(count)}
    verdicts = collect(executor, count)
    assert {verdict.event_id for verdict in verdicts} == started
    assert {verdict.outcome for verdict in verdicts} == {Outcome.SUCCESS}


def test_a_broken_value_harms_only_itself(harness: Harness, executor: Executor) -> None:
    broken = begin(executor, harness.broken(), "broken")
    healthy = begin(executor, harness.succeeds(), "healthy")
    outcomes = {verdict.event_id: verdict.outcome for verdict in collect(executor, 2)}
    assert outcomes == {broken: Outcome.PERMANENT, healthy: Outcome.SUCCESS}


def test_what_is_interrupted_has_no_verdict_and_may_start_anew(harness: Harness, executor: Executor) -> None:
    begin(executor, harness.hangs(), "hung", timeout_seconds=0.2)
    executor.interrupt()
    again = begin(executor, harness.succeeds(), "hung")
    verdicts = collect(executor, 1)
    later = begin(executor, harness.hangs(), "later", timeout_seconds=0.5)
    verdicts += collect(executor, 1)
    outcomes = [(verdict.event_id, verdict.outcome) for verdict in verdicts]
    assert outcomes == [(again, Outcome.SUCCESS), (later, Outcome.RETRY)], "the first one's timeout is none"
    assert not executor.wait(0)


def test_another_thread_ends_a_wait(harness: Harness, executor: Executor) -> None:
    begin(executor, harness.hangs())
    executor.wake()
    # Otherwise it would wait for longer than a test may take.
    assert not executor.wait(PATIENCE_SECONDS)


def test_an_executor_that_is_closed_leaves_nothing(harness: Harness) -> None:
    kind, hanging, quick = KINDS[harness.name], harness.hangs(), harness.succeeds()

    def use() -> None:
        with closing(kind.executor(harness.settings(), nothing)) as executor:
            begin(executor, quick)
            collect(executor, 1)
            for number in range(10):
                begin(executor, hanging, f"s{number}")
            executor.wait(0)

    use()  # what a first use makes for the whole process
    measures: list[tuple[int, ...]] = []

    def is_as_before() -> bool:
        measures.append(resources())
        return measures[-2:-1] == measures[-1:]

    wait_until(is_as_before, "the receivers to see the ends of their connections", pause=0.05)
    before = resources()
    use()
    wait_until(lambda: resources() <= before, f"what was opened to be closed: {before}, {resources()}")


# -- several kinds in one worker -------------------------------------------------------------------------


def test_a_worker_waits_for_all_its_executors_at_once(harness: Harness, stack: ExitStack) -> None:
    kind = KINDS[harness.name]
    both: dict[str, Executor] = {
        name: kind.executor(harness.settings(), nothing) for name in ("first", "second")
    }
    executors = Executors(both)
    stack.callback(executors.close)
    started = {begin(executors.of(name), harness.succeeds(), name) for name in both}
    ended: set[str] = set()
    while ended != started:
        ended |= {verdict.event_id for verdict in executors.wait(0.05)}
    assert not executors.serves("third")


# -- secrets ---------------------------------------------------------------------------------------------


def test_secrets_are_in_no_repr_and_in_no_verdict(harness: Harness, executor: Executor) -> None:
    action = harness.echoes_secret()
    assert SECRET not in repr(action)
    begin(executor, action)
    (verdict,) = collect(executor, 1)
    assert "you sent" in verdict.snippet, "the receiver's words are kept"
    assert SECRET not in repr(verdict)
    assert SECRET not in repr(executor)


def test_secrets_are_in_no_isolation_key(harness: Harness) -> None:
    key = harness.echoes_secret().isolation_key
    assert SECRET not in key
    assert 0 < len(key) <= MAX_ORIGIN


# -- documents -------------------------------------------------------------------------------------------


def actions(harness: Harness) -> Sequence[Action]:
    return (harness.succeeds(), harness.echoes_secret(), harness.hangs())


def test_an_action_is_read_as_it_was_written(harness: Harness) -> None:
    for action in actions(harness):
        kind = kind_of(action)
        stored = bson.decode(bson.encode(kind.to_document(action)))
        assert stored["type"] == kind.name == harness.name
        assert kind.from_document(stored) == action


def test_its_secrets_are_stored_apart_and_put_together_again(harness: Harness) -> None:
    for action in actions(harness):
        kind = kind_of(action)
        public, secrets = kind.split(kind.to_document(action))
        assert SECRET.encode() not in bson.encode(public)
        assert "signing" not in secrets
        assert kind.from_document(kind.join(public, bson.decode(bson.encode(secrets)))) == action


def test_a_beat_reads_what_is_fetched_for_it(harness: Harness) -> None:
    action = harness.echoes_secret()
    kind = kind_of(action)
    stored = {k: v for k, v in kind.to_document(action).items() if k not in kind.not_for_beats}
    read = kind.from_document(stored | kind.in_their_place)
    assert read.isolation_key == action.isolation_key


def test_a_corrupt_document_names_its_field(harness: Harness) -> None:
    kind = KINDS[harness.name]
    with pytest.raises(Corrupt, match=r"action\."):
        kind.from_document({"type": harness.name})


def test_what_the_settings_refuse_is_refused_when_it_is_given(harness: Harness) -> None:
    check = KINDS[harness.name].checker(harness.settings())
    check(harness.succeeds())
    with pytest.raises(InvalidField):
        check(harness.refused())


def test_a_wiped_action_can_be_read_and_has_no_secrets(harness: Harness, store: Store) -> None:
    made = replace(schedule(NOON, "wiped"), action=harness.echoes_secret())
    store.schedules.insert(made)
    collection = store.mongo.collection("schedules")
    collection.update_one({"_id": made.id}, WIPE)
    row = collection.find_one({"_id": made.id})
    assert row is not None
    assert SECRET.encode() not in bson.encode(row)
    found = read_schedule(row, SecretBox(""))
    assert isinstance(found, Schedule), found
    assert found.action.isolation_key == made.action.isolation_key


# -- its fields in JSON ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ACTION_TYPES))
def test_what_an_answer_shows_holds_no_secret_and_can_be_sent_back(
    name: str, stack: ExitStack, request: pytest.FixtureRequest
) -> None:
    made = HARNESSES[name](stack, request.getfixturevalue)
    for action in (made.succeeds(), made.echoes_secret(), made.fails_for_good()):
        row = ShownSchedule(replace(schedule(NOON), action=action), NOON)
        view = OUTPUT_FIELDS["action"].serialize("action", {"action": SHOWN["action"](row)})
        assert SECRET not in json.dumps(view)
        with Flask("of a request").app_context():
            _, draft = NewSchedule().load({"name": "n", "rrule": "FREQ=DAILY", "action": view})
        assert draft.action.unmasked(action) == action


def test_no_kind_has_a_field_of_its_own_that_is_called_type() -> None:
    assert all("type" not in its.input for its in ACTION_TYPES.values())


__all__ = ["settings", "store"]  # fixtures
