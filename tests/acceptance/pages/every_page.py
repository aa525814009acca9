"""Every page of the map of routes, with something to show: a new one is among them by itself."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import requests

from scheduler_app.api.factory import routed
from scheduler_app.config import Settings
from tests.acceptance.pages.demonstration import run_demo
from tests.acceptance.stack import Stack
from tests.processes import wait_until

#: What is no page: files, and a part that a page loads.
NO_PAGES = {
    "static",
    "export_cause",
    "export_changes",
    "export_ledger",
    "export_runs",
    "schedule_file",
    "now_and_next",
}
#: It is there only where there are keys.
SIGN_IN = "sign_in"
#: Where a provider of accounts sends a browser back to, and a command line: they are asked with what it says.
NO_PAGES |= {"finish_sign_in", "ask_for_command_line"}
#: What a page has to be asked for.
QUERIES = {"tag_page": "?tag=billing", "delete_tag": "?tag=billing"}


def filled(stack: Stack) -> dict[str, str]:
    """Fills an empty deployment, so that no page is empty. Returns a value for each variable of addresses."""
    done = run_demo(stack)
    assert done.returncode == 0, done.stdout + done.stderr
    api = f"{stack.url}/api/v1"
    put: Callable[[str, dict[str, Any]], None] = partial(_put, api)
    # One name for all that has a page by its name.
    put(
        "/calendars/crm",
        {"country": "CH", "subdivision": "ZH", "dates": [{"date": "2030-01-05", "name": "Inventory"}]},
    )
    put("/kill-switch", {"tag": "away", "note": "the warehouse is being moved"})
    put("/blackouts/night", {"cron": "0 1 * * *", "duration_seconds": 7_200, "tag": "crm"})
    put("/heartbeats/dump", {"cron": "30 2 * * *", "grace_seconds": 3_600})
    put("/notifications/ops", {"to": [{"type": "webhook", "url": f"{stack.url}/echo"}]})
    until = datetime.now(UTC) + timedelta(hours=2)
    put(
        "/silences/upgrade",
        {"match": {"tags": ["crm"]}, "reason": "it is upgraded", "until": until.isoformat()},
    )
    by_name = {each["name"]: each["id"] for each in _found(api, "schedules")}
    put(f"/schedules/{by_name['Payment status']}", {"max_retries": 2})
    stack.post(f"/schedules/{by_name['Old catalogue import']}/trigger", status=202)
    wait_until(lambda: bool(_found(api, "failures")), "a failure of a receiver that answers 404")
    dead = _found(api, "events", state="error")
    return {
        "schedule_id": by_name["Payment status"],
        "event_id": dead[0]["_id"],
        "failure_id": _found(api, "failures")[0]["id"],
        "message_id": _found(api, "messages")[0]["id"],
        "name": "crm",
    }


def _put(api: str, path: str, body: dict[str, Any]) -> None:
    answer = requests.put(f"{api}{path}", json=body, headers={"X-Scheduler-Note": "they asked for it"})
    assert answer.ok, answer.text


def _found(api: str, what: str, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = requests.get(f"{api}/{what}", params={"limit": "100", **query}).json()[what]
    return found


def addresses(values: dict[str, str]) -> dict[str, str]:
    """The address of each page, by its name."""
    found = {}
    for rule in routed(Settings()).url_map.iter_rules():
        name = rule.endpoint.removeprefix("pages.")
        if name == rule.endpoint or "GET" not in (rule.methods or ()) or name in NO_PAGES | {SIGN_IN}:
            continue
        built = rule.build({each: values[each] for each in rule.arguments}, append_unknown=False)
        assert built, f"{name}: give its variables a value here"
        found[name] = built[1] + QUERIES.get(name, "")
    return found


def variants(values: dict[str, str]) -> dict[str, str]:
    """Pages that look otherwise for what they are asked."""
    schedule = f"/schedules/{values['schedule_id']}"
    return {
        "calendar-week": "/calendar?view=week&tag=billing",
        "calendar-day": "/calendar?view=day&tag=live",
        "go-found": "/go?to=bill",
        "go-nothing": "/go?to=bilinguall",
        "message": f"/events/{values['message_id']}",
        "not-found": "/schedules/nothing",
        "schedule-part": f"{schedule}?from=2020-01-01",
        "schedule-why": f"{schedule}?why=2026-01-01T00:00:00Z",
        "schedules-by-name": "/schedules?order=name&state=active",
        "schedules-none": "/schedules?text=nothing-has-this",
        "manual-not-built": "/docs/",
    }
