"""What stands before all routes: keys, sizes, forms of bodies, names that are not there."""

from tests.golden.product import READER
from tests.golden.recording import Recording


def record(run: Recording) -> None:
    run.topic = "doors"
    ask = run.ask
    ask("GET", "/api/v1/schedules", key=None)
    ask("GET", "/api/v1/schedules", key="wrong")
    ask("GET", "/api/v1/calendars", key=READER)
    ask("DELETE", "/api/v1/schedules/full", key=READER)
    ask("GET", "/api/v1/calendars", key=None, headers={"Authorization": f"Bearer {READER}"})
    ask("GET", "/api/v1/nothing")
    ask("GET", "/api/v2/schedules")
    ask("GET", "/api/v1/schedules/")
    ask("PATCH", "/api/v1/schedules/full", {})
    ask("GET", "/api/v1/schedules?nonsense=1")
    ask("GET", "/api/v1/schedules?limit=0&state=odd")
    ask("GET", "/api/v1/schedules?cursor=nonsense")
    json = {"Content-Type": "application/json"}
    ask("POST", "/api/v1/schedules", headers=json, data="{")
    ask("POST", "/api/v1/schedules", headers=json, data=b"\xef\xbb\xbf{}")
    ask("POST", "/api/v1/schedules", headers=json, data='{"name": 1e999}')
    ask("POST", "/api/v1/schedules", headers=json)
    ask("POST", "/api/v1/schedules", headers=json, data="[]")
    ask("POST", "/api/v1/schedules", headers={"Content-Type": "text/plain"}, data="x")
    ask("POST", "/api/v1/schedules", headers=json, data="x" * 1_100_000)
    ask("POST", "/api/v1/schedules", headers=json, data=f"[{'0,' * 200_000}0]")
    ask("POST", "/api/v1/schedules", {"nmae": "x", "cron": 5, "tags": "x", "max_retries": -1})
    ask("POST", "/api/v1/schedules", {"name": "x", "rrule": "FREQ=NEVER", "callback_url": "ftp://x/"})
    ask("POST", "/api/v1/schedules", {"name": "x", "on_demand": True, "callback_url": "http://10.0.0.1/"})
    ask(
        "POST",
        "/api/v1/schedules",
        {"name": "x", "on_demand": True, "action": {"type": "command", "command": "rm -r /"}},
    )
    ask(
        "POST",
        "/api/v1/schedules",
        {"name": "x", "on_demand": True, "action": {"type": "celery_task", "broker": "shop", "task": "no"}},
    )
    ask("POST", "/api/v1/schedules/full/pause", {"x": 1})
    ask("POST", "/api/v1/schedules/full/resume", {"x": 1})
    ask("POST", "/api/v1/schedules", {}, headers={"Idempotency-Key": "x" * 300})
    ask("POST", "/api/v1/schedules", {}, headers={"X-Scheduler-Hops": "no number"})
    ask(
        "POST",
        "/api/v1/schedules",
        {"name": "x", "on_demand": True, "callback_url": "http://127.0.0.1:1/"},
        headers={"X-Scheduler-Hops": "99"},
    )
    ask(
        "POST",
        "/api/v1/schedules",
        {},
        headers={"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    )
    ask("GET", "/api/schedules?limit=1")
    ask("GET", "/health", key=None)
    ask("GET", "/healthz", key=None)
    ask("GET", "/echo/503?x=1", key=None)
    ask("POST", "/echo", {"a": 1}, key=None)
    ask("PUT", "/echo/204", {"a": 1})
    ask("PATCH", "/echo", {"a": 1})
    ask("DELETE", "/echo")
    ask("GET", "/readyz", key=None)
    ask("GET", "/docs/openapi.yml")
    ask("GET", "/docs/apply.schema.json")
