"""The client against the API."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.client import Scheduler, SchedulerError, calls
from scheduler_app.domain.masking import MASK

URL = "https://example.com/backup"
YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"


def test_a_schedule_is_made_found_listed_and_cancelled(scheduler: Scheduler, tag: str) -> None:
    made = scheduler.schedule(URL, rrule=YEARLY, name="Backup", tags=[tag], json={"full": True})
    assert scheduler.get(made["id"])["json"] == MASK
    assert [one["id"] for one in scheduler.list(tag=tag, state="active")] == [made["id"]]
    assert list(scheduler.list(tag=tag, state="paused")) == []
    scheduler.cancel(made["id"])
    assert scheduler.find(made["id"]) is None
    assert list(scheduler.list(tag=tag)) == []


def test_a_schedule_without_a_name_is_called_by_its_url_and_not_by_the_secrets_in_it(
    scheduler: Scheduler,
) -> None:
    made = scheduler.schedule(f"{URL}?token=swordfish#swordfish", rrule=YEARLY)
    assert made["name"] == URL


def test_a_list_longer_than_a_page_comes_whole(
    scheduler: Scheduler, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_A_PAGE", 2)
    made = [scheduler.schedule(URL, rrule=YEARLY, tags=[tag])["id"] for _ in range(5)]
    assert [one["id"] for one in scheduler.list(tag=tag)] == made[::-1]


def test_a_single_instant_is_given_as_a_datetime_or_by_a_delay(scheduler: Scheduler) -> None:
    at = datetime(2040, 1, 5, 13, tzinfo=UTC)
    assert scheduler.schedule(URL, run_at=at)["run_at"] == "2040-01-05T13:00:00Z"
    delayed = scheduler.schedule(URL, delay=timedelta(days=1))["run_at"]
    left = datetime.fromisoformat(delayed) - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(days=1)


def test_a_local_time_is_given_with_its_zone(scheduler: Scheduler) -> None:
    at = datetime(2040, 7, 1, 9)  # noqa: DTZ001
    made = scheduler.schedule(URL, run_at=at, timezone="Europe/Zurich")
    assert made["next_run_at"] == "2040-07-01T07:00:00Z"
    found = scheduler.preview(run_at=at, timezone="Europe/Zurich")
    assert [each["run_time"] for each in found["occurrences"]] == ["2040-07-01T07:00:00Z"]


def test_every_trigger_of_the_api_is_a_keyword(scheduler: Scheduler) -> None:
    assert scheduler.schedule(URL, every_seconds=3600)["every_seconds"] == 3600
    assert scheduler.schedule(URL, on_demand=True)["state"] == "active"
    assert len(scheduler.preview(every_seconds=60, limit=3)["occurrences"]) == 3


@pytest.mark.parametrize(
    "timing",
    [
        {},
        {"rrule": YEARLY, "delay": timedelta(1)},
        {"run_at": datetime(2040, 1, 1)},  # noqa: DTZ001
    ],
)
def test_a_time_that_says_nothing_or_two_things_is_refused_before_it_is_sent(
    scheduler: Scheduler, tag: str, timing: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"give one of|needs an offset"):
        scheduler.schedule(URL, tags=[tag], **timing)  # type: ignore[arg-type]
    assert list(scheduler.list(tag=tag)) == []


def test_a_trigger_gives_the_event_which_is_pending_and_later_history(scheduler: Scheduler) -> None:
    made = scheduler.schedule(URL, rrule=YEARLY)
    event_id = scheduler.trigger(made["id"])
    assert scheduler.event(event_id)["schedule_id"] == made["id"]
    assert [event["_id"] for event in scheduler.pending(made["id"])] == [event_id]
    scheduler.cancel(made["id"])
    assert [(event["_id"], event["state"]) for event in scheduler.history(made["id"])] == [
        (event_id, "cancelled")
    ]


def test_events_are_found_by_time_and_state_and_withdrawn_one_by_one(scheduler: Scheduler) -> None:
    made = scheduler.schedule(URL, run_at=datetime.now(UTC) + timedelta(minutes=5))
    event_id = scheduler.trigger(made["id"])
    now = datetime.now(UTC)
    found = scheduler.events(schedule_id=made["id"], after=now - timedelta(minutes=1), before=now)
    assert event_id in [event["_id"] for event in found]
    assert scheduler.cancel_event(event_id)["state"] == "cancelled"
    assert [event["_id"] for event in scheduler.events(state="cancelled", schedule_id=made["id"])] == [
        event_id
    ]
    with pytest.raises(SchedulerError, match="409"):
        scheduler.redrive(event_id)


def test_pause_resume_update_and_preview(scheduler: Scheduler) -> None:
    made = scheduler.schedule(URL, rrule=YEARLY)
    assert scheduler.pause(made["id"])["state"] == "paused"
    assert scheduler.resume(made["id"])["state"] == "active"
    assert scheduler.update(made["id"], name="Other")["name"] == "Other"
    found = scheduler.preview(
        "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        timezone="Europe/Zurich",
        after=datetime(2030, 1, 1, tzinfo=UTC),
        limit=2,
    )
    assert [one["run_time"] for one in found["occurrences"]] == [
        "2030-01-01T08:00:00Z",
        "2030-01-02T08:00:00Z",
    ]


def test_a_refusal_carries_the_status_the_sentence_and_the_fields(scheduler: Scheduler) -> None:
    with pytest.raises(SchedulerError) as caught:
        scheduler.schedule(URL, rrule="FREQ=SOMETIMES")
    assert caught.value.status == 422
    assert "SOMETIMES" in caught.value.detail
    assert [field["pointer"] for field in caught.value.errors] == ["/rrule"]


def test_a_wrong_key_is_refused_with_what_to_send(url: str) -> None:
    with (
        Scheduler(url, "another") as stranger,
        pytest.raises(SchedulerError, match="401: an API key is needed"),
    ):
        list(stranger.list())


def test_one_idempotency_key_makes_one_schedule(scheduler: Scheduler, tag: str) -> None:
    first, second = (scheduler.schedule(URL, rrule=YEARLY, idempotency_key=tag) for _ in range(2))
    assert first["id"] == second["id"]


def test_an_id_from_elsewhere_does_not_become_another_path(scheduler: Scheduler) -> None:
    made = scheduler.schedule(URL, rrule=YEARLY)
    with pytest.raises(SchedulerError, match="404"):
        scheduler.get(f"x/../{made['id']}")


def test_the_client_brings_nothing_of_ours_along() -> None:
    script = (
        "import sys, scheduler_app.client; others = {'celery', 'pymongo', 'flask'};"
        "print(sorted({name.split('.')[0] for name in sys.modules} & others),"
        "[name for name in sys.modules if name.startswith('scheduler_app.') and '.client' not in name])"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[] ['scheduler_app.version']"


def test_many_are_edited_by_a_filter_page_by_page(
    scheduler: Scheduler, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_A_PAGE", 2)
    for _ in range(5):
        scheduler.schedule(URL, rrule=YEARLY, tags=[tag])
    assert scheduler.pause_many(tag=tag, dry_run=True)["paused"] == 5
    assert scheduler.pause_many(tag=tag) == {"paused": 5, "skipped": []}
    assert len(scheduler.pause_many(tag=tag)["skipped"]) == 5
    assert scheduler.resume_many(tag=tag, state="paused")["resumed"] == 5
    assert scheduler.delete_many(tag=tag)["deleted"] == 5
    assert list(scheduler.list(tag=tag)) == []
    with pytest.raises(SchedulerError, match="all: true"):
        scheduler.delete_many()


def test_dead_letters_are_found_and_redriven_by_what_they_have_in_common(
    scheduler: Scheduler, tag: str, dead_letters: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_A_PAGE", 2)
    made = scheduler.schedule(URL, rrule=YEARLY, tags=[tag])["id"]
    busy, gone = dead_letters(made, 3, 503), dead_letters(made, 1, 410)
    assert {each["_id"] for each in scheduler.events(state="error,retrying", tag=tag)} == {*busy, *gone}
    assert [each["_id"] for each in scheduler.events(tag=tag, status_code="410")] == gone
    assert scheduler.redrive_many(tag=tag, status_code="5xx", dry_run=True)["redriven"] == 3
    assert scheduler.redrive_many(tag=tag, after="2001-01-01", timezone="UTC", status_code=[503]) == {
        "redriven": 3,
        "skipped": [],
    }
    scheduler.cancel(made)
    skipped = scheduler.redrive_many(schedule_id=made)["skipped"]
    assert [each["id"] for each in skipped] == gone
    with pytest.raises(SchedulerError, match="all: true"):
        scheduler.redrive_many()


def test_a_history_has_what_was_withdrawn_when_it_is_asked_for(scheduler: Scheduler) -> None:
    made = scheduler.schedule(URL, rrule="FREQ=MINUTELY")["id"]
    scheduler.pause(made)
    assert list(scheduler.history(made)) == []
    assert {each["state"] for each in scheduler.history(made, include_cancelled=True)} == {"cancelled"}


def test_an_address_without_its_scheme_is_told_apart_from_one_where_nobody_is() -> None:
    for address in ("localhost:8080", "ftp://localhost"):
        with (
            Scheduler(address) as nowhere,
            pytest.raises(SchedulerError, match="give one such as http://"),
        ):
            nowhere.get("x")
