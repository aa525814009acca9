"""`scheduler demo` fills an empty deployment, so that each page has something to show."""

from datetime import datetime

import requests
from playwright.sync_api import Page, expect

from tests.acceptance.pages.demonstration import run_demo
from tests.acceptance.stack import Stack


def test_a_demonstration_has_a_week_of_history_and_goes_on(page: Page, stack: Stack) -> None:
    filled = run_demo(stack)
    assert filled.returncode == 0, filled.stdout + filled.stderr
    events = requests.get(
        f"{stack.url}/api/events", params={"limit": "1", "state": "error"}, timeout=20
    ).json()
    assert events["events"]
    found = requests.get(f"{stack.url}/api/schedules", params={"limit": 100}, timeout=20).json()["schedules"]
    by_name = {each["name"]: each for each in found}
    backup = stack.events(by_name["Database backup"]["id"])
    times = [datetime.fromisoformat(each["run_time"]) for each in backup]
    assert len(times) >= 6
    assert (times[0] - times[-1]).days >= 5
    assert backup[0]["run_time"] == by_name["Database backup"]["last_run"]["time"]
    refund = by_name["Refund on demand"]["id"]
    stack.post(f"/schedules/{refund}/trigger", status=202)
    (event,) = stack.finished(refund)
    assert event["state"] == "completed", "the schedules of a demonstration call /echo, which answers"
    page.goto("/dead-letters")
    expect(page.get_by_test_id("cause").first).to_be_visible()
    again = run_demo(stack)
    assert again.returncode == 1
    assert "there are schedules already" in again.stderr
