"""Sends everything that there is, over documents that were recorded once: receivers get what is stored."""

from tests.golden.recording import Recording

SCHEDULES = (
    "text",
    "bytes",
    "succeeds",
    "command",
    "shell",
    "celery",
    "celery-least",
    "least",
    "full",
    "past",
    "task-2",
    "t-cron",
)


def record(run: Recording) -> None:
    run.topic = "sent-again"
    ask = run.ask
    for name in SCHEDULES:
        ask("POST", f"/api/v1/schedules/{name}/trigger", headers={"Idempotency-Key": f"again-{name}"})
    # Its answer was kept.
    ask("POST", "/api/v1/schedules/succeeds/trigger", headers={"Idempotency-Key": "golden"})
    ask("POST", "/api/v1/events/redrive", {"all": True})
    ask("POST", "/api/v1/messages/later-2/cancel")
    for _ in range(3):
        run.tick()
        run.deliver()
        run.pass_by(minutes=2)
    for name in SCHEDULES:
        ask("GET", f"/api/v1/schedules/{name}/events/history?limit=1")
    # Each resource is edited a little and read again.
    ask("PUT", "/api/v1/schedules/full", {"note": "edited"})
    ask("PUT", "/api/v1/schedules/bytes", {"tags": ["edited"]})
    ask("PATCH", "/api/v1/destinations/shop", {"burst": 99})
    ask("PUT", "/api/v1/calendars/file", {"dates": [{"date": "2040-06-09"}]})
    ask("PUT", "/api/v1/blackouts/night", {"cron": "0 23 * * *", "duration_seconds": 60, "tag": "events"})
