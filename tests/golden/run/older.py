"""What is read, sent and edited over documents of older releases."""

from datetime import UTC, datetime
from typing import Final

from tests.golden.recording import Recording

AFTERWARDS: Final = datetime(2040, 3, 5, 12, 1, tzinfo=UTC)


def record(run: Recording, schedules: list[str]) -> None:
    """`schedules` are the ids of those that there are."""
    run.topic = "older"
    run.product.time.at = AFTERWARDS
    ask = run.ask
    for name in schedules:
        ask("GET", f"/api/v1/schedules/{name}")
        ask("GET", f"/api/v1/schedules/{name}/preview?limit=3&after=2040-04-01T00:00:00Z")
    ask("GET", "/api/v1/events/fields-left-out-1-20400301T090000Z")
    ask("GET", "/api/v1/schedules/fields-left-out/events/pending")
    ask("GET", "/api/v1/messages/older")
    ask("POST", "/api/v1/events/fields-left-out-1-20400301T090000Z/redrive")
    for name in schedules:
        ask("POST", f"/api/v1/schedules/{name}/trigger")
    run.tick()
    run.deliver()
    for name in schedules:
        ask("PUT", f"/api/v1/schedules/{name}", {"name": f"{name} edited"})
    ask("GET", "/api/v1/blackouts")
    ask(
        "PUT",
        "/api/v1/blackouts/once",
        {"run_at": "2040-03-07T00:00:00Z", "duration_seconds": 60, "all": True},
    )
    ask("DELETE", "/api/v1/blackouts/night")
    ask("GET", "/api/v1/blackouts/once")
    ask("GET", "/api/v1/kill-switch")
    ask("PUT", "/api/v1/kill-switch", {"destination": "shop", "note": "still"})
    ask("DELETE", "/api/v1/kill-switch?destination=shop")
    ask("GET", "/api/v1/kill-switch")
