"""The commands over the client, as somebody types them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from scheduler_app.cli import main
from scheduler_app.client import Scheduler
from scheduler_app.domain.masking import MASK
from tests.integration.client.conftest import KEY

URL = "https://example.com/backup"
YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"


class Shell:
    def __init__(self, url: str) -> None:
        self._environment = {"SCHEDULER_URL": url, "SCHEDULER_API_KEY": KEY}

    def run(self, *arguments: str, status: int = 0) -> Result:
        done = CliRunner().invoke(main, arguments, env=self._environment, catch_exceptions=False)
        assert done.exit_code == status, done.output
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)


@pytest.fixture
def shell(url: str) -> Shell:
    return Shell(url)


def test_a_schedule_from_its_creation_to_its_end(shell: Shell, scheduler: Scheduler) -> None:
    options = ("--name", "Backup", "--id", "backup", "--header", "X-Team: ops", "--data", '{"full": true}')
    made = shell.json("create", URL, "--rrule", YEARLY, *options, "--method", "post", "--tag", "nightly")
    assert made["id"] == "backup"
    found = scheduler.get("backup")
    assert (found["headers"], found["json"], found["method"]) == ({"X-Team": MASK}, MASK, "POST")
    assert shell.json("pause", "backup")["state"] == "paused"
    assert shell.json("resume", "backup")["state"] == "active"
    event_id = shell.run("trigger", "backup").stdout.strip()
    assert event_id.startswith("backup-manual-")
    assert shell.run("delete", "backup").stdout == "deleted backup\n"
    assert [event["_id"] for event in shell.json("history", "backup")] == [event_id]


def test_lists_are_tables_for_people(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    scheduler.schedule(URL, rrule=YEARLY, name="a [bold]name[/] of markup", id=tag, tags=[tag])
    heading, line = shell.run("list", "--tag", tag).stdout.splitlines()
    assert heading.split()[:5] == ["state", "last", "run", "id", "name"]
    assert "a [bold]name[/] of markup" in line
    assert "2040-01-01T00:00:00Z" in line
    event_id = scheduler.trigger(tag)
    scheduler.cancel(tag)
    assert event_id in shell.run("history", tag).stdout


def test_a_list_that_goes_on_says_so(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    for _ in range(3):
        scheduler.schedule(URL, rrule=YEARLY, tags=[tag])
    done = shell.run("list", "--tag", tag, "--limit", "2")
    assert len(done.stdout.splitlines()) == 3
    assert "There are more" in done.stderr


def test_get_shows_each_field_on_its_line(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    scheduler.schedule(URL, run_at="2040-01-01T00:00:00Z", id=tag, json={"n": 1})
    shown = dict(line.split(maxsplit=1) for line in shell.run("get", tag).stdout.splitlines() if "  " in line)
    assert shown["callback_url"] == URL
    assert shown["json"] == MASK


def test_what_is_exported_is_imported_again(
    shell: Shell, scheduler: Scheduler, tag: str, tmp_path: Path
) -> None:
    made = [scheduler.schedule(URL, rrule=YEARLY, name=f"é {n}", tags=[tag], json={"n": n}) for n in range(3)]
    scheduler.schedule(URL, rrule=YEARLY, tags=[tag], name="s", headers={"Authorization": "Bearer real"})
    text = shell.run("export", "--tag", tag).stdout
    taken = [{**json.loads(line), "id": f"again-{tag}-{n}"} for n, line in enumerate(text.splitlines())]
    file = tmp_path / "schedules.ndjson"
    del taken[0]["sealed"]
    file.write_text("\n\n".join(map(json.dumps, taken)))
    done = shell.run("import", str(file), status=1)
    assert done.stdout == "created 3, changed 0, unchanged 0, refused 1\n"
    assert done.stderr.startswith("line 1: headers: Authorization is masked")
    names = [scheduler.get(each["id"])["name"] for each in taken[1:]]
    assert sorted(names) == sorted(each["name"] for each in made)
    file.write_text("{")
    assert "line 1 is not JSON" in shell.run("import", str(file), status=64).stderr


def test_a_calendar_is_imported_and_follows_its_file(
    shell: Shell, scheduler: Scheduler, tag: str, tmp_path: Path
) -> None:
    def calendar(*events: str) -> None:
        inner = "".join(f"BEGIN:VEVENT\nUID:{tag}-{n}\n{each}\nEND:VEVENT\n" for n, each in enumerate(events))
        file.write_text(f"\n\ufeffBEGIN:VCALENDAR\n{inner}END:VCALENDAR\n", encoding="utf-8")

    file = tmp_path / "calendar.ics"
    nine, ten = (f"DTSTART:2040010{n}T090000Z\nRRULE:FREQ=DAILY\nSUMMARY:Backup" for n in (1, 2))
    calendar(nine, nine, "DTSTART:20200101T090000Z\nSUMMARY:Past")
    options = ("import", str(file), "--callback-url", URL, "--tag", tag, "--id-prefix", tag)
    said = "created {}, changed {}, unchanged {}, removed {}, refused {}, over 1, ignored {}\n".format
    assert shell.run(*options, "--dry-run").stdout == f"dry run: {said(2, 0, 0, 0, 0, 0)}"
    first = shell.run(*options)
    assert first.stdout == said(2, 0, 0, 0, 0, 0)
    assert "Past: all of its occurrences have passed" in first.stderr
    assert [each.name for each in scheduler.list(tag=tag)] == ["Backup"] * 2
    assert shell.run(*options).stdout == said(0, 0, 2, 0, 0, 0)
    calendar(ten, f"{nine}\nSTATUS:CANCELLED", "DTSTART:20200101T090000Z\nSUMMARY:Past")
    refused = shell.run(*options, status=1)
    assert refused.stdout == said(0, 0, 0, 0, 1, 1)
    assert "differs" in refused.stderr
    assert shell.run(*options, "--update", "--dry-run").stdout == f"dry run: {said(0, 1, 0, 1, 0, 1)}"
    assert shell.run(*options, "--update").stdout == said(0, 1, 0, 1, 0, 1)
    (left,) = scheduler.list(tag=tag)
    assert left["next_run_at"] == "2040-01-02T09:00:00Z"
    assert "--callback-url or --destination" in shell.run("import", str(file), status=64).stderr
    lines = tmp_path / "lines.ndjson"
    lines.write_text("{}")
    assert "is for a calendar" in shell.run("import", str(lines), "--tag", tag, status=64).stderr


def test_an_export_restores_what_was_deleted_and_its_states(
    shell: Shell, scheduler: Scheduler, tag: str, tmp_path: Path
) -> None:
    past = "2020-01-01T00:00:00Z"
    for state, more in (
        ("active", {"rrule": "FREQ=DAILY;COUNT=9"}),
        ("paused", {"rrule": YEARLY}),
        ("finished", {"run_at": past}),
        ("error", {"rrule": YEARLY, "reason": "why"}),
    ):
        scheduler.put(
            f"{tag}-{state}", {"name": state, "callback_url": URL, "tags": [tag], "state": state} | more
        )
    file = tmp_path / "schedules.ndjson"
    text = shell.run("export", "--tag", tag).stdout
    file.write_text(text)
    versions = {each["id"]: each["version"] for each in scheduler.list(tag=tag)}
    for _ in range(2):
        assert shell.run("import", str(file)).stdout == "created 0, changed 0, unchanged 4, refused 0\n"
    assert shell.run("import", str(file), "--update").stdout.startswith("created 0, changed 0, unchanged 4")
    assert {each["id"]: each["version"] for each in scheduler.list(tag=tag)} == versions
    shell.run("delete", "--tag", tag, "--yes")
    said = "created 4, changed 0, unchanged 0, refused 0\n"
    assert shell.run("import", str(file), "--dry-run").stdout == f"dry run: {said}"
    assert shell.run("export", "--tag", tag).stdout == ""
    assert shell.run("import", str(file)).stdout == said
    again = shell.run("export", "--tag", tag).stdout
    assert sorted(again.splitlines()) == sorted(text.splitlines())
    assert scheduler.get(f"{tag}-active")["next_run_at"]


def test_an_import_changes_what_differs_only_when_told_to(
    shell: Shell, scheduler: Scheduler, tag: str, tmp_path: Path
) -> None:
    scheduler.schedule(URL, rrule=YEARLY, id=tag, name="old")
    line = {"id": tag, "name": "new", "callback_url": URL, "rrule": YEARLY, "tags": [tag]}
    nameless = {"name": "same", "callback_url": URL, "rrule": YEARLY, "tags": [tag]}
    file = tmp_path / "schedules.ndjson"
    file.write_text("\n".join(map(json.dumps, (line, nameless, nameless))))
    refused = shell.run("import", str(file), status=1)
    assert refused.stdout == "created 2, changed 0, unchanged 0, refused 1\n"
    assert refused.stderr == f"line 1: schedule {tag} exists and differs; --update changes it\n"
    dry = shell.run("import", str(file), "--update", "--dry-run")
    assert dry.stdout == "dry run: created 0, changed 1, unchanged 2, refused 0\n"
    assert scheduler.get(tag)["name"] == "old"
    assert shell.run("import", str(file), "--update").stdout == dry.stdout.removeprefix("dry run: ")
    assert scheduler.get(tag)["name"] == "new"
    assert len(list(scheduler.list(tag=tag))) == 3


def test_a_long_import_says_how_far_it_is(
    shell: Shell, scheduler: Scheduler, tag: str, tmp_path: Path
) -> None:
    file = tmp_path / "schedules.ndjson"
    line = {"name": "n", "callback_url": URL, "rrule": YEARLY, "tags": [tag]}
    file.write_text("\n".join(json.dumps(line | {"id": f"{tag}-{number}"}) for number in range(1_001)))
    done = shell.run("import", str(file), "--dry-run")
    assert done.stderr == "… created 1,000, changed 0, unchanged 0, refused 0\n"
    assert done.stdout == "dry run: created 1,001, changed 0, unchanged 0, refused 0\n"


def test_preview_shows_when_a_rule_would_run(shell: Shell) -> None:
    options = ("--timezone", "Europe/Zurich", "--after", "2030-07-01T00:00:00Z", "--limit", "1")
    done = shell.run("preview", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", *options)
    assert "2030-07-01T07:00:00Z" in done.stdout


def test_the_promise_is_shown_where_it_is_asked_for(shell: Shell, tag: str) -> None:
    made = shell.json("create", "http://nobody.invalid/", "--id", tag, "--every", "1h", "--promise")
    assert made["promise"]["receiver"]["reachable"] is False
    assert "promise" not in shell.json("update", tag, "--name", "n")
    assert shell.json("update", tag, "--name", "m", "--promise")["promise"]["queue"] == "callbacks"
    said = shell.run("preview", "--every", "1h", "--promise").stdout
    assert "worker" in said


def test_preview_takes_any_trigger_and_exactly_one(shell: Shell) -> None:
    options = ("--run-at", "2040-07-01T09:00:00", "--timezone", "Europe/Zurich")
    assert "2040-07-01T07:00:00Z" in shell.run("preview", *options).stdout
    assert "give RRULE, or one of --" in shell.run("preview", status=64).stderr
    assert "give RRULE, or one of --" in shell.run("preview", "FREQ=DAILY", *options, status=64).stderr


def test_create_has_an_option_for_every_field(shell: Shell, tag: str) -> None:
    options = ("--timeout-seconds", "2.5", "--success-code", "2xx", "--success-code", "404", "--gap", "skip")
    made = shell.json("create", URL, "--every-seconds", "3600", *options, "--signing", "--tag", tag)
    assert made["every_seconds"] == 3600
    assert (made["timeout_seconds"], made["success_codes"]) == (2.5, ["2xx", "404"])
    assert (made["gap"], made["signing"], made["tags"]) == ("skip", True, [tag])


def test_a_refusal_is_the_api_s_own_sentence(shell: Shell) -> None:
    done = shell.run("create", URL, "--rrule", "FREQ=SOMETIMES", status=1)
    assert done.stderr.startswith("Error: 422: rrule:")
    assert shell.run("get", "nobody", status=1).stderr == "Error: 404: there is no schedule nobody\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--rrule", YEARLY, "--destination", "billing"),
            "give one of CALLBACK_URL, --destination",
        ),
        ((), "give exactly one of --rrule,"),
        (("--rrule", YEARLY, "--header", "no colon"), "is not NAME: VALUE"),
        (("--rrule", YEARLY, "--data", "{"), "is not JSON"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_it_is_sent(
    shell: Shell, scheduler: Scheduler, tag: str, options: tuple[str, ...], said: str
) -> None:
    assert said in shell.run("create", URL, *options, "--tag", tag, status=64).stderr
    assert list(scheduler.list(tag=tag)) == []


def test_nobody_at_the_address_is_told(shell: Shell) -> None:
    done = shell.run("list", "--url", "http://127.0.0.1:9", status=1)
    assert done.stderr == "Error: http://127.0.0.1:9 cannot be reached: [Errno 111] Connection refused\n"


def test_many_are_counted_and_then_edited(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    for _ in range(3):
        scheduler.schedule(URL, rrule=YEARLY, tags=[tag])
    # Nobody is there to say yes.
    assert shell.run("pause", "--tag", tag, status=1).stdout.startswith(
        f"3 schedules to pause: --tag {tag}\n"
    )
    assert len(list(scheduler.list(tag=tag, state="active"))) == 3
    assert (
        shell.run("pause", "--tag", tag, "--yes").stdout == f"3 schedules to pause: --tag {tag}\npaused 3\n"
    )
    assert shell.json("resume", "--tag", tag, "--state", "paused", "--yes") == {"resumed": 3, "skipped": []}
    assert (
        shell.run("delete", "--tag", tag, "--yes").stdout
        == f"3 schedules to delete: --tag {tag}\ndeleted 3\n"
    )
    assert shell.run("delete", "--tag", tag, "--yes").stdout == f"0 schedules to delete: --tag {tag}\n"


@pytest.mark.parametrize("verb", ["pause", "resume", "delete"])
def test_an_edit_needs_an_id_or_a_filter_and_not_both(shell: Shell, verb: str) -> None:
    assert "--all" in shell.run(verb, status=64).output
    assert "not both" in shell.run(verb, "some-id", "--all", status=64).output


def test_dead_letters_are_redriven_one_by_one_or_by_a_filter(
    shell: Shell, scheduler: Scheduler, tag: str, dead_letters: Callable[..., list[str]]
) -> None:
    made = scheduler.schedule(URL, rrule=YEARLY, tags=[tag])["id"]
    first, *others = dead_letters(made, 3, 503)
    assert shell.run("redrive", first).stdout == f"redriven {first}\n"
    assert shell.run("redrive", "--tag", tag, status=1).stdout.startswith(
        f"2 dead letters to redrive: --tag {tag}\n"
    )
    by_code = ("redrive", "--schedule", made, "--status-code", "5xx", "--yes")
    chosen = f"--schedule {made} --status-code 5xx"
    assert shell.run(*by_code).stdout == f"2 dead letters to redrive: {chosen}\nredriven 2\n"
    # Those that the API has not dispatched in its time are left to beats.
    assert {each["state"] for each in scheduler.events(schedule_id=made)} <= {"ready_queue", "worker_queue"}
    assert "--all" in shell.run("redrive", status=64).output
    assert "not both" in shell.run("redrive", others[0], "--all", status=64).output


def test_lists_and_histories_take_the_api_s_filters(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    made = scheduler.schedule(URL, rrule="FREQ=MINUTELY", tags=[tag])["id"]
    scheduler.pause(made)
    assert shell.json("list", "--tag", tag, "--last-outcome", "error") == []
    assert shell.json("history", made) == []
    assert shell.json("history", made, "--include-cancelled")[0]["state"] == "cancelled"
    assert shell.run("export", "--tag", tag, "--last-outcome", "error").stdout == ""


def test_what_others_wrote_does_not_drive_the_terminal(
    shell: Shell, scheduler: Scheduler, tag: str, tmp_path: Path
) -> None:
    hostile = "a\x1b]0;title\x07b\x9b31mc\u202ed\u2066e\x7f\r\u2028f"
    options: dict[str, Any] = {"name": tag, "tags": [tag], "body": hostile, "headers": {"X-A": "\x9b\u202e"}}
    scheduler.schedule(f"{URL}?\u202e", rrule=YEARLY, id=tag, **options)
    lines = tmp_path / "lines"
    lines.write_text(json.dumps({"name": "n", hostile: 1}) + "\n", encoding="utf-8")
    shown = [
        shell.run("get", tag),
        shell.run("get", tag, "--json"),
        shell.run("list", "--tag", tag),
        shell.run("export", "--tag", tag),
        shell.run("import", str(lines), status=1),
        shell.run("get", hostile, status=1),
        shell.run("create", URL, "--rrule", YEARLY, "--name", hostile, "--tag", hostile, status=1),
        shell.run("create", URL, "--rrule", hostile, status=1),
    ]
    for done in shown:
        assert not set("\x1b\x07\x9b\u202e\u2066\x7f\r\u2028") & set(done.output), done.output
    assert any("\\u001b" in done.output for done in shown)


def test_why_says_the_reason_and_the_occurrences_around_it(
    shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    scheduler.schedule(URL, rrule=YEARLY, timezone="Europe/Zurich", id=tag)
    lines = shell.run("why", tag, "2041-03-01T00:00").stdout.splitlines()
    assert lines[0] == "2041-03-01T00:00:00Z (2041-03-01T00:00:00+00:00): it does not fire."
    assert lines[1].startswith("  BYMONTH: The rule has no BYMONTH, so DTSTART implies BYMONTH=1")
    assert lines[2] == "    of the rule FREQ=YEARLY"
    assert lines[3:] == [
        "previous  2041-01-01T00:00:00Z (2041-01-01T00:00:00+00:00)",
        "next      2042-01-01T00:00:00Z (2042-01-01T00:00:00+00:00)",
    ]
    assert shell.json("why", tag, "2041-01-01T00:00:00Z")["fires"]
    lines = shell.run("why", tag, "2041-01-01T00:00:00Z").stdout.splitlines()
    assert lines[0].endswith(": it fires.")
    assert lines[1] == "  RRULE: FREQ=YEARLY names Tuesday 1 January 2041, 00:00:00."


def test_why_answers_for_a_deleted_schedule(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    scheduler.schedule(URL, rrule=YEARLY, id=tag)
    scheduler.cancel(tag)
    found = scheduler.why(tag, datetime(2041, 1, 1, tzinfo=UTC))
    assert (found["fires"], found["reason"]["code"]) == (False, "deleted")


@pytest.mark.parametrize(
    ("options", "local"),
    [
        (("--cron", "0 9 * * *"), "2040-07-01T09:00:00+02:00"),
        (("--every", "1h30m"), "2040-07-01T01:30:00+00:00"),
        (("--phrase", "every day at 9:34"), "2040-07-01T09:34:00+02:00"),
        (("--in", "10m"), "2040-07-01T00:10:00+00:00"),
        (("--at", "2040-07-01T12:00:00"), "2040-07-01T12:00:00+02:00"),
    ],
)
def test_create_and_preview_take_each_trigger_by_its_option(
    shell: Shell, options: tuple[str, ...], local: str
) -> None:
    zone = ("--timezone", "Europe/Zurich")
    found = shell.json("preview", *options, *zone, "--given-at", "2040-07-01T00:00:00Z", "--limit", "1")
    assert [each["local"] for each in found["occurrences"]] == [local]
    made = shell.json("create", URL, *options, *zone)
    assert next(iter(found["trigger"])) in made


def test_preview_says_what_a_trigger_became(shell: Shell) -> None:
    span = ("--after", "2040-01-01T00:00:00Z", "--until", "2040-01-02T09:00:00Z")
    lines = shell.run("preview", "--cron", "0 9 * * *", *span, "--display-timezone", "Asia/Tokyo").stdout
    assert lines.startswith("Every day at 09:00")
    assert "RRULE:FREQ=DAILY" in lines
    assert lines.splitlines()[-2:] == [
        "2040-01-01T09:00:00Z  2040-01-01T18:00:00+09:00",
        "2040-01-02T09:00:00Z  2040-01-02T18:00:00+09:00",
    ]
    on_demand = shell.run("preview", "--on-demand").stdout
    assert on_demand.startswith("Only on demand")


def test_the_client_previews_a_span_in_a_zone(scheduler: Scheduler) -> None:
    found = scheduler.preview(
        every_seconds=3600,
        at=datetime(2040, 1, 1, tzinfo=UTC),
        until="2040-01-01T02:00:00Z",
        display_timezone="Asia/Tokyo",
    )
    assert [each["local"][11:16] for each in found["occurrences"]] == ["10:00", "11:00"]


def test_tzdata_check_says_what_would_move(shell: Shell) -> None:
    assert shell.run("tzdata", "check").stdout == "No schedule would move.\n"
    assert shell.json("tzdata", "check") == []
