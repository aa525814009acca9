"""Which stored schedules the settings refuse: a worker names them at its start, and doctor does."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.fernet import Fernet

from scheduler_app.actions.registry import KINDS
from scheduler_app.config import Settings
from scheduler_app.domain.action import Action
from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.health import Status, configuration
from scheduler_app.health.configuration import check_refused_actions, log_refused_actions
from scheduler_app.health.configuration import refused_actions as refused
from scheduler_app.store import Store
from tests.builders import draft, schedule
from tests.examined import examined

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
KINDS_JUDGED = ("command", "celery_task")
SETTINGS: dict[str, Any] = {
    "allowed_commands": ("MONTH= make report *", "shell:date | wc"),
    "celery_brokers": (("shop", "redis://127.0.0.1:1/0"),),
    "celery_tasks": ("shop:shop.*",),
}
ALLOWED: dict[str, Action] = {
    "report": CommandAction(("make", "report", "eu"), env=(("MONTH", "5"),)),
    "bill": CeleryTaskAction("shop.bill", "shop", headers=(("x", "y"),)),
}
REFUSED: dict[str, Action] = {
    "flags": CommandAction(("make", "report", "eu"), env=(("GNUMAKEFLAGS", "s3cret-value"),)),
    "reboot": CommandAction(("reboot",)),
    "unlock": CeleryTaskAction("celery.chord_unlock", "shop"),
}


@pytest.fixture
def filled(store: Store) -> Store:
    for name, action in (ALLOWED | REFUSED).items():
        store.schedules.insert(replace(schedule(NOON, name), action=action))
    gone = replace(schedule(NOON, "gone"), action=REFUSED["reboot"], state=ScheduleState.FINISHED)
    store.schedules.insert(gone)
    store.schedules.insert(schedule(NOON, "http"))
    return store


def test_doctor_names_the_schedules_and_why(filled: Store) -> None:
    check = check_refused_actions(refused(filled, Settings(**SETTINGS), KINDS_JUDGED))
    assert check.status is Status.WRONG
    assert check.facts["refused"] == ["unlock", "flags", "reboot"]
    assert (
        "flags (env: no pattern of ALLOWED_COMMANDS that allows the command names GNUMAKEFLAGS" in check.found
    )
    assert "s3cret-value" not in repr(check)


def test_a_worker_names_them_in_its_log(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    log_refused_actions(filled, Settings(**SETTINGS), {"command"})
    said = capsys.readouterr()
    assert "actions.refused" in said.out + said.err
    assert "reboot" in said.out + said.err
    assert "unlock" not in said.out + said.err, "this worker does not execute tasks"


def test_where_all_are_allowed_that_is_said(store: Store) -> None:
    for name, action in ALLOWED.items():
        store.schedules.insert(replace(schedule(NOON, name), action=action))
    check = check_refused_actions(refused(store, Settings(**SETTINGS), KINDS_JUDGED))
    assert (check.status, check.found) == (
        Status.OK,
        "2 schedules with commands or Celery tasks, all allowed",
    )


def test_without_the_setting_that_judges_them_it_is_only_noted(filled: Store) -> None:
    check = check_refused_actions(refused(filled, Settings(), KINDS_JUDGED))
    assert check.status is Status.NOTE
    assert "without ALLOWED_COMMANDS and CELERY_BROKERS" in check.found


def test_what_is_sealed_is_not_taken_for_allowed(settings: Settings, store: Store) -> None:
    with closing(Store(replace(settings, secrets_key=Fernet.generate_key().decode()))) as sealing:
        sealing.schedules.insert(replace(schedule(NOON, "flags"), action=REFUSED["flags"]))
        found = check_refused_actions(refused(sealing, Settings(**SETTINGS), KINDS_JUDGED))
        assert found.facts["refused"] == ["flags"]
    check = check_refused_actions(refused(store, Settings(**SETTINGS), KINDS_JUDGED))
    assert (check.status, "without SECRETS_KEY" in check.found) == (Status.NOTE, True)


def test_no_more_are_looked_at_than_a_bound(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "MOST_SCHEDULES", 3)
    found = refused(filled, Settings(**SETTINGS), KINDS_JUDGED)
    assert (found.looked_at, found.complete) == (3, False)
    assert "perhaps some beyond the first 3" in check_refused_actions(found).found


def test_the_index_of_these_schedules_has_every_kind_but_http() -> None:
    # A kind without fields is none that a schedule can have.
    assert all(name < "http" for name, kind in KINDS.items() if kind.fields() is not None)


def test_schedules_that_name_destinations_cost_the_look_at_other_actions_nothing(filled: Store) -> None:
    """They share an index, by which both are found."""
    for number in range(20):
        named = draft(url=NOT_GIVEN, destination=f"d{number % 2}")
        filled.schedules.insert(named.schedule(f"named-{number}", NOON, max_retries=3))
    found, seen = examined(filled, lambda: filled.schedules.with_actions(["command"], limit=100))
    # One has finished.
    assert len(found) == seen.documents - 1 == 3
    assert seen.keys <= seen.documents + 2
    users, seen = examined(filled, lambda: filled.destinations.users("d1", limit=100))
    assert len(users) == seen.documents == 10
    assert seen.keys <= seen.documents + 2
