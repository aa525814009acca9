"""What is answered without keys and without `/tasks`, over documents that are not sealed, and where a
document or a limit is in the way."""

from tests.acceptance.journal import Journal
from tests.golden.recording import Recording
from tests.golden.run.schedules import REQUEST


def record(run: Recording, journal: Journal) -> None:
    run.topic = "open-doors"
    ask, receiver = run.ask, journal.url("")
    ask("GET", "/api/v1/schedules", key=None)
    ask("GET", "/api/v1/schedules", key=None, headers={"Host": "scheduler.example.com"})
    ask("GET", "/", key=None, headers={"Host": "scheduler.example.com"})
    ask("GET", "/tasks", key=None)
    ask("GET", "/readyz", key=None)
    plain = {
        "id": "plain",
        "name": "plain",
        "cron": "0 9 * * *",
        "callback_url": f"{receiver}/plain?key=letmein",
        "signing": True,
    }
    ask("POST", "/api/v1/schedules", plain | REQUEST, key=None)
    ask("POST", "/api/v1/schedules/plain/signing-secret", {"overlap_seconds": 3600}, key=None)
    ask(
        "POST",
        "/api/v1/schedules",
        {"id": "least", "name": "least", "on_demand": True, "callback_url": receiver},
        key=None,
    )
    ask(
        "PUT",
        "/api/v1/destinations/plain",
        {"url": f"{receiver}/shop", "auth": {"type": "bearer", "token": "letmein"}, "signing": True},
        key=None,
    )
    ask("PUT", "/api/v1/destinations/least", {"url": receiver}, key=None)
    channel = {"type": "webhook", "url": f"{receiver}/alerts?key=letmein"}
    ask("PUT", "/api/v1/notifications/plain", {"to": [channel]}, key=None)
    first = {
        "id": "one",
        "callback_url": f"{receiver}/one",
        "payload": [1],
        "signing": True,
        "scheduled_at": "2040-04-01T00:00:00Z",
    }
    ask("POST", "/api/v1/messages", first, key=None)
    ask("POST", "/api/v1/messages", first | {"id": "two"}, key=None)
    ask("POST", "/api/v1/messages/bulk", {"messages": [first | {"id": "two"}]}, key=None)
    # Somebody edits documents by hand, and a newer release writes some.
    schedules = run.product.database["schedules"]
    for name, change in {"corrupt": {"state": 5}, "newer": {"v": 99}}.items():
        schedules.insert_one((schedules.find_one({"_id": "least"}) or {}) | {"_id": name} | change)
        ask("GET", f"/api/v1/schedules/{name}", key=None)
        ask("PUT", f"/api/v1/schedules/{name}", {"name": "x"}, key=None)
        ask("DELETE", f"/api/v1/schedules/{name}", key=None)
        schedules.delete_one({"_id": name})
    ask("GET", "/api/v1/schedules", key=None)
    ask("GET", "/api/v1/destinations", key=None)
    ask("GET", "/api/v1/messages", key=None)
    ask("POST", "/api/v1/schedules/plain/trigger", key=None)
    run.deliver()
