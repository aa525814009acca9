"""The commands that operate: several ids, filters, what comes next, what happens, servers by name."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from scheduler_app.cli import client_options, main
from scheduler_app.cli.commands import events
from scheduler_app.client import Scheduler
from tests.integration.client.conftest import KEY
from tests.processes import wait_until

URL = "https://example.com/backup"
YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"


class Shell:
    def __init__(self, url: str) -> None:
        self.environment: dict[str, str | None] = {"SCHEDULER_URL": url, "SCHEDULER_API_KEY": KEY}

    def run(self, *arguments: str, status: int = 0, input: str | None = None) -> Result:
        done = CliRunner().invoke(main, arguments, env=self.environment, catch_exceptions=False, input=input)
        assert done.exit_code == status, done.output
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)


@pytest.fixture
def shell(url: str) -> Shell:
    return Shell(url)


def made(scheduler: Scheduler, tag: str, count: int = 3) -> list[str]:
    return [scheduler.schedule(URL, rrule=YEARLY, id=f"{tag}-{n}", tags=[tag])["id"] for n in range(count)]


def test_several_ids_are_done_one_by_one_and_a_wrong_one_harms_only_itself(
    shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    one, two, three = made(scheduler, tag)
    done = shell.run("pause", one, "nobody", "--id", two, status=1)
    assert done.stderr == "nobody: 404: there is no schedule nobody\n"
    assert [scheduler.get(each)["state"] for each in (one, two, three)] == ["paused", "paused", "active"]
    assert [each["id"] for each in shell.json("get", one, two)] == [one, two]
    assert shell.run("resume", one, two, "-q").stdout == f"{one}\n{two}\n"
    mixed = json.loads(shell.run("trigger", three, "nobody", "--json", status=1).stdout)
    assert mixed[0]["event_id"].startswith(f"{three}-manual-")
    assert mixed[1] == {"id": "nobody", "error": "404: there is no schedule nobody"}
    assert shell.run("delete", one, two, three).stdout == f"deleted {one}\ndeleted {two}\ndeleted {three}\n"
    assert "give SCHEDULE_ID" in shell.run("get", status=64).stderr


def test_fields_of_several_schedules_are_changed(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    ids = made(scheduler, tag, 2)
    shell.run("update", *ids, "--name", "new", "--timeout-seconds", "3")
    assert [(each["name"], each["timeout_seconds"]) for each in map(scheduler.get, ids)] == [("new", 3)] * 2
    # What is not there is not created by an update.
    assert "there is no schedule" in shell.run("update", "nobody", "--name", "n", status=1).stderr
    assert "give a field" in shell.run("update", ids[0], status=64).stderr
    assert scheduler.find("nobody") is None


def test_a_schedule_is_set_to_one_time(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    (one,) = made(scheduler, tag, 1)
    shell.run("schedule", "--id", one, "--at", "2040-12-01T15:00:00Z")
    assert scheduler.get(one)["next_run_at"] == "2040-12-01T15:00:00Z"
    shell.run("schedule", one, "--at", "2040-12-01T15:00:00", "--tz", "Europe/Zurich")
    assert scheduler.get(one)["next_run_at"] == "2040-12-01T14:00:00Z"
    shell.run("schedule", one, "--in", "2d")
    assert scheduler.get(one)["delay_seconds"] == 172_800
    assert "give --at or --in" in shell.run("schedule", one, status=64).stderr


def test_a_task_comes_from_a_file_of_json(
    shell: Shell, scheduler: Scheduler, tag: str, tmp_path: Path
) -> None:
    file = tmp_path / "task.json"
    task = {"id": tag, "name": "My Task", "description": "Says hello", "command": "echo hello"}
    file.write_text(json.dumps(task | {"status": "created", "scheduled_at": None}))
    shown = shell.json("create", "--file", str(file))
    assert (shown["on_demand"], shown["purpose"], shown["tags"]) == (True, "Says hello", ["task"])
    assert shown["action"]["command"] == ["echo", "hello"]
    file.write_text(json.dumps({"callback_url": URL, "cron": "0 9 * * *", "name": "from a file"}))
    assert shell.json("create", "-f", str(file), "--tag", tag)["name"] == "from a file"
    assert shell.json("create", "-f", str(file), "--name", "other", "--tag", tag)["name"] == "other"
    for text, said in (("[]", "in braces"), ("{", "is not JSON"), ("x" * 1_000_001, "is larger")):
        file.write_text(text)
        assert said in shell.run("create", "-f", str(file), status=64).stderr


def test_what_runs_next_of_one_and_of_all(
    shell: Shell, scheduler: Scheduler, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = "DTSTART;TZID=Europe/Zurich:20400101T090000\nRRULE:FREQ=DAILY"
    scheduler.schedule(URL, rrule=rule, id=f"{tag}-b", tags=[tag], timezone="Europe/Zurich")
    scheduler.schedule(URL, run_at="2039-01-01T00:00:00Z", id=f"{tag}-a", tags=[tag])
    scheduler.schedule(URL, on_demand=True, id=f"{tag}-c", tags=[tag])
    lines = shell.run("next", f"{tag}-b", "--limit", "2").stdout.splitlines()
    assert lines[1:] == [
        "2040-01-01T08:00:00Z  2040-01-01T09:00:00+01:00",
        "2040-01-02T08:00:00Z  2040-01-02T09:00:00+01:00",
    ]
    assert [each["id"] for each in shell.json("next", "--tag", tag)] == [f"{tag}-a", f"{tag}-b"]
    assert shell.run("next", "--tag", tag, "-q", "--limit", "1").stdout == f"{tag}-a\n"
    assert "has no run to come" in shell.run("next", f"{tag}-c").stderr
    with monkeypatch.context() as changed:
        changed.setattr("scheduler_app.cli.commands.occurrences.MOST_SCHEDULES", 2)
        short = shell.run("next", "--tag", tag)
        assert "Among the newest 2 schedules alone" in short.stderr
        assert f"{tag}-b" not in short.stdout
    scheduler.pause(f"{tag}-b")
    assert shell.json("next", f"{tag}-b") == []


def test_intervals_and_delays_go_on_from_when_they_were_given(
    shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    every = scheduler.schedule(URL, every_seconds=3600, id=f"{tag}-e")
    delay = scheduler.schedule(URL, delay_seconds=86_400, id=f"{tag}-d")
    for schedule in (every, delay):
        found = shell.json("next", schedule["id"], "--limit", "1")
        assert [each["run_time"] for each in found] == [schedule["next_run_at"]]


def test_events_are_listed_and_cancelled(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    one = scheduler.schedule(URL, rrule="FREQ=MINUTELY", id=tag, tags=[tag])["id"]
    listed = shell.json("events", "--schedule", one, "--state", "ready_queue")
    assert len(listed) >= 8
    assert shell.run("events", "--tag", tag, "-q", "--limit", "1").stdout == f"{listed[0]['_id']}\n"
    assert shell.run("cancel", listed[0]["_id"]).stdout == f"cancelled {listed[0]['_id']}\n"
    asked = shell.run("cancel", "--schedule", one, status=1)
    assert asked.stdout.startswith(f"{len(list(scheduler.pending(one)))} events to cancel\n")
    shell.run("cancel", "--schedule", one, "--yes")
    assert list(scheduler.pending(one)) == []
    assert scheduler.get(one)["state"] == "active"
    assert "give ids" in shell.run("cancel", status=64).stderr


def test_dead_letters_are_shown_with_their_reasons(
    shell: Shell, scheduler: Scheduler, tag: str, dead_letters: Callable[..., list[str]]
) -> None:
    one = scheduler.schedule(URL, on_demand=True, id=tag, tags=[tag])["id"]
    letters = dead_letters(one, 2, 503)
    lines = shell.run("failed", "--tag", tag).stdout.splitlines()
    assert lines[0].split() == ["event", "run", "time", "attempts", "why"]
    assert sorted(line.split()[0] for line in lines[1:]) == sorted(letters)
    assert all(line.split()[-1] == "503" for line in lines[1:])
    assert len(shell.json("failed", "--status-code", "5xx", "--schedule", one)) == 2
    assert shell.json("failed", "--status-code", "404", "--schedule", one) == []


def test_tail_shows_lines_in_the_order_of_time(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    one = scheduler.schedule(URL, on_demand=True, id=tag)["id"]
    first, second = scheduler.trigger(one), scheduler.trigger(one)
    scheduler.cancel_event(first)
    lines = [line.split(maxsplit=3) for line in _tail(shell, one)]
    times = [datetime.fromisoformat(line[0]) for line in lines]
    assert times == sorted(times)
    assert {line[2] for line in lines} == {first, second}
    assert next(line for line in lines if line[1] == "cancelled")[2] == first
    assert len(_tail(shell, one, "-n", "1")) == 1
    shown = json.loads(_tail(shell, one, "-n", "1", "--json")[0])
    assert shown.keys() == {"time", "event", "status", "message"}


def test_ctrl_c_ends_a_tail_in_order_also_while_it_shows_its_first_lines(
    shell: Shell, scheduler: Scheduler, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = scheduler.schedule(URL, on_demand=True, id=tag)["id"]
    scheduler.trigger(one)

    def interrupted(lines: list[events.HistoryLine], as_json: bool) -> None:
        assert bool(lines) is not none_asked_for
        raise KeyboardInterrupt

    monkeypatch.setattr(events, "_show_lines", interrupted)
    none_asked_for = False
    shell.run("tail", "--schedule", one)
    assert "Aborted" in shell.run("tail", "--schedule", one, "--no-follow", status=1).output
    none_asked_for = True
    shell.run("tail", "--schedule", one, "-n", "0")


def test_a_tail_that_shows_no_line_of_before_shows_none_of_them_later(
    shell: Shell, scheduler: Scheduler, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = scheduler.schedule(URL, on_demand=True, id=tag)["id"]
    scheduler.trigger(one)
    looks: list[list[events.HistoryLine]] = []

    def noted(lines: list[events.HistoryLine], as_json: bool) -> None:
        looks.append(lines)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(events, "_show_lines", noted)
    shell.run("tail", "--schedule", one, "-n", "0", "--every", "0.2")
    assert looks == [[], []]


def _tail(shell: Shell, schedule_id: str, *options: str) -> list[str]:
    return shell.run("tail", "--schedule", schedule_id, "--no-follow", *options).stdout.splitlines()


@pytest.mark.parametrize("options", [("tail", "--every", "0.2"), ("list", "--watch", "0.5")], ids=str)
def test_what_happens_later_is_shown_until_ctrl_c(
    url: str, scheduler: Scheduler, tag: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    output = tmp_path / "output"
    with output.open("wb") as file:
        watching = subprocess.Popen(
            [sys.executable, "-m", "scheduler_app.cli", *options, "--tag", tag],
            env={**os.environ, "SCHEDULER_URL": url, "SCHEDULER_API_KEY": KEY},
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        one = scheduler.schedule(URL, on_demand=True, id=tag, tags=[tag])["id"]
        scheduler.trigger(one)
        wait_until(lambda: one in output.read_text(), "the schedule to be shown")
        watching.send_signal(signal.SIGINT)
        assert watching.wait() == 0, output.read_text()
    finally:
        watching.kill()
        watching.wait()


def test_the_seed_s_own_lines_work(shell: Shell, scheduler: Scheduler) -> None:
    """Seed 002's example session, with `scheduler` for its client."""
    for line in (
        ("create", "--id", "my-task-1", "--name", "My Task", "--command", "echo hello"),
        ("list",),
        ("get", "--id", "my-task-1"),
        ("schedule", "--id", "my-task-1", "--at", "2040-12-01T15:00:00Z"),
        ("execute", "--id", "my-task-1"),
        ("update", "--id", "my-task-1", "--name", "Updated Name"),
    ):
        shell.run(*line)
    found = scheduler.get("my-task-1")
    assert (found["name"], found["run_at"]) == ("Updated Name", "2040-12-01T15:00:00Z")
    assert len(shell.json("events", "--schedule", "my-task-1")) == 1
    shell.run("delete", "--id", "my-task-1")
    assert scheduler.find("my-task-1") is None


def test_servers_have_names_and_their_keys_a_private_file(
    shell: Shell, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config" / "profiles.toml"
    shell.environment = {"SCHEDULER_PROFILES": str(path), "SCHEDULER_URL": None, "SCHEDULER_API_KEY": None}
    monkeypatch.chdir(tmp_path)
    assert KEY not in shell.run("profile", "set", "prod", "--url", url, input=f"{KEY}\n").output
    assert path.stat().st_mode & 0o777 == 0o600
    assert shell.run("list", "--profile", "prod").exit_code == 0
    # Another server is not sent the key of this one.
    denied = shell.run("list", "--profile", "prod", "--url", url, status=1)
    assert "401" in denied.stderr
    shell.run("profile", "set", "--url", url, "--api-key", KEY)
    assert shell.run("list").exit_code == 0
    listed = shell.run("profile", "list").stdout
    assert "default" in listed
    assert KEY not in listed
    assert (
        "there is no profile 'none', but prod, default"
        in shell.run("list", "--profile", "none", status=64).stderr
    )
    path.chmod(0o640)
    assert "chmod 600" in shell.run("list", status=1).stderr
    path.chmod(0o600)
    shell.run("profile", "remove", "default")
    assert list(json.loads(shell.run("profile", "list", "--json").stdout)) == ["prod"]
    for text, said in (("[x]\n", "needs a url"), ("x", "no file of profiles"), ("#" * 300_000, "larger")):
        path.write_text(text)
        assert said in shell.run("profile", "list", status=1).stderr


def test_beside_the_api_its_own_key_is_used_and_sent_to_no_other_address(
    shell: Shell, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = tmp_path / "profiles.toml"
    profiles.write_text(f'[named]\nurl = "{url}"\n')
    profiles.chmod(0o600)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client_options, "DEFAULT_URL", url)
    shell.environment = {
        "SCHEDULER_PROFILES": str(profiles),
        "SCHEDULER_URL": None,
        "SCHEDULER_API_KEY": None,
        "API_KEYS": f"board:{'r' * 24}:read,ops:{KEY}",
    }
    assert shell.run("list").exit_code == 0
    assert shell.run("kill-switch", "list").exit_code == 0
    for elsewhere in (("--url", url), ("--profile", "named")):
        assert "No key was sent" in shell.run("list", *elsewhere, status=1).stderr
    shell.environment |= {"API_KEYS": "too-short"}
    assert "No key was sent" in shell.run("list", status=1).stderr


def test_completion_is_installed_for_each_shell(shell: Shell, tmp_path: Path) -> None:
    shell.environment |= {"HOME": str(tmp_path), "XDG_DATA_HOME": None, "XDG_CONFIG_HOME": None}
    for name, place in (
        ("bash", ".local/share/bash-completion/completions/scheduler"),
        ("zsh", ".local/share/zsh/site-functions/_scheduler"),
        ("fish", ".config/fish/completions/scheduler.fish"),
    ):
        assert place in shell.run("completion", "install", name).stdout
        assert "_SCHEDULER_COMPLETE" in (tmp_path / place).read_text()
    script = tmp_path / ".local/share/bash-completion/completions/scheduler"
    words = 'COMP_WORDS=(scheduler pa) COMP_CWORD=1; _scheduler_completion scheduler; echo "${COMPREPLY[@]}"'
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "scheduler"
    code = "from scheduler_app.cli import main; main(prog_name='scheduler')"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", f"PATH={folder}:$PATH; . {script}; {words}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert done.stdout.split() == ["pause"], done.stderr


def test_calendars_are_kept_shown_and_deleted(shell: Shell, tag: str) -> None:
    options = ("--country", "CH", "--subdivision", "ZH", "--date", "2027-01-02 Berchtoldstag")
    assert shell.json("calendar", "put", tag, *options)["result"] == "created"
    assert shell.json("calendar", "get", tag)["country"] == "CH"
    days = shell.run("calendar", "days", tag, "--from", "2027-01-01", "--to", "2027-01-03").stdout
    assert "2027-01-02  holiday  Berchtoldstag" in days.replace("weekend", "holiday")
    assert tag in shell.run("calendar", "list").stdout
    own = ("--date", "2027-01-04", "--no-weekend")
    assert shell.json("calendar", "put", tag, *own)["weekend"] == []
    assert shell.run("calendar", "delete", tag).stdout == f"deleted {tag}\n"
    assert "404" in shell.run("calendar", "get", tag, status=1).stderr


def test_a_quiet_list_is_of_ids_alone(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    ids = made(scheduler, tag, 2)
    scheduler.destinations.put(tag, url=URL)
    scheduler.messages.schedule(URL, id=tag, event_name=tag, at=datetime(2040, 1, 1, tzinfo=UTC))
    for arguments, shown in (
        (("list", "--tag", tag), ids[::-1]),
        (("message", "list", "--event-name", tag), [tag]),
        (("export", "--tag", tag), None),
    ):
        lines = shell.run(*arguments, "-q").stdout.splitlines()
        assert lines == shown if shown is not None else len(lines) == 2
    assert tag in shell.run("destination", "list", "-q").stdout.splitlines()
