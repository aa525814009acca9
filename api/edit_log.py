"""Notes who edited a schedule, in the words of the API: its fields before and after, masked as in answers."""

from dataclasses import replace
from datetime import datetime

from flask import Flask, g, request

from scheduler_app.api.json_types import View
from scheduler_app.api.problems import Problem
from scheduler_app.api.wire.presenters import shown
from scheduler_app.api.wire.schedule_fields import EDIT_FIELDS
from scheduler_app.domain.edit_record import MAX_NOTE, EditRecord
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.masking import split_query
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import REJECTED, STORE_FAULTS, Store
from scheduler_app.store.edits import Edits
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.schedule_changes import OnEdit

log = get_logger(__name__)

#: Why, in a person's words; the editor's field does the same.
HEADER = "X-Scheduler-Note"


def noting(store: Store) -> OnEdit:
    """What notes each edit of a schedule. An edit that cannot be noted has been made all the same."""

    def note(
        schedule_id: str, what: str, before: Schedule | None, after: Schedule | None, now: datetime
    ) -> None:
        was, will = _fields(before, now), _fields(after, now)
        differ = {name for name in was.keys() | will.keys() if was.get(name) != will.get(name)}
        record = EditRecord(
            id=Edits.new_id(),
            schedule_id=schedule_id,
            at=now,
            what=what,
            version=after.version if after else 0,
            by=g.get("key_name", ""),
            note=_note(),
            before={name: was[name] for name in sorted(differ & was.keys())},
            after={name: will[name] for name in sorted(differ & will.keys())},
            secrets_changed=_secrets_changed(before, after, differ),
        )
        try:
            store.edits.add(record)
        except (*STORE_FAULTS, *REJECTED) as error:
            log.warning(
                "edit.unnoted",
                message="An edit was made and could not be noted",
                schedule_id=schedule_id,
                error=str(error)[:300],
            )

    return note


def register(app: Flask) -> None:
    """Refuses a note that cannot be kept, before anything is changed."""

    @app.before_request
    def check_note() -> None:
        if len(request.headers.get(HEADER, "")) > MAX_NOTE:
            field = {"pointer": f"/{HEADER}", "detail": f"must not exceed {MAX_NOTE} characters"}
            raise Problem(422, f"{HEADER}: {field['detail']}", [field])


def _note() -> str:
    found: str = g.get("edit_note") or request.headers.get(HEADER, "")
    return found[:MAX_NOTE]


def _fields(schedule: Schedule | None, now: datetime) -> View:
    """What an edit can change, as answers show it."""
    if schedule is None:
        return {}
    # The reason of a state follows from how it came about: no edit of a person gives it.
    return {
        name: value
        for name, value in shown(schedule, now).items()
        if name in EDIT_FIELDS and name != "reason"
    }


def _secrets_changed(before: Schedule | None, after: Schedule | None, differ: set[str]) -> bool:
    """Whether the action differs in what answers mask."""
    if before is None or after is None or before.action == after.action:
        return False
    was, will = before.action, after.action
    if isinstance(was, HttpAction) and isinstance(will, HttpAction) and replace(was, url=will.url) == will:
        return split_query(was.url)[1] != split_query(will.url)[1]
    return not differ & {"method", "destination", "action"} or bool(differ & {"headers", "body", "json"})
