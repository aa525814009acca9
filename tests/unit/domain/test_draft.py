"""What a person asks for becomes a schedule, or an edit of one."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.action import Action
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import BodyKind, HttpAction, RequestBody, http_action
from scheduler_app.domain.masking import MASK, MASKED_BODY, masked, masked_url
from scheduler_app.domain.schedule import KEPT_CUTS, Predecessor, ScheduleState
from scheduler_app.domain.schedule_draft import ScheduleDraft
from tests.builders import draft, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LATER = NOON + timedelta(minutes=1)


def test_a_rule_without_a_start_begins_at_the_next_whole_second_for_ever() -> None:
    made = schedule(NOON + timedelta(milliseconds=300), rrule="FREQ=DAILY;INTERVAL=1")
    assert made.trigger.pinned == "DTSTART:20260302T120001Z\nRRULE:FREQ=DAILY"
    assert made.next_run_at == NOON + SECOND


def test_a_rule_that_lies_in_the_past_is_finished() -> None:
    made = schedule(NOON, rrule="DTSTART:20250101T184500Z\nRRULE:FREQ=DAILY;COUNT=5")
    assert (made.state, made.next_run_at) == (ScheduleState.FINISHED, None)


def test_an_instant_in_the_past_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidField, match="trigger"):
        schedule(NOON, run_at=NOON)


@pytest.mark.parametrize(
    "fields",
    [{"rrule": "FREQ=DAILY", "run_at": NOON + SECOND}, {"rrule": None}, {"rrule": None, "run_at": None}],
)
def test_exactly_one_of_rule_and_instant_is_needed(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidField):
        draft(**fields).schedule("s1", NOON, max_retries=3)


def test_a_change_of_the_trigger_is_a_revision_that_cuts_now() -> None:
    edited = ScheduleDraft(trigger={"rrule": "FREQ=HOURLY"}).edit(schedule(NOON), NOON + SECOND)
    assert (edited.revision, edited.version, edited.cut_pending) == (2, 2, True)
    assert edited.revised_at == NOON + SECOND
    assert edited.next_run_at is not None
    assert edited.next_run_at > edited.revised_at


def test_the_same_rule_sent_again_is_no_revision_and_keeps_its_start() -> None:
    before = schedule(NOON, rrule="FREQ=DAILY")
    edited = ScheduleDraft(trigger={"rrule": "FREQ=DAILY"}, name="other").edit(before, NOON + SECOND)
    assert (edited.revision, edited.version, edited.name) == (1, 2, "other")
    assert edited.trigger is before.trigger


def test_a_change_of_the_callback_is_no_revision() -> None:
    assert ScheduleDraft(url="http://127.0.0.1:9/other").edit(schedule(NOON), NOON + SECOND).revision == 1


def test_an_instant_displaces_the_rule_and_the_rule_the_instant() -> None:
    later = NOON + timedelta(hours=1)
    once = ScheduleDraft(trigger={"run_at": later}).edit(schedule(NOON), NOON + SECOND)
    assert (once.trigger.written, once.next_run_at) == ({"run_at": later}, later)
    again = ScheduleDraft(trigger={"rrule": "FREQ=DAILY"}).edit(once, NOON + SECOND)
    assert again.trigger.written == {"rrule": "FREQ=DAILY"}


def test_cuts_never_go_back_when_clocks_do() -> None:
    edited = ScheduleDraft(trigger={"rrule": "FREQ=HOURLY"}).edit(schedule(NOON), NOON - SECOND)
    assert edited.revised_at > NOON


def test_a_paused_schedule_that_is_edited_stays_paused() -> None:
    paused = schedule(NOON).revise(NOON + SECOND, state=ScheduleState.PAUSED)
    edited = ScheduleDraft(trigger={"rrule": "FREQ=HOURLY"}).edit(paused, NOON + 2 * SECOND)
    assert (edited.state, edited.next_run_at) == (ScheduleState.PAUSED, None)


def test_an_edit_of_a_finished_schedule_brings_it_back() -> None:
    finished = schedule(NOON, rrule="DTSTART:20250101T184500Z\nRRULE:FREQ=DAILY;COUNT=5")
    assert (
        ScheduleDraft(trigger={"rrule": "FREQ=DAILY"}).edit(finished, NOON + SECOND).state
        is ScheduleState.ACTIVE
    )


def test_a_masked_value_that_comes_back_means_unchanged() -> None:
    headers = (("Authorization", "Bearer abc"), ("Accept", "text/plain"))
    url = "http://127.0.0.1:9/?a=1&a=2&b=&c3&=x#top"
    before = schedule(NOON, headers=headers, url=url)
    old = http_action(before.action)
    shown, shown_url = masked(old.headers), masked_url(url)
    assert dict(shown) == {"Authorization": MASK, "Accept": "text/plain"}
    assert shown_url == f"http://127.0.0.1:9/?a={MASK}&a={MASK}&b=&{MASK}&={MASK}#{MASK}"
    edited = ScheduleDraft(headers=shown, url=shown_url.replace("9/?", "9/other?")).edit(before, NOON)
    now = http_action(edited.action)
    assert (now.headers, now.url) == (headers, url.replace("9/?", "9/other?"))


def test_a_mask_without_a_value_behind_it_is_refused() -> None:
    for fields in (
        {"headers": (("Authorization", MASK),)},
        {"url": f"http://127.0.0.1:9/?a={MASK}"},
        {"url": f"http://127.0.0.1:9/?{MASK}"},
        {"body": RequestBody(BodyKind.JSON, MASKED_BODY)},
    ):
        with pytest.raises(InvalidField, match="masked"):
            draft(**fields).schedule("s1", NOON, max_retries=3)
    before = schedule(NOON, url="http://127.0.0.1:9/?a=1", headers=(("X-Key", "k"),))
    for edit in (
        ScheduleDraft(url=f"http://127.0.0.1:9/?a={MASK}&a={MASK}"),
        ScheduleDraft(url=f"http://127.0.0.1:9/?b={MASK}"),
        ScheduleDraft(headers=(("X-Other", MASK),)),
    ):
        with pytest.raises(InvalidField, match="masked"):
            edit.edit(before, NOON)


def test_secrets_stay_with_the_origin_they_were_given_for() -> None:
    before = schedule(
        NOON,
        url="https://example.com/hook?key=k",
        headers=(("X-Key", "k"), ("Accept", "text/plain")),
        body=RequestBody(BodyKind.TEXT, b"b"),
    )
    old = http_action(before.action)
    elsewhere = ("http://example.com/hook", "https://example.com:444/", "https://evil.example/hook")
    for url in elsewhere:
        for edit, missing in (
            (ScheduleDraft(url=url), ["the header X-Key", "the body"]),
            (
                ScheduleDraft(url=url, headers=masked(old.headers), body=None),
                ["the header X-Key"],
            ),
            (ScheduleDraft(url=url, headers=(), body=RequestBody(BodyKind.TEXT, MASKED_BODY)), ["the body"]),
            (ScheduleDraft(url=f"{url}?key={MASK}", headers=(), body=None), ["the values of the query"]),
        ):
            with pytest.raises(InvalidField) as refused:
                edit.edit(before, NOON)
            assert refused.value.field == "callback_url"
            named = refused.value.message.partition("give ")[2].partition(" again")[0]
            assert named == ", ".join(missing), edit
        moved = ScheduleDraft(url=url, headers=(("X-Key", "new"),), body=None).edit(before, NOON)
        new = http_action(moved.action)
        assert (new.url, new.headers, new.body) == (url, (("X-Key", "new"),), None)
    stayed = http_action(ScheduleDraft(url="https://EXAMPLE.com:443/other").edit(before, NOON).action)
    assert (stayed.headers, stayed.body) == (
        old.headers,
        old.body,
    )
    harmless = schedule(NOON, url="https://example.com/", headers=(("Accept", "text/plain"),))
    assert http_action(ScheduleDraft(url="https://evil.example/").edit(harmless, NOON).action).headers


def test_secrets_are_in_no_representation() -> None:
    made = schedule(NOON, headers=(("Authorization", "Bearer abc"),), url="http://127.0.0.1:9/?t=Bearer")
    assert "Bearer" not in repr(made)
    assert "Bearer" not in repr(draft(url="http://127.0.0.1:9/?t=Bearer"))
    assert "Bearer" not in repr(draft(headers=(("Authorization", "Bearer abc"),)))


def test_a_revision_owns_the_time_after_its_cut() -> None:
    made = schedule(NOON).revise(NOON + SECOND)
    assert not made.is_cancelled_by_edit(1, NOON + SECOND)
    assert made.is_cancelled_by_edit(1, NOON + 2 * SECOND)
    assert not made.is_cancelled_by_edit(2, NOON + 2 * SECOND)


def test_an_event_of_before_a_pause_does_not_come_back_with_the_resume() -> None:
    paused = schedule(NOON).revise(NOON + SECOND, state=ScheduleState.PAUSED)
    resumed = paused.revise(NOON + 5 * SECOND, state=ScheduleState.ACTIVE)
    assert not resumed.is_cancelled_by_edit(1, NOON + SECOND)
    assert resumed.is_cancelled_by_edit(1, NOON + 3 * SECOND), (
        "it was withdrawn by the pause, whoever cancels it"
    )
    assert not resumed.is_cancelled_by_edit(2, NOON + 5 * SECOND)


def test_a_schedule_remembers_a_bounded_number_of_cuts() -> None:
    made = schedule(NOON)
    for number in range(2 * KEPT_CUTS):
        made = made.revise(NOON + (number + 1) * SECOND)
    assert len(made.cuts) == KEPT_CUTS
    assert made.is_cancelled_by_edit(1, NOON + timedelta(days=1))
    assert not made.is_cancelled_by_edit(made.revision, NOON + timedelta(days=1))


def test_a_body_without_a_method_is_posted_and_no_body_is_a_get() -> None:
    body = RequestBody.from_json({"a": 1})
    assert http_action(schedule(NOON, body=body).action).method == "POST"
    assert http_action(schedule(NOON).action).method == "GET"
    assert http_action(schedule(NOON, body=None).action).method == "GET"
    assert http_action(schedule(NOON, body=body, method="GET").action).method == "GET"
    assert http_action(ScheduleDraft(body=body).edit(schedule(NOON), NOON).action).method == "GET", (
        "an edit sets what it gives"
    )


def test_an_edit_that_changes_nothing_is_none() -> None:
    before = schedule(NOON, rrule="FREQ=DAILY", tags=("a",))
    assert (
        ScheduleDraft(trigger={"rrule": "FREQ=DAILY"}, tags=("a",), state=ScheduleState.ACTIVE).edit(
            before, LATER
        )
        is before
    )
    assert ScheduleDraft(trigger={"rrule": before.trigger.pinned}).edit(before, LATER) is before, (
        "a rule as it is exported"
    )
    other_zone = ScheduleDraft(trigger={"rrule": before.trigger.pinned}, timezone="Europe/Zurich").edit(
        before, LATER
    )
    assert other_zone.revision == 2


def test_a_state_may_be_asked_for() -> None:
    paused, failed, done = ScheduleState.PAUSED, ScheduleState.ERROR, ScheduleState.FINISHED
    assert schedule(NOON, state=paused).next_run_at is None
    assert schedule(NOON, state=failed, reason="why").reason == "why"
    assert schedule(NOON, state=paused, reason="why").reason is None
    past = schedule(NOON, run_at=NOON - SECOND, state=done)
    assert (past.state, past.next_run_at) == (done, None)
    assert ScheduleDraft(state=ScheduleState.ACTIVE).edit(past, LATER) is past, "nothing is left to run"
    held = ScheduleDraft(state=paused).edit(schedule(NOON), LATER)
    assert (held.state, held.revision, held.next_run_at) == (paused, 2, None)
    assert ScheduleDraft(state=ScheduleState.ACTIVE).edit(held, LATER + SECOND).next_run_at is not None
    with pytest.raises(InvalidField, match="trigger"):
        schedule(NOON, run_at=NOON - SECOND, state=ScheduleState.ACTIVE)


def test_a_successor_goes_on_after_the_deleted_schedule_s_revisions() -> None:
    deleted = Predecessor(revision=4, version=9, revised_at=NOON + SECOND, cuts=((3, NOON),))
    made = schedule(NOON).succeeding(deleted)
    assert (made.revision, made.version, made.first_revision) == (5, 10, 5)
    assert made.revised_at > deleted.revised_at
    for run_time in (NOON - SECOND, NOON, NOON + timedelta(days=1)):
        assert made.is_cancelled_by_edit(4, run_time), "every event of the deleted one, late retries too"
        assert not made.is_cancelled_by_edit(5, run_time)
    assert made.revise(LATER, state=ScheduleState.ACTIVE).is_cancelled_by_edit(4, NOON - SECOND)


def test_one_delay_given_does_not_contradict_the_default_of_the_other() -> None:
    quick, slow = schedule(NOON, backoff_max_seconds=2.0), schedule(NOON, backoff_seconds=7200.0)
    assert (quick.retry.backoff_seconds, quick.retry.backoff_max_seconds) == (2, 2)
    assert (slow.retry.backoff_seconds, slow.retry.backoff_max_seconds) == (7200, 7200)
    with pytest.raises(InvalidField, match="less"):
        ScheduleDraft(backoff_max_seconds=1.0).edit(slow, NOON)


@dataclass(frozen=True)
class Bell:
    """An action of another kind."""

    kind: str = "bell"
    isolation_key: str = "tower"
    completion_problem: str | None = None
    destination: str | None = None

    def unmasked(self, old: Action | None) -> "Bell":
        return self


def test_an_action_of_another_kind_is_taken_whole() -> None:
    made = ScheduleDraft(trigger={"rrule": "FREQ=DAILY"}, action=Bell()).schedule("s1", NOON, max_retries=0)
    assert made.action == Bell()
    assert ScheduleDraft(name="renamed").edit(made, NOON).action == Bell()
    assert ScheduleDraft(url="http://127.0.0.1:9/").edit(made, NOON).action == HttpAction(
        "http://127.0.0.1:9/"
    )
    assert ScheduleDraft(action=Bell()).edit(schedule(NOON), NOON).action == Bell()


def test_an_action_and_the_fields_of_a_request_contradict_each_other() -> None:
    with pytest.raises(InvalidField, match="not both") as refused:
        ScheduleDraft(trigger={"rrule": "FREQ=DAILY"}, url="http://127.0.0.1:9/", action=Bell()).schedule(
            "s1", NOON, max_retries=0
        )
    assert refused.value.field == "action"
