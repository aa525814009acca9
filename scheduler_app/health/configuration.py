"""Checks the settings against what is stored: the keys, the secrets, the actions.

It says what is unprotected without the keys, whether stored secrets can be read (a database restored
without its SECRETS_KEY cannot), and which schedules have commands or Celery tasks that the settings
refuse: patterns change.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from scheduler_app.actions.registry import KINDS
from scheduler_app.config import Settings
from scheduler_app.domain.celery_task_action import CELERY_TASK
from scheduler_app.domain.command_action import COMMAND
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.schedule import Schedule
from scheduler_app.health.check import NAMED, Check, fine, note, wrong
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.telemetry import get_logger


def check_keys(settings: Settings) -> list[Check]:
    # No warning: an API without a key starts on loopback alone.
    found = [fine("API_KEYS", _keys_in_words(settings))]
    if settings.secrets_key:
        return [*found, fine("SECRETS_KEY", "set: stored secrets are encrypted")]
    unprotected = note(
        "SECRETS_KEY",
        "not set: header values, bodies, URL queries and signing secrets are stored in MongoDB as plain text",
        "set one, and then run `scheduler reseal`: python -c"
        ' "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"',
    )
    return [*found, unprotected]


def _keys_in_words(settings: Settings) -> str:
    if settings.api_keys:
        return f"{len(settings.api_keys)} set"
    if settings.needs_key:
        return "not set: stored keys alone open the API"
    return "not set: every program on the API's host may use it, and nothing from elsewhere"


#: How many of the newest schedules, and of the newest destinations, are read.
MOST_READ = 500


def check_stored_secrets(unreadable: Mapping[str, str]) -> Check:
    """`unreadable` are the reasons by what cannot be read."""
    if not unreadable:
        return fine("stored secrets", f"the newest {MOST_READ} schedules and destinations can be read")
    name, reason = next(iter(unreadable.items()))
    return wrong(
        "stored secrets",
        f"{len(unreadable)} of the newest schedules and destinations cannot be read, {name} among them:"
        f" {reason}",
        "run every process with the SECRETS_KEY with which they were stored (`scheduler up` keeps it in the"
        " file secrets-key of its data folder); what no key opens has to be given again",
        unreadable=len(unreadable),
    )


log = get_logger(__name__)

ACTIONS = "actions"
#: How many schedules are looked at.
MOST_SCHEDULES = 1_000
#: How long a worker's start waits for MongoDB here.
START_SECONDS = 2.0


class RefusedActions(NamedTuple):
    refused: list[tuple[str, str]]
    """The id of each such schedule, and why it is refused."""
    looked_at: int
    complete: bool
    """Whether these are all that there are."""
    unjudged: list[str]
    """The settings without which some of them cannot be judged here."""


def refused_actions(store: Store, settings: Settings, kinds: Collection[str]) -> RefusedActions:
    """Judges the active and paused schedules with actions of these kinds, which are not http, by the settings
    of this process. Raises a STORE_FAULT."""
    found = store.schedules.with_actions(kinds, limit=MOST_SCHEDULES + 1)
    checkers = {kind: KINDS[kind].checker(settings) for kind in kinds}
    needed = {COMMAND: "ALLOWED_COMMANDS", CELERY_TASK: "CELERY_BROKERS"}
    refused, unjudged = [], set()
    for schedule in found[:MOST_SCHEDULES]:
        if not isinstance(schedule, Schedule):
            # Set aside by those who need it, if it is corrupt; its variables may only be sealed.
            if not store.secret_box.encrypts:
                unjudged.add("SECRETS_KEY")
            continue
        setting = needed[schedule.action.kind]
        if not getattr(settings, setting.lower()):
            unjudged.add(setting)
            continue
        try:
            checkers[schedule.action.kind](schedule.action)
        except InvalidField as error:
            refused.append((schedule.id, error.message))
    return RefusedActions(
        refused, min(len(found), MOST_SCHEDULES), len(found) <= MOST_SCHEDULES, sorted(unjudged)
    )


def check_refused_actions(found: RefusedActions) -> Check:
    if found.refused:
        return wrong(
            ACTIONS,
            f"{_sentence(found)}: their events end in error",
            "change the schedules, or the setting, in the environment of every worker and API",
            refused=[schedule_id for schedule_id, _ in found.refused],
        )
    if found.unjudged:
        return note(
            ACTIONS,
            f"whether commands and tasks of schedules are allowed cannot be told without"
            f" {' and '.join(found.unjudged)}",
            "run this command with the environment of the workers",
            refused=[],
        )
    most = "" if found.complete else f", the first {MOST_SCHEDULES} of more"
    return fine(
        ACTIONS, f"{found.looked_at} schedules with commands or Celery tasks, all allowed{most}", refused=[]
    )


def log_refused_actions(store: Store, settings: Settings, kinds: Collection[str]) -> None:
    """Names, at the start of a worker that executes these kinds, the schedules that it would refuse."""
    if not kinds:
        return
    try:
        with within(START_SECONDS):
            found = refused_actions(store, settings, kinds)
    except STORE_FAULTS as error:
        log.info("actions.unknown", message="MongoDB does not answer yet", error=str(error)[:300])
        return
    if found.refused:
        log.warning(
            "actions.refused",
            message=f"{_sentence(found)}: their events end in error",
            refused=[schedule_id for schedule_id, _ in found.refused[:100]],
            count=len(found.refused),
        )


def _sentence(found: RefusedActions) -> str:
    named = [f"{schedule_id} ({reason})" for schedule_id, reason in found.refused[:NAMED]]
    more = len(found.refused) - NAMED
    if more > 0:
        named.append(f"{more} more")
    if not found.complete:
        named.append(f"perhaps some beyond the first {MOST_SCHEDULES}, which were looked at")
    return f"the settings refuse what these schedules do: {'; '.join(named)}"
