"""`scheduler apply`: files are made true, planned in occurrences, and owned."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from scheduler_app.cli.apply.files import ApplyItem, read_yaml
from scheduler_app.cli.apply.planning import plan
from scheduler_app.client import Scheduler
from scheduler_app.embedded import Mongod
from tests.integration.client.conftest import KEY
from tests.integration.client.test_operating import Shell

URL = "https://example.com/report"


@pytest.fixture
def shell(url: str) -> Shell:
    return Shell(url)


class Files:
    """A folder of files, and `scheduler apply` of it for an owner of its own."""

    def __init__(self, shell: Shell, folder: Path, owner: str) -> None:
        self.shell, self.folder, self.owner = shell, folder, owner

    def write(self, content: dict[str, Any], name: str = "all.yaml") -> None:
        # JSON is YAML.
        (self.folder / name).write_text(json.dumps(content))

    def apply(self, *options: str, status: int = 0) -> str:
        done = self.shell.run("apply", "-f", str(self.folder), "--owner", self.owner, *options, status=status)
        return done.stdout + done.stderr

    def plan(self, *options: str, status: int = 2) -> str:
        return self.apply("--plan", *options, status=status)


@pytest.fixture
def files(shell: Shell, scheduler: Scheduler, tmp_path: Path, tag: str) -> Iterator[Files]:
    yield Files(shell, tmp_path, tag)
    # Also where the test failed: a blackout of everything would bend the forecasts of other tests.
    for each in scheduler.blackouts():
        if each["name"].startswith(tag):
            scheduler.delete_blackout(each["name"])


def daily(name: str, hour: int = 9, **fields: Any) -> dict[str, Any]:
    return {"id": name, "name": name, "cron": f"0 {hour} * * *", "callback_url": URL, **fields}


def counts(said: str) -> dict[str, int]:
    words = said.splitlines()[-1].removeprefix("plan: ").replace(",", "").split()
    return {name: int(count) for name, count in zip(words[::2], words[1::2], strict=True) if count != "0"}


def test_what_files_say_is_made_once(files: Files, scheduler: Scheduler, tag: str) -> None:
    files.write(
        {
            "schedules": [
                daily(f"{tag}-s", calendar=tag, tags=["own"]),
                {"id": f"{tag}-d", "name": "d", "every_seconds": 3600, "destination": tag},
            ],
            "destinations": [{"name": tag, "url": "https://example.com/hook"}],
            "calendars": [{"name": tag, "dates": [{"date": "2030-01-02"}]}],
        }
    )
    planned = files.plan()
    assert counts(planned) == {"created": 4}
    assert f"+ schedule {tag}-d (checked once what it names has been created)" in planned
    assert scheduler.find(f"{tag}-s") is None
    assert counts(files.apply()) == {"created": 4}
    assert scheduler.get(f"{tag}-s")["tags"] == ["own", f"apply:{tag}"]
    versions = {each["id"]: each["version"] for each in scheduler.list(tag=f"apply:{tag}")}
    assert len(versions) == 2
    # Applying again changes nothing, and a plan finds nothing.
    assert counts(files.plan(status=0)) == {"unchanged": 4}
    assert counts(files.apply()) == {"unchanged": 4}
    assert {each["id"]: each["version"] for each in scheduler.list(tag=f"apply:{tag}")} == versions


def test_a_blackout_is_made_once(files: Files, scheduler: Scheduler, tag: str) -> None:
    night = {"name": tag, "cron": "0 22 * * *", "duration_seconds": 28_800, "tag": tag}
    files.write({"blackouts": [night]})
    assert counts(files.plan()) == {"created": 1}
    assert all(each["name"] != tag for each in scheduler.blackouts())
    assert counts(files.apply()) == {"created": 1}
    before = scheduler.get_blackout(tag)
    assert counts(files.plan(status=0)) == counts(files.apply()) == {"unchanged": 1}
    assert scheduler.get_blackout(tag)["created_at"] == before["created_at"]
    files.write({"blackouts": [night | {"policy": "skip"}]})
    assert "policy" in files.plan()
    assert counts(files.apply()) == {"changed": 1}
    assert scheduler.get_blackout(tag)["policy"] == "skip"


def test_a_plan_of_a_hundred_names_the_occurrences_of_the_one_that_changes(
    files: Files, scheduler: Scheduler, tag: str
) -> None:
    hundred = [daily(f"{tag}-{number}") for number in range(100)]
    files.write({"schedules": hundred})
    assert counts(files.apply()) == {"created": 100}
    hundred[41]["cron"] = "0 10 * * 1-5"
    files.write({"schedules": hundred})
    planned = files.plan()
    assert counts(planned) == {"changed": 1, "unchanged": 99}
    lines = planned.splitlines()
    assert lines[0] == f"~ schedule {tag}-41"
    assert lines[1] == '    cron: "0 9 * * *" → "0 10 * * 1-5"'
    found = json.loads(files.plan("--json"))["items"]
    (changed,) = [item for item in found if item["result"] == "changed"]
    assert changed["fields"] == {"cron": {"before": "0 9 * * *", "after": "0 10 * * 1-5"}}
    differs = changed["occurrences"]
    # Each of the 30 days has an occurrence that moves by an hour, or that goes at the weekend.
    assert 29 <= len(differs["moved"]) + len(differs["removed"]) <= 31
    assert 8 <= len(differs["removed"]) <= 10
    for pair in differs["moved"]:
        assert (pair["from"][10:16], pair["to"][:16]) == ("T09:00", pair["from"][:10] + "T10:00")
    assert f"    moved    {differs['moved'][0]['from']} → {differs['moved'][0]['to']}" in lines
    assert f"    removed  {differs['removed'][0]}" in lines
    # A plan changes nothing.
    assert scheduler.get(f"{tag}-41")["cron"] == "0 9 * * *"
    assert counts(files.apply()) == {"changed": 1, "unchanged": 99}
    assert scheduler.get(f"{tag}-41")["cron"] == "0 10 * * 1-5"


def test_a_plan_removes_nothing_where_its_window_ends_between_the_old_time_and_the_new(
    scheduler: Scheduler, tag: str
) -> None:
    """A day of the window's end has both times, or neither."""
    scheduler.schedule(URL, id=f"{tag}-edge", cron="0 8 * * *", name=tag)
    item = ApplyItem("schedules", f"{tag}-edge", daily(f"{tag}-edge", 9) | {"name": tag}, "all.yaml")
    now = datetime.now(UTC)
    for hour in (7, 8, 9, 10):
        then = (now + timedelta(days=1)).replace(hour=hour, minute=30)
        (step,) = plan(scheduler, [item], then)
        assert step.occurrences.removed == ()
        assert len(step.occurrences.added) == (hour == 8)  # of today, when the old time is over
        assert len(step.occurrences.moved) in (30, 31)


def test_prune_deletes_what_the_owner_no_longer_names(files: Files, scheduler: Scheduler, tag: str) -> None:
    files.write({"schedules": [daily(f"{tag}-a"), daily(f"{tag}-b")]})
    files.apply()
    scheduler.schedule(URL, rrule="FREQ=DAILY", id=f"{tag}-other", tags=["apply:somebody"])
    files.write({"schedules": [daily(f"{tag}-a")]})
    assert counts(files.plan(status=0)) == {"unchanged": 1}
    planned = files.plan("--prune")
    assert counts(planned) == {"unchanged": 1, "deleted": 1}
    assert f"- schedule {tag}-b" in planned
    assert "removed" in planned
    # Nobody is there to say yes.
    assert f"delete 1 schedule ({tag}-b)?" in files.apply("--prune", status=1)
    assert scheduler.find(f"{tag}-b") is not None
    assert counts(files.apply("--prune", "--yes")) == {"unchanged": 1, "deleted": 1}
    assert scheduler.find(f"{tag}-b") is None
    assert scheduler.find(f"{tag}-other") is not None


@pytest.fixture
def acting(url: str, shell: Shell, scheduler: Scheduler, tag: str) -> Iterator[Scheduler]:
    """A key of the installation that acts in a tenant which may have three schedules; so does the shell."""
    scheduler.put_tenant(tag, {"limits": {"schedules": 3}})
    shell.environment["SCHEDULER_TENANT"] = tag
    with Scheduler(url, KEY, tenant=tag) as made:
        yield made


def ids(scheduler: Scheduler) -> set[str]:
    return {each["id"] for each in scheduler.list()}


def test_schedules_are_replaced_at_the_limit_by_one_run(
    shell: Shell, acting: Scheduler, files: Files
) -> None:
    files.write({"schedules": [daily("a"), daily("b"), daily("c")]})
    assert counts(files.apply()) == {"created": 3}
    files.write({"schedules": [daily("a"), daily("d"), daily("e")]})
    planned = files.plan("--prune")
    assert counts(planned) == {"created": 2, "unchanged": 1, "deleted": 2}
    assert "+ schedule d (once a deletion has made room for it)" in planned
    assert counts(files.apply("--prune", "--yes")) == {"created": 2, "unchanged": 1, "deleted": 2}
    assert ids(acting) == {"a", "d", "e"}


def test_what_there_is_room_for_is_made_before_others_are_deleted(
    shell: Shell, acting: Scheduler, files: Files
) -> None:
    files.write({"schedules": [daily("a"), daily("b")]})
    files.apply()
    files.write({"schedules": [daily("c"), daily("d")]})
    said = files.apply("--prune", "--yes").splitlines()
    assert [line.split()[-1] for line in said if line.startswith("+")] == ["c", "d"]
    # The first one had room, and the second one had not.
    assert [line[0] for line in said[:4]] == ["+", "-", "-", "+"]
    assert ids(acting) == {"c", "d"}


def test_beyond_the_limit_and_without_deletions_nothing_more_is_made(
    shell: Shell, acting: Scheduler, files: Files
) -> None:
    files.write({"schedules": [daily("a"), daily("b"), daily("c")]})
    files.apply()
    files.write({"schedules": [daily("b"), *(daily(name) for name in "vwxyz")]})
    kept = files.apply(status=1)
    assert "unchanged 1, deleted 0, refused 5" in kept
    assert "may have 3 schedules: 3 of them are used" in kept
    done = "created 2, changed 0, unchanged 1, deleted 2, refused 3"
    assert f"plan: {done}" in files.plan("--prune", status=1)
    assert ids(acting) == {"a", "b", "c"}
    assert done in files.apply("--prune", "--yes", status=1)
    assert ids(acting) == {"b", "v", "w"}


def test_what_is_refused_harms_only_itself(files: Files, scheduler: Scheduler, tag: str) -> None:
    wrong = daily(f"{tag}-wrong") | {"cron": "61 9 * * *"}
    files.write({"schedules": [wrong, daily(f"{tag}-good"), daily(f"{tag}-tags", tags="x")]})
    assert "refused 2" in files.plan(status=1)
    said = files.apply(status=1)
    assert f"all.yaml: schedule {tag}-wrong: cron: " in said
    assert f"all.yaml: schedule {tag}-tags: tags: " in said
    assert scheduler.find(f"{tag}-good") is not None
    assert scheduler.find(f"{tag}-wrong") is None


def test_a_pause_removes_occurrences_and_a_name_moves_none(files: Files, tag: str) -> None:
    files.write({"schedules": [daily(f"{tag}-a"), daily(f"{tag}-b")]})
    files.apply()
    files.write({"schedules": [daily(f"{tag}-a", state="paused"), daily(f"{tag}-b") | {"name": "new"}]})
    found = {item["name"]: item for item in json.loads(files.plan("--json"))["items"]}
    assert 29 <= len(found[f"{tag}-a"]["occurrences"]["removed"]) <= 31
    assert found[f"{tag}-b"]["fields"] == {"name": {"before": f"{tag}-b", "after": "new"}}
    assert not any(found[f"{tag}-b"]["occurrences"].values())


def test_a_wrong_file_changes_nothing(files: Files, scheduler: Scheduler, tag: str) -> None:
    files.write({"schedules": [daily(f"{tag}-a")]}, "a.yaml")
    (files.folder / "b.yaml").write_text("schedules: [")
    assert "b.yaml: line 1" in files.apply(status=1)
    assert scheduler.find(f"{tag}-a") is None
    assert (
        "--owner has" in files.shell.run("apply", "-f", str(files.folder), "--owner", "a b", status=64).stderr
    )
    assert files.shell.run("apply", "-f", "nowhere", status=64).exit_code == 64


def test_the_schema_is_printed_for_editors(shell: Shell) -> None:
    assert json.loads(shell.run("apply", "--schema").stdout)["title"] == "Files of scheduler apply"
    assert "give -f FILE" in shell.run("apply", status=64).stderr


def test_an_owner_of_too_many_is_told_so(files: Files, tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write({"schedules": [daily(f"{tag}-{number}") for number in range(3)]})
    files.apply()
    monkeypatch.setattr("scheduler_app.cli.apply.applying.MOST_OWNED", 2)
    assert f"more than 2 schedules have the tag apply:{tag}" in files.apply("--prune", status=1)


def test_applying_an_export_of_everything_changes_nothing(
    files: Files, shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    files.write(
        {
            "calendars": [
                {"name": tag, "country": "CH", "subdivision": "ZH", "weekend": ["FR", "SA"]},
                {"name": f"{tag}-dates", "dates": [{"date": "2030-01-02", "name": "Ours"}]},
            ],
            "destinations": [
                {
                    "name": tag,
                    "url": "https://example.com/hook?key=secret",
                    "headers": {"Authorization": "Bearer secret"},
                    "rate_per_second": 5,
                    "signing": True,
                }
            ],
            "blackouts": [
                {"name": tag, "cron": "0 22 * * *", "timezone": "Europe/Zurich", "all": True}
                | {"duration_seconds": 28_800},
                {
                    "name": f"{tag}-freeze",
                    "rrule": "DTSTART:20261220T000000Z\nRRULE:FREQ=YEARLY",
                    "duration_seconds": 691_200,
                    "destination": tag,
                    "policy": "skip",
                },
            ],
            "schedules": [
                daily(
                    f"{tag}-s", calendar=tag, on_holiday="next", headers={"X-Key": "secret"}, json={"n": 1}
                ),
                {"id": f"{tag}-d", "name": "d", "every_seconds": 3600, "destination": tag, "path": "/a?b=c"},
                {"id": f"{tag}-p", "name": "p", "phrase": "every other tuesday at 9:34", "destination": tag}
                | {"state": "paused", "note": "wait", "run_overlap": "skip", "jitter_seconds": 60},
            ],
        }
    )
    files.apply()
    exported = shell.run("export", "--everything", "--tag", f"apply:{tag}").stdout
    assert "secret" not in exported
    found = read_yaml(exported)
    assert [each["id"] for each in found["schedules"]] == [f"{tag}-p", f"{tag}-d", f"{tag}-s"]
    for kind, names in {
        "calendars": {tag, f"{tag}-dates"},
        "destinations": {tag},
        "blackouts": {tag, f"{tag}-freeze"},
    }.items():
        assert names <= {each["name"] for each in found[kind]}, kind
    files.write(found)
    planned = files.plan(status=0)
    assert counts(planned) == counts(files.apply()) == {"unchanged": sum(map(len, found.values()))}


def test_an_export_of_everything_makes_the_same_again(
    files: Files, shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    night = {"name": tag, "cron": "0 22 * * *", "duration_seconds": 28_800, "tag": tag}
    dates = [{"date": "2030-01-02", "name": "Ours"}]
    files.write(
        {
            "calendars": [{"name": tag, "dates": dates}],
            "blackouts": [night],
            "schedules": [daily(f"{tag}-s", calendar=tag)],
        }
    )
    files.apply()
    shown = scheduler.get_blackout(tag)
    found = read_yaml(shell.run("export", "--everything", "--tag", f"apply:{tag}").stdout)
    scheduler.cancel(f"{tag}-s")
    scheduler.delete_blackout(tag)
    files.write(
        {
            "blackouts": [each for each in found["blackouts"] if each["name"] == tag],
            "schedules": found["schedules"],
        }
    )
    assert counts(files.apply()) == {"created": 2}
    again = scheduler.get_blackout(tag)
    assert {**again, "created_at": None} == {**shown, "created_at": None}


def test_an_export_of_everything_leaves_out_what_cannot_be_read(
    shell: Shell, scheduler: Scheduler, tag: str, mongod_server: Mongod, database_name: str
) -> None:
    scheduler.put_blackout(tag, {"cron": "0 22 * * *", "duration_seconds": 60, "tag": tag})
    scheduler.put_blackout(f"{tag}-well", {"cron": "0 22 * * *", "duration_seconds": 60, "tag": tag})
    try:
        with MongoClient[dict[str, Any]](mongod_server.uri) as client:
            bent = client[database_name]["blackouts"].update_one(
                {"_id": {"$regex": f"{tag}$"}}, {"$set": {"duration_seconds": "long"}}
            )
        assert bent.modified_count == 1
        done = shell.run("export", "--everything", "--tag", tag, status=1)
        assert f"left out: blackout {tag}: " in done.stderr
        names = [each["name"] for each in read_yaml(done.stdout)["blackouts"]]
        assert f"{tag}-well" in names
        assert tag not in names
    finally:
        scheduler.delete_blackout(tag)
        scheduler.delete_blackout(f"{tag}-well")
