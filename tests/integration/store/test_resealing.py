"""All stored secrets are sealed with the newest key, whatever they are sealed with now."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.fernet import Fernet

from scheduler_app.cli import main
from scheduler_app.config import Settings
from scheduler_app.domain.deliverable import RetiringSecret, Signing
from scheduler_app.domain.http_action import BodyKind, RequestBody
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.store.resealing import ResealProgress, ScheduleResealing
from tests.builders import schedule

OLD, NEW, LOST = (Fernet.generate_key().decode() for _ in range(3))
URL = "https://example.com/hook?sig=query-secret"
HEADERS = (("Authorization", "Bearer header-secret"), ("Accept", "text/plain"), ("X-Key", "header-secret-2"))


@pytest.fixture
def with_keys(settings: Settings, store: Store) -> Iterator[Callable[[str], Store]]:
    with ExitStack() as stores:
        yield lambda keys: stores.enter_context(closing(Store(replace(settings, secrets_key=keys))))


def secret_schedule(now: datetime, schedule_id: str) -> Schedule:
    made = schedule(
        now, schedule_id, url=URL, headers=HEADERS, body=RequestBody(BodyKind.TEXT, b"body-secret")
    )
    return replace(made, signing=Signing("whsec_signing", now, (RetiringSecret("whsec_retiring", now),)))


def last_release(row: dict[str, Any], key: str) -> dict[str, Any]:
    """A document as the last release wrote it: single values sealed, and few of them."""

    def single(value: str) -> dict[str, Any]:
        return {"enc": 1, "value": Fernet(key).encrypt(value.encode()).decode()}

    row["action"]["headers"] = [
        [name, single(value) if name == "Authorization" else value]
        for name, value in row["action"]["headers"]
    ]
    for each in (row["signing"], *row["signing"]["retiring"]):
        each["secret"] = single(each["secret"]["value"])
    return row


def read_all(store: Store, *ids: str) -> list[Any]:
    found = store.schedules.for_delivery(ids)
    return [
        (each.action, each.signing) if isinstance((each := found[one]), Schedule) else each for one in ids
    ]


def test_everything_is_sealed_with_the_newest_key_and_a_second_run_finds_nothing(
    with_keys: Callable[[str], Store], store: Store, now: datetime
) -> None:
    rows = store.mongo.collection("schedules")
    plain, old = with_keys(""), with_keys(OLD)
    plain.schedules.insert(secret_schedule(now, "plain"))
    plain.schedules.insert(secret_schedule(now, "last"))
    rows.replace_one({"_id": "last"}, last_release(rows.find_one({"_id": "last"}) or {}, OLD))
    old.schedules.insert(secret_schedule(now, "old"))
    plain.schedules.insert(schedule(now, "harmless"))
    plain.schedules.insert(secret_schedule(now, "deleted-by-the-last-release"))
    rows.update_one({"_id": "deleted-by-the-last-release"}, {"$set": {"state": "deleted", "deleted_at": now}})
    new = with_keys(f"{NEW},{OLD}")
    new.schedules.insert(secret_schedule(now, "new"))
    wanted = read_all(new, "plain", "last", "old", "new")
    before = {row["_id"]: row for row in rows.find()}
    *_, done = ScheduleResealing(new.mongo, new.secret_box).run(page=2)
    assert done == ResealProgress(seen=6, sealed=3, wiped=1)
    after = {row["_id"]: row for row in rows.find()}
    assert "secret" not in str(list(after.values()))
    assert {after["new"]["sealed"], after["harmless"]["v"]} == {before["new"]["sealed"], 1}
    # Nothing but the sealed parts has changed: no edit, no revision, no cursor.
    parts = ("v", "action", "signing", "sealed")
    for one in ("plain", "last", "old", "new", "harmless"):
        assert {k: v for k, v in after[one].items() if k not in parts} == {
            k: v for k, v in before[one].items() if k not in parts
        }
    only_new = with_keys(NEW)
    assert read_all(only_new, "plain", "last", "old", "new") == wanted
    *_, again = ScheduleResealing(only_new.mongo, only_new.secret_box).run()
    assert again == ResealProgress(seen=6)


def test_what_is_edited_meanwhile_keeps_its_edit(
    with_keys: Callable[[str], Store], now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = with_keys(OLD), with_keys(f"{NEW},{OLD}")
    before = secret_schedule(now, "s")
    old.schedules.insert(before)
    resealing = ScheduleResealing(new.mongo, new.secret_box)
    written = resealing._write

    def edited_first(updates: Any) -> int:
        if updates and edits:
            edit, version = edits.pop()
            assert old.schedules.update(edit, version=version)
        return written(updates)

    renamed = ScheduleDraft(headers=(("X-Key", "header-secret-3"),)).edit(before, now)
    edits = [(renamed, before.version)]
    monkeypatch.setattr(resealing, "_write", edited_first)
    assert [done.sealed for done in resealing.run()] == [1]
    (found,) = read_all(with_keys(NEW), "s")
    assert found[0].headers == (("X-Key", "header-secret-3"),)


def test_the_command_tells_what_it_did_and_what_it_could_not_read(
    with_keys: Callable[[str], Store], settings: Settings, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.cli.commands.maintenance.PROGRESS_SECONDS", -1.0)
    with_keys("").schedules.insert(secret_schedule(now, "plain"))
    with_keys(LOST).schedules.insert(secret_schedule(now, "lost"))
    environment = {
        "MONGO_URI": settings.mongo_uri,
        "MONGO_DATABASE": settings.mongo_database,
        "SECRETS_KEY": NEW,
    }
    done = CliRunner().invoke(main, ["reseal"], env=environment)
    assert done.exit_code == 1, done.output
    assert (
        "2 schedules: 1 encrypted with the newest key, 0 deleted and wiped, 0 needed no change,"
        " 1 could not be read" in done.output
    )
    assert "2 of 2 schedules" in done.output, "a long run says how far it is"
    assert "lost: a stored secret was encrypted with a key that SECRETS_KEY lacks" in done.output
    assert CliRunner().invoke(main, ["reseal"], env=environment | {"SECRETS_KEY": LOST}).exit_code == 1
    none = CliRunner().invoke(main, ["reseal"], env=environment | {"SECRETS_KEY": ""})
    assert (none.exit_code, "SECRETS_KEY is not set" in none.output) == (1, True)
