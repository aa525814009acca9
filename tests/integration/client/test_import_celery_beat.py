"""`scheduler import-celery-beat`: a dump of django-celery-beat's tables, RedBeat's keys in Redis, and an
application's beat_schedule become schedules of a real API."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from redis import Redis as RedisClient

from scheduler_app.cli import main
from scheduler_app.cli.celery_beat import django_dump, redbeat
from scheduler_app.client import Scheduler
from scheduler_app.embedded import Redis
from tests.integration.client.conftest import KEY

DUMP = Path(__file__).parent / "django_celery_beat.json"
ROOT = Path(__file__).parents[3]
REFUSED = {
    "Pulse": "runs every 0.25 s; only whole seconds",
    "Sunrise": "a solar event moves with the sun",
    "Over": "it is over since 2020-01-01T00:00:00+00:00",
    "Has run": "it was to run once, and has run",
    "Routed": "its options exchange, routing_key have no equivalent",
    "Broken arguments": "its args are not JSON",
    "Hour 25": "'25' is no hour of a crontab: it takes numbers from 0 to 23",
    "Lost crontab": "its crontab 99 is not in the dump",
}


class Shell:
    def __init__(self, url: str, prefix: str) -> None:
        self.environment: dict[str, str | None] = {"SCHEDULER_URL": url, "SCHEDULER_API_KEY": KEY}
        self.prefix = prefix

    def run(self, *arguments: str, status: int = 0, input: str | None = None) -> Result:
        line = ("import-celery-beat", "--broker", "shop", "--id-prefix", self.prefix, *arguments)
        done = CliRunner().invoke(main, line, env=self.environment, catch_exceptions=False, input=input)
        assert done.exit_code == status, done.output
        return done


@pytest.fixture
def shell(url: str, tag: str) -> Shell:
    return Shell(url, tag)


@pytest.fixture
def beat_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with Redis(tmp_path_factory.mktemp("beat-redis")) as redis:
        yield redis


def imported(scheduler: Scheduler, prefix: str) -> dict[str, Any]:
    found = (each for each in scheduler.list(tag="celery-beat") if each["id"].startswith(f"{prefix}-"))
    return {each["name"]: each for each in found}


def changed_dump(tmp_path: Path, task: str, /, **fields: Any) -> str:
    rows = json.loads(DUMP.read_text())
    (row,) = (row for row in rows if row["fields"].get("name") == task)
    row["fields"] |= fields
    (tmp_path / "dump.json").write_text(json.dumps(rows))
    return str(tmp_path / "dump.json")


def test_each_periodic_task_of_a_dump_becomes_a_schedule_or_is_named_with_the_reason(
    shell: Shell, scheduler: Scheduler
) -> None:
    done = shell.run("--dump", str(DUMP), status=1)
    assert done.stdout == "created 8, changed 0, unchanged 0, differs 0, refused 8\n"
    for name, reason in REFUSED.items():
        (line,) = (line for line in done.stderr.splitlines() if line.startswith(f"{name}: "))
        assert line.startswith(f"{name}: cannot be taken over: ")
        assert reason in line
    made = imported(scheduler, shell.prefix)
    assert len(made) == 8
    assert not made.keys() & REFUSED.keys()
    report = made["Weekday report"]
    assert (report["cron"], report["timezone"], report["state"]) == (
        "30 6 * * 1-5",
        "Europe/Zurich",
        "active",
    )
    assert report["purpose"] == "What the board reads at breakfast"
    assert {name: report["action"].get(name) for name in ("type", "task", "broker", "queue", "priority")} == {
        "type": "celery_task",
        "task": "shop.tasks.report",
        "broker": "shop",
        "queue": "reports",
        "priority": 7,
    }
    assert made["celery.backend_cleanup"]["action"]["expires"] == 43_200
    assert (made["Nights"]["state"], made["Nights"]["note"]) == ("paused", "disabled in Celery beat")
    # A range that runs backwards, as Celery allows it.
    assert made["Nights"]["cron"] == "*/15 0-2,22,23 * * *"
    assert (made["Poll"]["every_seconds"], made["Poll"]["start_at"]) == (600, "2026-10-01T07:58:12Z")
    assert made["Go live"]["next_run_at"] == "2040-03-01T09:30:00Z"
    assert made["Once"]["next_run_at"] == "2040-05-02T04:00:00Z"
    # Celery wants both day fields satisfied, where cron takes either.
    friday = datetime.fromisoformat(made["Friday the 13th"]["next_run_at"])
    assert (friday.weekday(), friday.day) == (4, 13)


def test_a_start_and_an_end_become_those_of_the_rule(shell: Shell, scheduler: Scheduler) -> None:
    shell.run("--dump", str(DUMP), status=1)
    water = imported(scheduler, shell.prefix)["Every other day until 2041"]
    runs = scheduler.preview(water["rrule"], limit=1_000)["occurrences"]
    assert (runs[0]["run_time"], runs[-1]["run_time"]) == ("2039-12-31T23:00:00Z", "2040-12-31T23:00:00Z")
    assert len(runs) == 184  # every other day of a leap year


def test_a_repeat_duplicates_nothing_and_changes_only_what_it_is_told_to(
    shell: Shell, scheduler: Scheduler, tmp_path: Path
) -> None:
    shell.run("--dump", str(DUMP), status=1)
    again = shell.run("--dump", str(DUMP), status=1)
    assert again.stdout == "created 0, changed 0, unchanged 8, differs 0, refused 8\n"
    # The arguments are masked in answers, and a change of them is seen nevertheless.
    other = changed_dump(tmp_path, "Weekday report", args='["weekly", 3]')
    differs = shell.run("--dump", other, status=1)
    assert "unchanged 7, differs 1" in differs.stdout
    assert "exists and differs; --update changes it" in differs.stderr
    assert "changed 1, unchanged 7" in shell.run("--dump", other, "--update", status=1).stdout
    assert len(imported(scheduler, shell.prefix)) == 8


def test_a_task_that_is_enabled_meanwhile_goes_on_and_somebody_s_own_pause_stays(
    shell: Shell, scheduler: Scheduler, tmp_path: Path
) -> None:
    shell.run("--dump", str(DUMP), status=1)
    scheduler.pause(imported(scheduler, shell.prefix)["Poll"]["id"], note="the shop is closed")
    enabled = changed_dump(tmp_path, "Nights", enabled=True)
    assert "changed 1, unchanged 7" in shell.run("--dump", enabled, "--update", status=1).stdout
    made = imported(scheduler, shell.prefix)
    assert (made["Nights"]["state"], made["Poll"]["state"]) == ("active", "paused")


def test_a_dry_run_shows_what_comes_and_changes_nothing(shell: Shell, scheduler: Scheduler) -> None:
    done = shell.run("--dump", str(DUMP), "--dry-run", status=1)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Every other day"))
    assert "2039-12-31T23:00:00Z, 2040-01-02T23:00:00Z, 2040-01-04T23:00:00Z" in line
    (nights,) = (line for line in done.stdout.splitlines() if line.startswith("Nights"))
    assert "created, paused" in nights
    assert "cron */15 0-2,22,23 * * * (America/New_York)" in nights
    assert done.stdout.endswith("dry run: created 8, changed 0, unchanged 0, differs 0, refused 8\n")
    assert "Sunrise: cannot be taken over: a solar event" in done.stderr
    assert "canary-of-the-dump" not in done.output
    assert imported(scheduler, shell.prefix) == {}


def test_other_people_s_words_are_shown_as_they_are_and_cut_with_a_note(
    shell: Shell, scheduler: Scheduler, tmp_path: Path
) -> None:
    odd = changed_dump(tmp_path, "Poll", name="[red]Poll", description="why " * 1_000)
    done = shell.run("--dump", odd, "--dry-run", status=1)
    assert "[red]Poll" in done.stdout
    assert "only the first 2,000 characters of its description" in done.stderr
    shell.run("--dump", odd, status=1)
    assert imported(scheduler, shell.prefix)["[red]Poll"]["purpose"] == "why " * 500
    refused = shell.run("--dump", changed_dump(tmp_path, "Poll", name="Poll\x1b[2J"), status=1)
    assert "cannot be taken over: " in refused.stderr
    assert "\x1b" not in refused.output


def test_two_entries_of_one_name_are_not_one_schedule(
    shell: Shell, scheduler: Scheduler, tmp_path: Path
) -> None:
    twice = changed_dump(tmp_path, "Poll", name="Go live")
    assert (
        "Go live: cannot be taken over: another entry has the same name"
        in shell.run("--dump", twice, status=1).stderr
    )
    assert imported(scheduler, shell.prefix)["Go live"]["action"]["task"] == "shop.tasks.poll"


def test_a_dump_has_bounds_and_says_what_is_wrong_with_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(text: str) -> str:
        return shell.run("--dump", "-", status=1, input=text).stderr

    assert "no JSON list; make it with `manage.py dumpdata" in refused("{")
    assert "has no django_celery_beat.periodictask" in refused("[]")
    assert "row 1 of the dump is not a row of a table" in refused("[1]")
    monkeypatch.setattr(django_dump, "MAX_ENTRIES", 15)
    assert "more than 15 periodic tasks" in refused(DUMP.read_text())
    monkeypatch.setattr(django_dump, "MAX_BYTES", 1_000)
    assert "larger than" in refused(DUMP.read_text())
    for given in (
        (),
        ("--dump", str(DUMP), "--app", "shop"),
        ("--dump", str(DUMP), "--redbeat", "redis://h"),
    ):
        assert "give one of --app, --dump and --redbeat" in shell.run(*given, status=64).stderr


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"start_time": "0001-01-01T00:00:00+14:00"}, "its start_time is no time from 1970 to 9997"),
        ({"start_time": "tomorrow"}, "its start_time is no time"),
        ({"start_time": "2040-01-01T00:00:00Z", "interval": None, "crontab": 6}, "'Mars/Base' is no zone"),
        ({"interval": None, "crontab": 6}, "Mars/Base"),
        ({"interval": None}, "it must have one of a crontab"),
        ({"task": None}, "task"),
        ({"headers": "[1]"}, "headers"),
        ({"priority": "high"}, "priority"),
        ({"expire_seconds": 0.5}, "whole seconds"),
        ({"kwargs": "[1]"}, "its kwargs an object"),
    ],
    ids=str,
)
def test_a_row_that_is_wrong_harms_only_itself(
    shell: Shell, tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    rows = json.loads(Path(changed_dump(tmp_path, "Poll", **fields)).read_text())
    mars = {"minute": "0", "hour": "4", "timezone": "Mars/Base"}
    rows.append({"model": "django_celery_beat.crontabschedule", "pk": 6, "fields": mars})
    done = shell.run("--dump", "-", status=1, input=json.dumps(rows))
    assert done.stdout == "created 7, changed 0, unchanged 0, differs 0, refused 9\n"
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("Poll: "))
    assert reason in line


def test_a_broker_that_the_api_does_not_know_is_refused_by_each(shell: Shell, scheduler: Scheduler) -> None:
    done = shell.run("--dump", str(DUMP), "--broker", "elsewhere", status=1)
    assert "created 0" in done.stdout
    assert "Poll: cannot be taken over: " in done.stderr
    assert "CELERY_BROKERS" in done.stderr


class RedBeat:
    """Writes entries as RedBeat's `save` does."""

    def __init__(self, redis: Redis, prefix: str = "redbeat:") -> None:
        self.client = RedisClient.from_url(redis.url, decode_responses=True)
        self.prefix = prefix
        self.client.set(f"{prefix}:lock", "somebody")
        self.client.sadd(f"{prefix}:statics", "nightly")

    def save(
        self, name: str, schedule: object, *, enabled: bool = True, ran: object = None, **fields: Any
    ) -> None:
        definition: dict[str, Any] = {
            "name": name,
            "task": "shop.tasks.report",
            "args": [],
            "kwargs": {},
            "options": {},
        }
        definition |= {"schedule": schedule, "enabled": enabled, **fields}
        key = self.prefix + name
        self.client.hset(key, "definition", json.dumps(definition))
        self.client.hset(key, "meta", json.dumps({"last_run_at": ran, "total_run_count": 1}))
        self.client.zadd(f"{self.prefix}:schedule", {key: 1_900_000_000})


CRONTAB = {
    "__type__": "crontab",
    "minute": "0",
    "hour": "7",
    "day_of_week": "sun,wed",
    "day_of_month": "*",
    "month_of_year": "*",
}
RAN = {
    "__type__": "datetime",
    "year": 2026,
    "month": 10,
    "day": 1,
    "hour": 10,
    "minute": 0,
    "second": 30,
    "microsecond": 5,
    "timezone": "Europe/Zurich",
}


def test_redbeat_s_keys_become_schedules(shell: Shell, scheduler: Scheduler, beat_redis: Redis) -> None:
    keys = RedBeat(beat_redis)
    keys.save("nightly", CRONTAB, options={"queue": "slow", "expires": 60.0}, args=["x"])
    keys.save("poll", {"__type__": "interval", "every": 90.0, "relative": True}, ran=RAN, enabled=False)
    rule: dict[str, Any] = {
        "__type__": "rrule",
        "freq": 1,
        "interval": 2,
        "wkst": None,
        "count": None,
        "bysetpos": -1,
    }
    rule |= {
        "byweekday": [{"__type__": "weekday", "wkday": 0}, 4],
        "byhour": [9],
        "byminute": 0,
        "bysecond": 0,
    }
    rule |= {"dtstart": 2_240_524_800, "dtstart_tz": 120, "until": 2_300_000_000, "until_tz": 120}
    keys.save("last Monday or Friday", rule)
    keys.save("easter", rule | {"byeaster": 0})
    keys.save("fast", {"__type__": "interval", "every": 0.5, "relative": False})
    keys.save("soon", CRONTAB, options={"countdown": 5})
    keys.client.zadd("redbeat::schedule", {"redbeat:gone": 1})
    keys.client.hset("redbeat:broken", "definition", "{")
    keys.client.zadd("redbeat::schedule", {"redbeat:broken": 1})
    keys.client.hset("redbeat:bytes", "definition", b"\xff\xfe")
    keys.client.zadd("redbeat::schedule", {"redbeat:bytes": 1})
    done = shell.run("--redbeat", beat_redis.url, "--timezone", "Europe/Zurich", status=1)
    assert done.stdout == "created 3, changed 0, unchanged 0, differs 0, refused 6\n"
    for name, reason in {
        "easter": "BYEASTER is not part of RFC 5545",
        "fast": "every 0.5 s",
        "soon": "options countdown",
        "gone": "its key has no definition",
        "broken": "its definition is not JSON",
        "bytes": "its definition is not JSON",
    }.items():
        assert f"{name}: cannot be taken over: " in done.stderr
        assert reason in done.stderr
    assert "poll: relative: it counts from its last run" in done.stderr
    made = imported(scheduler, shell.prefix)
    assert (made["nightly"]["cron"], made["nightly"]["timezone"]) == ("0 7 * * 0,3", "Europe/Zurich")
    assert (made["nightly"]["action"]["queue"], made["nightly"]["action"]["expires"]) == ("slow", 60)
    assert (made["poll"]["every_seconds"], made["poll"]["start_at"]) == (90, "2026-10-01T08:00:30Z")
    assert made["poll"]["state"] == "paused"
    # The last Monday or Friday of December 2040 and of February 2041, at nine two hours east of Greenwich.
    runs = scheduler.preview(made["last Monday or Friday"]["rrule"], limit=2)["occurrences"]
    assert [each["run_time"] for each in runs] == ["2040-12-31T07:00:00Z", "2041-02-25T07:00:00Z"]
    assert (
        "unchanged 3"
        in shell.run("--redbeat", beat_redis.url, "--timezone", "Europe/Zurich", status=1).stdout
    )


def test_redbeat_s_keys_have_bounds_and_another_prefix(
    shell: Shell, scheduler: Scheduler, beat_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "has no schedule redbeat::schedule" in shell.run("--redbeat", beat_redis.url, status=1).stderr
    keys = RedBeat(beat_redis, "own:")
    for name in ("a", "b"):
        keys.save(name, CRONTAB)
    keys.save("large", CRONTAB, args=["x" * redbeat.MAX_DEFINITION_BYTES])
    done = shell.run("--redbeat", beat_redis.url, "--redbeat-prefix", "own:", status=1)
    assert "created 2" in done.stdout
    assert "large: cannot be taken over: its definition is larger than 512 KiB" in done.stderr
    monkeypatch.setattr(redbeat, "MAX_ENTRIES", 2)
    many = shell.run("--redbeat", beat_redis.url, "--redbeat-prefix", "own:", status=1)
    assert "more than 2 entries" in many.stderr
    bad = shell.run("--redbeat", "redis://user:pass/word@host:1", status=1)
    assert "must be a URL such as redis://host:6379/0" in bad.stderr
    assert "pass" not in bad.output
    away = shell.run("--redbeat", "redis://:pass@127.0.0.1:1/0", status=1)
    assert "Redis did not answer" in away.stderr
    assert "pass" not in away.output


APPLICATION = """
from datetime import datetime, timedelta

from celery import Celery
from celery.schedules import crontab, schedule, solar

app = Celery("shop", broker="memory://")
app.conf.timezone = "Europe/Zurich"


class Moon(schedule):
    pass


app.conf.beat_schedule = {
    "bills": {"task": "shop.bill", "schedule": crontab(minute=0, hour={6, 7, 8}, day_of_month="1"),
              "args": ("monthly",), "options": {"queue": "high", "expires": timedelta(minutes=5)}},
    "poll": {"task": "shop.poll", "schedule": 30.0},
    "sweep": {"task": "shop.sweep", "schedule": timedelta(hours=1)},
    "rounded": {"task": "shop.sweep", "schedule": schedule(60.0, relative=True)},
    "lights": {"task": "shop.lights", "schedule": solar("sunset", 47.4, 8.5)},
    "moon": {"task": "shop.tide", "schedule": Moon(60.0)},
    "since": {"task": "shop.bill", "schedule": 60.0, "args": (datetime(2026, 1, 1),)},
    "soon": {"task": "shop.bill", "schedule": 0.1},
}


@app.on_after_finalize.connect
def more(sender, **_):
    sender.add_periodic_task(crontab(hour=12, minute=30), sender.signature("shop.lunch"), name="lunch")
"""


def test_an_application_s_beat_schedule_becomes_schedules(
    shell: Shell, scheduler: Scheduler, url: str, tmp_path: Path
) -> None:
    (tmp_path / "shop_app.py").write_text(APPLICATION)
    # Celery's class needs ephem to exist, and nothing of it until somebody asks when the sun sets.
    (tmp_path / "ephem.py").write_text("class Observer:\n    pass\n")
    (tmp_path / "broken_app.py").write_text("raise RuntimeError('no settings')\n")

    def run(place: str) -> subprocess.CompletedProcess[str]:
        line = ("import-celery-beat", "--broker", "shop", "--id-prefix", shell.prefix, "--app", place)
        environment = {"SCHEDULER_URL": url, "SCHEDULER_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-m", "scheduler_app.cli", *line],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )

    done = run("shop_app:app")
    assert done.stdout == "created 5, changed 0, unchanged 0, differs 0, refused 4\n", done.stderr
    assert "lights: cannot be taken over: a solar event" in done.stderr
    assert "moon: cannot be taken over: its schedule is a shop_app.Moon" in done.stderr
    assert "since: cannot be taken over: its arguments are not JSON" in done.stderr
    assert "soon: cannot be taken over: it runs every 0.1 s" in done.stderr
    assert "rounded: relative" in done.stderr
    made = imported(scheduler, shell.prefix)
    assert (made["bills"]["cron"], made["bills"]["timezone"]) == ("0 6-8 1 * *", "Europe/Zurich")
    assert (made["bills"]["action"]["queue"], made["bills"]["action"]["expires"]) == ("high", 300)
    assert (made["poll"]["every_seconds"], made["sweep"]["every_seconds"]) == (30, 3_600)
    assert made["lunch"]["cron"] == "30 12 * * *"
    assert "unchanged 5" in run("shop_app:app").stdout
    assert "has no Celery application nothing" in run("shop_app:nothing").stderr
    assert "needs not_there, which is not installed here" in run("not_there:app").stderr
    assert "importing broken_app failed: RuntimeError: no settings" in run("broken_app:app").stderr


def test_without_redis_py_only_the_source_that_needs_it_is_refused(shell: Shell, url: str) -> None:
    program = (
        "import sys\n"
        "sys.modules['redis'] = sys.modules['celery'] = None\n"
        "from scheduler_app.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    environment = {**os.environ, "SCHEDULER_URL": url, "SCHEDULER_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
    line = ("import-celery-beat", "--broker", "shop", "--id-prefix", shell.prefix, "--dry-run")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *line, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    assert "created 8" in run("--dump", str(DUMP)).stdout
    refused = run("--redbeat", "redis://127.0.0.1:1/0")
    assert refused.stderr == "Error: reading RedBeat's keys needs redis: pip install redis\n"
