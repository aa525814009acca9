"""What commands say where somebody would be left to guess: whose URL, which key, how a phrase can be read."""

import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from click.testing import CliRunner, Result

from scheduler_app.cli import main
from scheduler_app.client import Scheduler
from tests.integration.client.conftest import KEY

URL = "https://example.com/backup"
YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"


@pytest.fixture
def shell(url: str) -> Callable[..., Result]:
    def run(*arguments: str, status: int = 0, key: str | None = KEY, at: str = url) -> Result:
        environment = {"SCHEDULER_URL": at, "SCHEDULER_API_KEY": key}
        done = CliRunner().invoke(main, arguments, env=environment, catch_exceptions=False)
        assert done.exit_code == status, done.output
        return done

    return run


@pytest.mark.parametrize("command", [("update", "some-id"), ("destination", "set", "crm")])
def test_a_url_that_may_be_meant_for_the_receiver_is_not_taken_for_the_api_s(
    shell: Callable[..., Result], command: tuple[str, ...]
) -> None:
    # The key would go there.
    refused = shell(*command, "--url", "http://127.0.0.1:9/hook", status=64)
    assert "--api-url" in refused.stderr
    assert {"update": "--callback-url", "destination": "RECEIVER"}[command[0]] in refused.stderr


def test_the_api_s_address_has_a_name_of_its_own(
    shell: Callable[..., Result], scheduler: Scheduler, url: str, tag: str
) -> None:
    scheduler.schedule(URL, rrule=YEARLY, id=tag)
    new = "https://example.com/new"
    shell("update", tag, "--callback-url", new, "--api-url", url, at="http://127.0.0.1:9")
    assert scheduler.get(tag)["callback_url"] == new
    shell("get", tag, "--url", url, at="http://127.0.0.1:9")


@pytest.mark.parametrize("command", [("create",), ("message", "schedule")])
def test_a_missing_receiver_beside_the_api_s_address_is_explained(
    shell: Callable[..., Result], url: str, command: tuple[str, ...]
) -> None:
    refused = shell(*command, "--url", url, "--in", "1h", status=64)
    assert "--url is the API's address" in refused.stderr


def test_a_401_says_where_a_key_may_be_given_or_which_one_is_wrong(shell: Callable[..., Result]) -> None:
    missing = shell("list", status=1, key=None).stderr
    assert "SCHEDULER_API_KEY" in missing
    assert "--api-key" in missing
    wrong = secrets.token_hex(24)
    from_environment = shell("list", status=1, key=wrong).stderr
    assert "SCHEDULER_API_KEY" in from_environment
    assert "API_KEYS" in from_environment
    assert wrong not in from_environment
    assert "--api-key" in shell("list", "--api-key", wrong, status=1).stderr.partition("API_KEYS")[0]


def test_an_ambiguous_phrase_shows_its_readings(shell: Callable[..., Result]) -> None:
    said = shell("preview", "--phrase", "every day at 5", status=1).stderr
    assert "05:00" in said
    assert "17:00" in said
    assert re.search(r"RRULE:FREQ=DAILY\S*BYHOUR=17", said)
    created = shell("create", URL, "--phrase", "every day at 5", status=1).stderr
    # The rules begin at the second of their request.
    told, told_too = (re.sub(r"DTSTART:\d{8}T\d{6}Z", "DTSTART:…", each) for each in (said, created))
    assert told == told_too


def test_a_list_shows_how_the_last_run_ended(
    shell: Callable[..., Result], scheduler: Scheduler, tag: str
) -> None:
    scheduler.put(
        tag, {"callback_url": URL, "rrule": YEARLY, "tags": [tag], "name": "Backup", "state": "active"}
    )
    heading, line = shell("list", "--tag", tag).stdout.splitlines()
    assert "last run" in heading
    assert line.split()[:2] == ["active", "–"]


def test_a_list_finds_a_part_of_a_name_whatever_its_case(
    shell: Callable[..., Result], scheduler: Scheduler, tag: str
) -> None:
    for name in (f"Nightly {tag} backup", f"{tag} report"):
        scheduler.schedule(URL, rrule=YEARLY, name=name)
    assert len(shell("list", "--name", tag.upper(), "-q").stdout.split()) == 2
    (found,) = shell("list", "--name", f"{tag} BACK", "-q").stdout.split()
    assert scheduler.get(found)["name"] == f"Nightly {tag} backup"
    assert [each["id"] for each in scheduler.list(name_contains=f"y {tag}")] == [found]
    assert list(scheduler.list(name=tag)) == []


def test_an_edit_of_many_takes_whole_names_unless_it_is_told_otherwise(
    shell: Callable[..., Result], scheduler: Scheduler, tag: str
) -> None:
    for name in (f"{tag} one", f"{tag} two"):
        scheduler.schedule(URL, rrule=YEARLY, name=name, tags=[tag])
    assert shell("delete", "--name", tag, "--yes").stdout.startswith("0 schedules to delete")
    assert shell("pause", "--name-contains", tag, "--yes").stdout.endswith("paused 2\n")
    assert {each["state"] for each in scheduler.list(tag=tag)} == {"paused"}
    assert len(shell("export", "--name-contains", tag).stdout.splitlines()) == 2


def test_an_edit_of_many_repeats_what_it_was_told_to_choose(
    shell: Callable[..., Result], scheduler: Scheduler, tag: str
) -> None:
    scheduler.schedule(URL, rrule=YEARLY, tags=[tag])
    done = shell("pause", "--tag", tag, "--state", "active", "--yes")
    assert done.stdout == f"1 schedule to pause: --state active --tag {tag}\npaused 1\n"


def test_a_redrive_is_tried_and_spread_over_time(
    shell: Callable[..., Result], scheduler: Scheduler, tag: str, dead_letters: Callable[..., list[str]]
) -> None:
    made = scheduler.schedule(URL, rrule=YEARLY, tags=[tag])["id"]
    # More than a page.
    dead_letters(made, 120, 503)
    tried = shell("redrive", "--tag", tag, "--dry-run")
    assert tried.stdout == f"120 dead letters to redrive: --tag {tag}\ndry run: nothing is sent\n"
    assert {each["state"] for each in scheduler.events(schedule_id=made)} == {"error"}
    shell("redrive", "--tag", tag, "--rate", "0.5", "--yes")
    due = sorted(datetime.fromisoformat(each["due_at"]) for each in scheduler.events(schedule_id=made))
    assert len(due) == 120
    # Whole seconds or not: an event each two seconds, also from page to page.
    gaps = [after - before for before, after in pairwise(due)]
    assert min(gaps) > timedelta(seconds=1.9)
    assert due[-1] - due[0] >= timedelta(seconds=2 * 119 - 1)


@pytest.mark.parametrize(
    "given", [("some-id", "--dry-run"), ("some-id", "--rate", "1"), ("--all", "--rate", "0")]
)
def test_a_redrive_of_named_events_has_no_rate_and_no_trial(
    shell: Callable[..., Result], given: tuple[str, ...]
) -> None:
    shell("redrive", *given, status=64)
