"""Keys and tenants, by the client and by the commands."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from scheduler_app.client import Scheduler, SchedulerError
from scheduler_app.embedded import Mongod
from tests.integration.client.conftest import KEY
from tests.integration.client.test_operating import Shell


@pytest.fixture
def shell(url: str) -> Shell:
    return Shell(url)


def test_a_key_is_made_listed_rotated_and_revoked(
    url: str, shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    scopes = ("--scope", "read", "--scope", "trigger")
    made = shell.json("keys", "create", tag, *scopes, "--expires-in", "2d", "--requests-per-second", "50")
    assert (made["scopes"], made["requests_per_second"]) == (["read", "trigger"], 50)
    assert made["expires_at"]
    with Scheduler(url, made["key"]) as reader:
        assert list(reader.list(name="none-such")) == []
        with pytest.raises(SchedulerError, match="scope admin"):
            reader.keys()
    line = next(each for each in shell.run("keys", "list").stdout.splitlines() if made["id"] in each)
    assert tag in line
    found = scheduler.get_key(made["id"])
    assert "key" not in found
    rotated = shell.json("keys", "rotate", made["id"], "--overlap", "1h")
    assert rotated["key"] != made["key"]
    assert scheduler.rotate_key(made["id"], overlap=timedelta(minutes=1))["id"] == made["id"]
    shell.run("keys", "revoke", made["id"])
    with pytest.raises(SchedulerError, match="no key"):
        scheduler.revoke_key(made["id"])


def test_a_leaked_key_is_read_from_standard_input_and_needs_nothing_else(
    shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    made = scheduler.create_key(tag, ["read"])
    shell.environment["SCHEDULER_API_KEY"] = None
    said = shell.run("keys", "revoke", "--leaked", input=f"{made['key']}\n")
    assert "deleted" in said.stdout
    with pytest.raises(SchedulerError, match="no key"):
        scheduler.get_key(made["id"])


def test_the_first_key_needs_the_settings_and_no_api(
    url: str, tag: str, mongod_server: Mongod, database_name: str
) -> None:
    nowhere = Shell("http://127.0.0.1:9")
    nowhere.environment |= {"MONGO_URI": mongod_server.uri, "MONGO_DATABASE": database_name}
    made = nowhere.json("keys", "create", tag, "--admin")
    with Scheduler(url, made["key"]) as root:
        assert root.get_key(made["id"])["installation"] is True
        assert root.put_tenant(tag, {"note": "n"})["result"] == "created"
        assert tag in [each["name"] for each in root.tenants()]
        assert root.get_tenant(tag)["note"] == "n"
        deletion = root.delete_tenant(tag)
        assert root.deletion(deletion["id"])["tenant"] == tag
        root.revoke_key(made["id"])


def test_a_tenant_is_exported_and_imported_under_another_name(
    url: str, shell: Shell, scheduler: Scheduler, tag: str, tmp_path: Path
) -> None:
    for name in (tag, f"{tag}-b"):
        scheduler.put_tenant(name, {})
    with Scheduler(url, KEY, tenant=tag) as there:
        for number in range(3):
            fields = {"name": "n", "callback_url": "https://example.com/", "on_demand": True}
            there.put(f"s{number}", fields)
    file = tmp_path / "lines.ndjson"
    shell.run("tenant", "export", tag, "-o", str(file))
    dry = shell.run("tenant", "import", str(file), "--into", f"{tag}-b", "--dry-run")
    assert "made: 3 schedules" in dry.stdout
    assert "made: 3 schedules" in shell.run("tenant", "import", str(file), "--into", f"{tag}-b").stdout
    assert "there: 3 schedules" in shell.run("tenant", "import", str(file)).stdout
    with Scheduler(url, KEY, tenant=f"{tag}-b") as there:
        assert there.get("s1")["state"] == "paused"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], "{", lines[2]]))
    broken = shell.run("tenant", "import", str(file), status=1)
    assert "line 3" in broken.stderr
    assert "broken off" in broken.stderr
    file.write_text("{}")
    assert "names no tenant" in shell.run("tenant", "import", str(file), status=64).stderr


def test_a_tag_is_deleted_once_it_is_confirmed(shell: Shell, scheduler: Scheduler, tag: str) -> None:
    fields = {"name": tag, "callback_url": "https://example.com/", "on_demand": True, "tags": [tag]}
    scheduler.put(tag, fields)
    refused = shell.run("tags", "delete", tag, status=64)
    assert f"--confirm must be {tag}" in refused.stderr
    dry = shell.json("tags", "delete", tag, "--dry-run")
    assert (dry["found"]["schedules"], dry["counts"]) == (1, {})
    deletion = shell.json("tags", "delete", tag, "--confirm", tag)
    assert shell.json("tenant", "deletion", deletion["id"])["tag"] == tag


def test_a_key_of_the_installation_acts_in_the_tenant_that_is_named(
    url: str, shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    scheduler.put_tenant(tag, {})
    with Scheduler(url, KEY, tenant=tag) as there:
        there.schedule("https://example.com/", id=f"{tag}-s", on_demand=True)
    assert scheduler.find(f"{tag}-s") is None
    assert shell.json("get", f"{tag}-s", "--tenant", tag)["id"] == f"{tag}-s"
    shell.environment["SCHEDULER_TENANT"] = tag
    assert shell.json("get", f"{tag}-s")["id"] == f"{tag}-s"
    made = shell.json("keys", "create", tag, "--scope", "read")
    assert made["tenant"] == tag
    with Scheduler(url, made["key"]) as reader:
        assert reader.get(f"{tag}-s").id == f"{tag}-s"
    assert "there is no tenant" in shell.run("list", "--tenant", "none-such", status=1).stderr


def test_what_is_asked_wrongly_is_said(shell: Shell, tag: str) -> None:
    for given, said in (
        (("create", tag), "give --scope"),
        (("create", tag, "--admin", "--scope", "read"), "leave --scope"),
        (("create", tag, "--admin", "--tenant", "acme"), "leave --scope"),
        (("revoke",), "give an id"),
        (("revoke", "x", "--leaked"), "give an id"),
    ):
        assert said in shell.run("keys", *given, status=64).stderr
    assert KEY not in shell.run("keys", "list").stdout


def test_a_tenant_is_exported_into_a_file_and_deleted(shell: Shell, tag: str, tmp_path: Path) -> None:
    file = tmp_path / "all.ndjson"
    said = shell.run("tenant", "export", "default", "-o", str(file))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert (lines[0]["tenant"], lines[-1]["end"]) == ("default", True)
    assert "exported" in said.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert {each.name for each in tmp_path.iterdir()} - {"netrc"} == {"all.ndjson"}
    assert json.loads(shell.run("tenant", "export", "default").stdout.splitlines()[0])["secrets"] is False
    assert "no tenant" in shell.run("tenant", "export", tag, "-o", str(tmp_path / "no"), status=1).stderr
    assert {each.name for each in tmp_path.iterdir()} - {"netrc"} == {"all.ndjson"}
    assert "must be" in shell.run("tenant", "delete", tag, "--confirm", "other", status=64).stderr
    assert "no tenant" in shell.run("tenant", "delete", tag, "--confirm", tag, status=1).stderr
    assert "no deletion" in shell.run("tenant", "deletion", "none", status=1).stderr


def test_limits_of_a_tenant_are_set_shown_and_taken_away(
    shell: Shell, scheduler: Scheduler, tag: str
) -> None:
    shell.run("tenant", "set", tag, "--note", "a customer", "--schedules", "5", "--messages-per-day", "1000")
    changed = shell.json("tenant", "set", tag, "--unlimited", "messages_per_day", "--events-per-hour", "60")
    assert changed["limits"] == {"schedules": 5, "events_per_hour": 60}
    assert (changed["result"], changed["note"]) == ("changed", "a customer")
    assert shell.json("tenant", "show", tag)["used"] == {"schedules": 0}
    listed = shell.run("tenant", "list").stdout
    assert "schedules 0 of 5, events_per_hour 60" in " ".join(listed.split())
    assert scheduler.get_tenant(tag)["limits"] == changed["limits"]
