"""Whether the recorded run goes everywhere: each route and method, each status, each collection, each version
of its documents. What it leaves out stands here by name, with the reason."""

import json
import re
from collections import defaultdict
from typing import Any, Final

import pytest
import yaml
from flask import Flask
from werkzeug.exceptions import HTTPException

from tests.golden.conftest import Ran
from tests.golden.golden_files import FILES, OLDER

pytestmark = pytest.mark.long

Answered = dict[tuple[str, str], set[int]]
Specified = dict[str, dict[str, Any]]

#: Routes of the application, by their endpoints, that no recorded request takes.
NOT_ASKED: Final = {
    "manual": "pages of the manual, which are built and not part of every installation: test_manual.py",
    "show_metrics": "numbers of the whole process, which others share: tests/integration/api/test_metrics.py",
    "swagger_ui_asset": "files of others, compared with their hashes: tests/unit/api/test_vendored_files.py",
}
#: Forms of pages: stories in tests/acceptance/pages send them, and tests/integration/api/test_pages*.
FORMS_NOT_SENT: Final = {
    f"pages.{name}"
    for name in (
        *("call_destination", "cancel", "change_destination", "change_runs", "change_selected"),
        *(
            "delete_blackout",
            "delete_destination",
            "dismiss_cause",
            "pick",
            "preview_delivery",
            "preview_edited",
            "preview_when",
        ),
        *("reschedule", "revert_on_page", "save_blackout", "save_destination", "save_destination_edit"),
        *("save_edit", "save_schedule", "send_again", "send_cause_again", "send_message", "show_effect"),
        "send_runs",
        *("sign_out", "test_edited", "test_new", "turn_off", "turn_on"),
        *("add_destination", "add_destination_to", "choose_zone", "delete_heartbeat", "delete_notification"),
        *("dismiss_failure", "end_silence", "renew_heartbeat_url", "save_heartbeat", "save_notification"),
        *("end_by_provider", "end_person", "leave_to_sign_in", "let_command_line_in"),
        *("save_silence", "send_failure_again", "silence_failure", "try_notification"),
        *("make_key", "replace_key", "delete_key_on_page", "save_tenant", "set_tenant_state"),
        *("delete_tenant_on_page", "delete_tag_on_page"),
        *("ask_backfill", "cancel_backfill", "delete_feed", "save_feed"),
        *("delete_calendar", "save_calendar", "save_calendar_edit"),
    )
}
#: Operations that take a person who has signed in with a provider, and are asked in vain:
#: tests/integration/api/test_command_line_sign_in.py, test_people.py.
NOT_DONE: Final = {
    "POST /api/v1/sign-in/token",
    "POST /api/v1/sign-in/end",
    "GET /api/v1/people/{person_id}",
    "DELETE /api/v1/people/{person_id}/sessions",
}
#: Statuses that the specification names and no recorded answer has.
NOT_PROVOKED: Final = {
    "500": "takes an error in our own code: tests/integration/api/test_bad_requests.py",
}
#: Collections without a golden document.
NOT_KEPT: Final = {
    "cancel_requests": "stand while a worker holds the event: tests/integration/api/test_events.py",
    "figures": "how long requests took: tests/integration/usecases/test_figure_counts.py",
    "ledger": "lines that a process of its own writes: tests/integration/witness",
    "nodes": "what a process says of itself and of its host: tests/integration/store/test_heartbeat.py",
    "people": "people sign in with a provider: tests/integration/api/test_provider_sign_in.py",
    "sign_in_grants": "as people: tests/integration/api/test_command_line_sign_in.py",
    "outbox": "pages of messages that are just being published: tests/integration/usecases/test_dispatch.py",
    "quotas": "how much tenants with limits have used: tests/integration/api/test_tenant_quotas.py",
    "partitions": "who reads which of them at this moment: tests/integration/usecases/test_partitions.py",
}


#: The versions of each collection's documents that this release reads. A newer one is left to others:
#: `newer-documents` has the answers.
VERSIONS: Final = {
    "api_keys": 1,
    "audit": 1,
    "backfills": 1,
    "blackouts": 1,
    "calendar_feeds": 1,
    "calendars": 1,
    "causes": 1,
    "deletions": 2,
    "destinations": 2,
    "edits": 1,
    "ended_calendars": 1,
    "ended_revisions": 1,
    "events": 2,
    "heartbeats": 1,
    "idempotency": 1,
    "kill_switches": 1,
    "notifications": 1,
    "redrives": 1,
    "schedules": 3,
    "sessions": 1,
    "silences": 1,
    "tellings": 1,
    "tenants": 1,
}


@pytest.fixture(scope="module")
def specified(ran: Ran) -> Specified:
    """The operations of the specification, by method and path."""
    answer = ran.app.test_client().get("/docs/openapi.yml")
    found = yaml.load(answer.text, yaml.CSafeLoader)
    return {
        f"{method.upper()} {path}": operation
        for path, operations in found["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    }


@pytest.fixture(scope="module")
def answered(ran: Ran, opened: Ran) -> Answered:
    """The statuses of the recorded answers, by endpoint and method."""
    found = defaultdict(set)
    for method, path, status in [*ran.asked, *opened.asked]:
        if (endpoint := _endpoint(ran.app, method, path)) is not None:
            found[endpoint, method].add(status)
    return found


def _endpoint(app: Flask, method: str, path: str) -> str | None:
    """The endpoint that answers the path; None if there is none."""
    try:
        with app.app_context():  # names in paths are read as those of the request's tenant
            found, _ = app.url_map.bind("localhost").match(re.sub("^/api/(?!v)", "/api/v1/", path), method)
    except HTTPException:
        return None
    return str(found)


def test_every_route_and_method_is_asked(ran: Ran, answered: Answered) -> None:
    there = {
        (rule.endpoint, method)
        for rule in ran.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    unasked = there - answered.keys()
    forms = {endpoint for endpoint, method in unasked if endpoint.startswith("pages.") and method == "POST"}
    assert forms == FORMS_NOT_SENT
    assert {endpoint for endpoint, _ in unasked} - forms == NOT_ASKED.keys()


def test_every_operation_is_answered_in_each_good_way(
    ran: Ran, answered: Answered, specified: Specified
) -> None:
    missing = {}
    for name, operation in specified.items():
        method, path = name.split()
        endpoint = _endpoint(ran.app, method, re.sub(r"\{[^}]*\}", "x", path))
        assert endpoint is not None, name
        good = {int(status) for status in operation["responses"] if status < "400"}
        if left := good - answered[endpoint, method]:
            missing[name] = left
    assert missing.keys() == NOT_DONE


def test_every_status_of_the_specification_is_answered(ran: Ran, opened: Ran, specified: Specified) -> None:
    named = {status for operation in specified.values() for status in operation["responses"]}
    given = {str(status) for _, _, status in [*ran.asked, *opened.asked]}
    assert named - given == NOT_PROVOKED.keys()


def test_every_collection_and_every_version_has_documents(ran: Ran) -> None:
    kept: defaultdict[str, set[int]] = defaultdict(set)
    for folder in (FILES / "documents", FILES / "documents-unsealed", FILES / "older-documents", OLDER):
        for path in folder.glob("*.json"):
            kept[path.stem] |= {each["v"] for each in json.loads(path.read_text("utf-8"))}
    assert ran.collections - kept.keys() <= NOT_KEPT.keys()
    assert not kept.keys() & NOT_KEPT.keys()
    assert kept == {name: set(range(1, newest + 1)) for name, newest in VERSIONS.items()}
