"""Messages of each lane and queue, which no worker takes."""

from tests.golden.recording import Recording


def record(run: Recording) -> None:
    run.topic = "lanes"
    ask, url = run.ask, "https://example.com/"
    soon = "DTSTART:20400305T120008Z\nRRULE:FREQ=SECONDLY;COUNT=2"
    later = "DTSTART:20400305T120500Z\nRRULE:FREQ=MINUTELY;COUNT=1"
    ask(
        "POST",
        "/api/v1/schedules",
        {"id": "urgent", "name": "urgent", "on_demand": True, "callback_url": url},
    )
    ask(
        "POST",
        "/api/v1/schedules",
        {"id": "special", "name": "special", "on_demand": True, "callback_url": url, "queue": "special"},
    )
    ask("POST", "/api/v1/schedules", {"id": "fresh", "name": "fresh", "rrule": soon, "callback_url": url})
    ask("POST", "/api/v1/schedules", {"id": "late", "name": "late", "rrule": later, "callback_url": url})
    ask("POST", "/api/v1/schedules/urgent/trigger")
    ask("POST", "/api/v1/schedules/special/trigger")
    run.tick()
    run.pass_by(minutes=30)
    ask("POST", "/api/v1/messages", {"id": "fresh", "callback_url": url})
    run.tick()
