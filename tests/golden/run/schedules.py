"""Schedules: with all of their fields and with the fewest, their edits, their lists."""

from typing import Any, Final

from tests.golden.recording import Recording

#: What a schedule may say of its request.
REQUEST: Final[dict[str, Any]] = {
    "method": "POST",
    "headers": {"Content-Type": "application/json", "X-Team": "ops", "Authorization": "Bearer letmein"},
    "json": {"full": True, "names": ["é", "a"]},
}
POLICIES: Final[dict[str, Any]] = {
    "max_retries": 4,
    "retry_backoff_seconds": 2.5,
    "retry_backoff_max_seconds": 60,
    "retry_codes": [408, "5xx", "420-429"],
    "timeout_seconds": 12.5,
    "success_codes": ["2xx", 304],
}
ONCE = {"Idempotency-Key": "once-and-for-all"}
TRIGGERS: Final[dict[str, Any]] = {
    "rrule": {
        "rrule": "DTSTART;TZID=Europe/Zurich:20400310T090000\nRRULE:FREQ=DAILY;COUNT=5\nEXDATE;TZID=Europe/Zurich:20400312T090000"  # noqa: E501
    },
    "rrule-alone": {"rrule": "FREQ=WEEKLY;BYDAY=MO,FR"},
    "cron": {"cron": "0 9 * * 1-5", "timezone": "America/New_York"},
    "cron-seconds": {"cron": "0 0 9 * * 1", "cron_seconds": "first"},
    "every": {"every_seconds": 300, "start_at": "2040-03-06T00:00:00Z"},
    "phrase": {"phrase": "every other Tuesday at 9:34", "timezone": "Europe/Zurich"},
    "run-at": {"run_at": "2040-04-01T08:30:00+02:00"},
    "delay": {"delay_seconds": 90_000},
    "on-demand": {"on_demand": True},
    "gap-and-overlap": {"cron": "30 2 * * *", "timezone": "Europe/Zurich", "gap": "skip", "overlap": "last"},
    "calendar": {"cron": "0 9 * * 1-5", "calendar": "zurich", "on_holiday": "next"},
}


def record(run: Recording, receiver: str) -> None:
    run.topic = "schedules"
    ask = run.ask
    for name in ("billing", "told"):
        ask("PUT", f"/api/v1/destinations/{name}", {"url": f"{receiver}/{name}"})
    ask("PUT", "/api/v1/calendars/zurich", {"country": "CH", "subdivision": "ZH", "weekend": ["SA", "SU"]})

    run.topic = "schedules-triggers"
    for name, trigger in TRIGGERS.items():
        ask(
            "POST",
            "/api/v1/schedules",
            {"id": f"t-{name}", "name": name, "callback_url": f"{receiver}/t"} | trigger,
        )
        ask("GET", f"/api/v1/schedules/t-{name}")

    run.topic = "schedules"
    full = {
        "id": "full",
        "name": "All fields: ä, 日本, \N{BELL}",
        "purpose": "Shows every field.",
        "cron": "0 9 * * *",
        "timezone": "Europe/Zurich",
        "gap": "skip",
        "overlap": "last",
        "calendar": "zurich",
        "on_holiday": "previous",
        "callback_url": f"{receiver}/full?token=letmein",
        **REQUEST,
        **POLICIES,
        "queue": "special",
        "on_success": "told",
        "on_failure": "billing",
        "signing": True,
        "catch_up": "latest",
        "catch_up_window_seconds": 7200,
        "late_after_seconds": 30,
        "expire_after_seconds": 600,
        "run_overlap": "queue",
        "overlap_scope": "event",
        "queue_limit": 7,
        "completion": "callback",
        "completion_timeout_seconds": 900,
        "jitter_seconds": 20,
        "expect": {"max_runtime_seconds": 600, "success_within_seconds": 93600},
        "tags": ["nightly", "b", "a"],
        "state": "paused",
        "reason": "why it is paused",
        "note": "until the move is over",
        "paused_until": "2040-06-01T00:00:00Z",
        "pause_after_failures": 5,
    }
    ask("POST", "/api/v1/schedules", full)
    ask("POST", "/api/v1/schedules", full)
    once = {
        "id": "once",
        "name": "once",
        "on_demand": True,
        "callback_url": "https://example.com/once",
        "signing": True,
    }
    for name in ("once", "once", "another"):
        ask("POST", "/api/v1/schedules", once | {"name": name}, headers=ONCE)
    shown = ask("GET", "/api/v1/schedules/full")
    ask("GET", "/api/v1/schedules/full", headers={"If-None-Match": shown.headers.get("ETag", "")})
    ask(
        "POST",
        "/api/v1/schedules",
        {"id": "least", "name": "least", "rrule": "FREQ=DAILY", "callback_url": f"{receiver}/least"},
    )
    ask("GET", "/api/v1/schedules/least")
    ask("GET", "/api/schedules/least")
    ask(
        "POST",
        "/api/v1/schedules",
        {"name": "without an id", "on_demand": True, "callback_url": f"{receiver}/drawn"},
    )
    ask(
        "POST",
        "/api/v1/schedules?dry_run=true",
        {"id": "dry", "name": "dry", "cron": "0 9 * * *", "callback_url": f"{receiver}/dry", "signing": True},
    )
    ask(
        "POST",
        "/api/v1/schedules",
        {
            "id": "text",
            "name": "text",
            "cron": "0 0 1 1 *",
            "callback_url": f"{receiver}/text",
            "body": "a=1&b=2",
            "signing": True,
        },
    )
    ask(
        "POST",
        "/api/v1/schedules",
        {
            "id": "bytes",
            "name": "bytes",
            "cron": "0 0 1 1 *",
            "destination": "billing",
            "path": "/orders?x=1",
            "method": "PUT",
            "body_base64": "AAECAw==",
        },
    )
    ask(
        "POST",
        "/api/v1/schedules",
        {
            "id": "command",
            "name": "command",
            "on_demand": True,
            "action": {"type": "command", "command": ["echo", "hello"], "env": {"MONTH": "may"}},
            "timeout_seconds": 5,
        },
    )
    ask(
        "POST",
        "/api/v1/schedules",
        {
            "id": "shell",
            "name": "shell",
            "on_demand": True,
            "action": {"type": "command", "command": "echo least"},
        },
    )
    task = {
        "type": "celery_task",
        "broker": "shop",
        "task": "shop.tasks.report",
        "queue": "reports",
        "args": [1, "a"],
        "kwargs": {"month": "may"},
    }
    ask("POST", "/api/v1/schedules", {"id": "celery", "name": "celery", "on_demand": True, "action": task})
    ask(
        "POST",
        "/api/v1/schedules",
        {
            "id": "celery-least",
            "name": "celery",
            "on_demand": True,
            "action": {"type": "celery_task", "broker": "shop", "task": "shop.tasks.report"},
        },
    )
    for name in ("text", "bytes", "command", "shell", "celery", "celery-least"):
        ask("GET", f"/api/v1/schedules/{name}")

    run.topic = "schedules-edits"
    ask(
        "PUT",
        "/api/v1/schedules/least",
        {"name": "renamed", "tags": ["nightly"]},
        headers={"Scheduler-Reason": "a better name"},
    )
    ask(
        "PUT",
        "/api/v1/schedules/least",
        {"cron": "0 10 * * *", "max_retries": 2},
        headers={"If-Match": '"1-00000000"'},
    )
    ask("PUT", "/api/v1/schedules/least", {"cron": "0 11 * * *"}, headers={"If-Match": '"99-00000000"'})
    ask("PUT", "/api/v1/schedules/least?dry_run=true", {"cron": "0 12 * * *"})
    ask("PUT", "/api/v1/schedules/least", {"cron": None, "phrase": "every day at noon"})
    ask(
        "PUT",
        "/api/v1/schedules/put",
        {"name": "put", "cron": "0 12 * * *", "callback_url": f"{receiver}/put"},
    )
    ask("PUT", "/api/v1/schedules/none?if-absent=true", {"name": "none"})
    edits = ask("GET", "/api/v1/schedules/least/edits").get_json()
    ask("GET", "/api/v1/schedules/least/edits?limit=1")
    newest = edits["edits"][0]["id"]
    ask("POST", f"/api/v1/schedules/least/edits/{newest}/revert")
    ask("POST", "/api/v1/schedules/least/edits/nothing/revert")
    ask("POST", "/api/v1/schedules/least/pause", {"until": "2040-05-01T00:00:00Z", "note": "for a while"})
    ask("POST", "/api/v1/schedules/least/pause")
    ask("POST", "/api/v1/schedules/least/resume")
    ask("POST", "/api/v1/schedules/least/signing-secret")
    ask("POST", "/api/v1/schedules/least/signing-secret", {"overlap_seconds": 3600})
    ask("GET", "/api/v1/schedules/least")
    ask("DELETE", "/api/v1/schedules/least/signing-secret")
    ask("POST", "/api/v1/schedules/full/signing-secret", {"overlap_seconds": 3600})
    ask("DELETE", "/api/v1/schedules/put?dry_run=true")
    ask("DELETE", "/api/v1/schedules/put")
    ask("GET", "/api/v1/schedules/put")

    run.topic = "schedules-lists"
    ask("GET", "/api/v1/schedules?limit=3")
    ask("GET", "/api/v1/schedules?limit=2&page=2&name_contains=t")
    ask("GET", "/api/v1/schedules?state=paused&tag=nightly")
    ask("GET", "/api/v1/schedules?name=renamed")
    ask("GET", "/api/v1/schedules?last_outcome=completed")
    ask("GET", "/api/v1/schedules/export?tag=nightly")
    ask("GET", "/api/v1/schedules/t-cron/preview?limit=3&display_timezone=Asia/Tokyo")
    ask("GET", "/api/v1/schedules/t-calendar/preview?after=2040-04-01T00:00:00Z&until=2040-05-01T00:00:00Z")
    ask("GET", "/api/v1/schedules/t-cron/why?at=2040-03-10T09:00:00-05:00")
    ask("GET", "/api/v1/schedules/t-calendar/why?at=2040-04-02T09:00:00Z")
    for trigger in TRIGGERS.values():
        ask("POST", "/api/v1/schedules/preview", trigger | {"limit": 3})
    ask("POST", "/api/v1/schedules/preview", {"phrase": "every blue moon"})
    ask("POST", "/api/v1/schedules/preview", {"cron": "5 9 1 * * 2"})
    ask(
        "POST",
        "/api/v1/schedules/preview",
        {"cron": "0 9 * * *", "jitter_seconds": 60, "limit": 2, "at": "2040-07-01T00:00:00Z"},
    )
    bulk = [
        {
            "id": "bulk-1",
            "name": "one",
            "cron": "0 9 * * *",
            "callback_url": f"{receiver}/bulk",
            "tags": ["bulk"],
        },
        {
            "id": "bulk-2",
            "name": "two",
            "cron": "0 9 * *",
            "callback_url": f"{receiver}/bulk",
            "tags": ["bulk"],
        },
        {"id": "bulk-1", "name": "again", "cron": "0 9 * * *", "callback_url": f"{receiver}/bulk"},
        {
            "id": "bulk-3",
            "name": "three",
            "on_demand": True,
            "callback_url": f"{receiver}/bulk",
            "tags": ["bulk"],
        },
    ]
    ask("POST", "/api/v1/schedules/bulk?dry_run=true", {"schedules": bulk})
    ask("POST", "/api/v1/schedules/bulk", {"schedules": bulk})
    ask("POST", "/api/v1/schedules/pause", {"tag": "bulk", "note": "all of them", "dry_run": True})
    ask("POST", "/api/v1/schedules/pause", {"tag": "bulk", "note": "all of them"})
    ask("POST", "/api/v1/schedules/resume", {"tag": "bulk", "limit": 1})
    ask("POST", "/api/v1/schedules/delete", {"tag": "bulk"})
    ask("POST", "/api/v1/schedules/delete", {})
    ics = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nBEGIN:VEVENT\nUID:u1\nDTSTART:20400401T090000Z\nRRULE:FREQ=DAILY;COUNT=3\nSUMMARY:Backup\nEND:VEVENT\nBEGIN:VEVENT\nUID:u2\nDTSTART:20200401T090000Z\nSUMMARY:Past\nEND:VEVENT\nEND:VCALENDAR\n"  # noqa: E501
    imported = {
        "ics": ics,
        "schedule": {"callback_url": f"{receiver}/ics", "tags": ["ics"]},
        "id_prefix": "ics",
    }
    ask("POST", "/api/v1/schedules/import?dry_run=true", imported)
    ask("POST", "/api/v1/schedules/import", imported)
    ask("POST", "/api/v1/schedules/import", imported | {"update": True, "timezone": "Europe/Zurich"})
    ask("GET", "/api/v1/schedules/ics-u1.ics")
    ask("GET", "/api/v1/schedules/t-rrule.ics")
    ask("GET", "/api/v1/schedules?tag=ics")
