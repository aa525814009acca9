"""Events and messages from their creation to their end, with what receivers answer."""

from tests.acceptance.journal import Journal
from tests.golden.recording import Recording
from tests.golden.run.schedules import POLICIES, REQUEST
from tests.integration.actions.receiver import says

#: A retry's delay is drawn, unless the receiver asks for a longer one.
AGAIN = says("503 Service Unavailable", "Retry-After: 120", "X-Receiver: its own", body=b'{"error": "busy"}')
REFUSES = says("422 Unprocessable Content", "Content-Type: text/plain", body="no: ä".encode())
ACCEPTS = says("202 Accepted", body=b"")
TOKEN = "X-Scheduler-Completion-Token"


def record(run: Recording, journal: Journal) -> None:
    _events(run, journal)
    _messages(run, journal)
    _stops(run, journal.url(""))
    _backfills(run, journal.url(""))


def _events(run: Recording, journal: Journal) -> None:
    run.topic = "events"
    ask, receiver = run.ask, journal.url("")
    for name, behaviours in {
        "succeeds": [says()],
        "fails": [REFUSES],
        "recovers": [AGAIN, says()],
        "exhausts": [AGAIN],
        "waits": [ACCEPTS],
        "reports": [ACCEPTS],
    }.items():
        journal.script(f"/{name}", *behaviours)
        awaited = (
            {"completion": "callback", "completion_timeout_seconds": 600}
            if name in ("waits", "reports")
            else {}
        )
        made = {
            "id": name,
            "name": name,
            "callback_url": f"{receiver}/{name}",
            "rrule": "DTSTART:20400305T130000Z\nRRULE:FREQ=DAILY",
            "max_retries": 1,
            "retry_backoff_seconds": 1,
            "tags": ["events"],
        }
        ask("POST", "/api/v1/schedules", made | awaited)
    ask("PUT", "/api/v1/schedules/succeeds", REQUEST | POLICIES | {"on_success": "told"} | {"max_retries": 1})
    ask("POST", "/api/v1/schedules/succeeds/signing-secret")
    ask("PUT", "/api/v1/schedules/exhausts", {"on_failure": "told"})
    event = ask(
        "POST", "/api/v1/schedules/succeeds/trigger", headers={"Idempotency-Key": "golden"}
    ).get_json()["event_id"]
    ask("POST", "/api/v1/schedules/succeeds/trigger", headers={"Idempotency-Key": "golden"})
    ask("POST", "/api/v1/schedules/none/trigger")
    ask("GET", "/api/v1/schedules/succeeds/events/pending")
    cancelled = ask("POST", "/api/v1/schedules/fails/trigger").get_json()["event_id"]
    ask("POST", f"/api/v1/events/{cancelled}/cancel?dry_run=true")
    ask("POST", f"/api/v1/events/{cancelled}/cancel")
    ask("POST", f"/api/v1/events/{cancelled}/cancel")
    for name in ("command", "shell", "celery", "celery-least", "bytes"):
        ask("POST", f"/api/v1/schedules/{name}/trigger", headers={"Idempotency-Key": f"golden-{name}"})
    run.tick()
    run.deliver()
    ask("GET", f"/api/v1/events/{event}")
    run.product.time.at = run.product.time.at.replace(hour=13, minute=0, second=0)
    run.pass_by(seconds=2)
    run.tick()
    run.tick()
    run.deliver()
    for name in ("waits", "reports"):
        ask("GET", f"/api/v1/events/{name}-1-20400305T130000Z")
    token = journal.calls["/waits"][0].seen.headers[TOKEN.lower()]
    ask("POST", "/api/v1/events/waits-1-20400305T130000Z/complete", headers={TOKEN: "wrong"}, key=None)
    ask(
        "POST",
        "/api/v1/events/waits-1-20400305T130000Z/complete?dry_run=true",
        headers={TOKEN: token},
        key=None,
    )
    ask("POST", "/api/v1/events/waits-1-20400305T130000Z/complete", headers={TOKEN: token}, key=None)
    ask(
        "POST",
        "/api/v1/events/waits-1-20400305T130000Z/fail",
        {"reason": "late"},
        headers={TOKEN: token},
        key=None,
    )
    token = journal.calls["/reports"][0].seen.headers[TOKEN.lower()]
    ask("POST", "/api/v1/events/reports-1-20400305T130000Z/fail", {"reason": "the disk is full"})
    ask(
        "POST",
        "/api/v1/events/reports-1-20400305T130000Z/fail",
        {"reason": "the disk is full"},
        headers={TOKEN: token},
        key=None,
    )
    run.pass_by(minutes=3)
    run.tick()
    run.tick()
    run.deliver()
    run.pass_by(minutes=3)
    run.tick()
    run.tick()
    run.deliver()
    for name in (
        "succeeds",
        "fails",
        "recovers",
        "exhausts",
        "waits",
        "reports",
        "command",
        "shell",
        "celery",
        "celery-least",
        "bytes",
    ):
        ask("GET", f"/api/v1/schedules/{name}/events/history?include=cancelled")
    ask("GET", "/api/v1/schedules/fails/events/pending?limit=2")
    ask("GET", "/api/v1/events?state=error")
    ask("GET", "/api/v1/events?state=completed&tag=events&limit=2")
    ask(
        "GET",
        "/api/v1/events?schedule_id=fails&from=2040-03-05T00:00&to=2040-03-06T00:00&timezone=Europe/Zurich",
    )
    ask("GET", "/api/v1/events?status_code=503")
    ask("GET", "/api/v1/events/fails-1-20990305T130000Z")
    ask_for_failures(run)
    ask("POST", "/api/v1/events/fails-1-20400305T130000Z/redrive?dry_run=true")
    ask("POST", "/api/v1/events/fails-1-20400305T130000Z/redrive")
    ask("POST", "/api/v1/events/waits-1-20400305T130000Z/redrive")
    ask("POST", "/api/v1/events/redrive", {"status_code": 503, "dry_run": True})
    ask(
        "POST",
        "/api/v1/events/redrive",
        {"schedule_id": "exhausts", "rate": 5, "start_at": "2040-03-05T14:00:00Z"},
    )
    ask("GET", "/api/v1/schedules/exhausts/events/pending")
    ask("GET", "/api/v1/events/exhausts-1-20400305T130000Z")


def _messages(run: Recording, journal: Journal) -> None:
    run.topic = "messages-api"
    ask, receiver = run.ask, journal.url("")
    journal.script("/message-fails", REFUSES)
    full = {
        "id": "full",
        "event_name": "orders.reminder",
        "payload": {"order": 7, "names": ["é"]},
        "metadata": {"trace": "letmein"},
        "callback_url": f"{receiver}/message?key=letmein",
        "method": "PUT",
        "headers": {"X-Key": "letmein"},
        **POLICIES,
        "max_retries": 0,
        "queue": "special",
        "on_success": "told",
        "on_failure": "told",
        "expire_after_seconds": 600,
        "signing": True,
        "delay_seconds": 60,
    }
    ask("POST", "/api/v1/messages?dry_run=true", full)
    ask("POST", "/api/v1/messages", full)
    ask("POST", "/api/v1/messages", full)
    ask("POST", "/api/v1/messages", full | {"payload": 8})
    ask("GET", "/api/v1/messages/full")
    ask("POST", "/api/v1/messages", {"id": "least", "callback_url": f"{receiver}/message"})
    ask("POST", "/api/v1/messages", {"callback_url": f"{receiver}/message-drawn"})
    ask(
        "POST",
        "/api/v1/messages",
        {
            "id": "text",
            "destination": "billing",
            "path": "/x",
            "body": "a=1",
            "scheduled_at": "2040-03-05T20:00:00+01:00",
        },
    )
    ask(
        "POST",
        "/api/v1/messages",
        {
            "id": "bytes",
            "destination": "shop",
            "method": "POST",
            "body_base64": "AAECAw==",
            "delay_seconds": 30,
        },
    )
    ask("POST", "/api/v1/messages", {"id": "fails", "callback_url": f"{receiver}/message-fails"})
    ask("POST", "/api/v1/messages", {"id": "both", "callback_url": f"{receiver}/x", "destination": "shop"})
    later = {
        "callback_url": f"{receiver}/later",
        "scheduled_at": "2040-04-01T00:00:00Z",
        "event_name": "later",
    }
    bulk = {
        "messages": [
            later | {"id": "later-1"},
            later | {"id": "later-2"},
            later | {"id": "later-1", "method": "GET"},
            {"id": "wrong"},
        ]
    }
    ask("POST", "/api/v1/messages/bulk?dry_run=true", bulk)
    ask("POST", "/api/v1/messages/bulk", bulk)
    ask("POST", "/api/v1/messages/later-1/reschedule?dry_run=true", {"delay_seconds": 5})
    ask("POST", "/api/v1/messages/later-1/reschedule", {"scheduled_at": "2040-05-01T00:00:00Z"})
    ask("POST", "/api/v1/messages/later-1/cancel?dry_run=true")
    ask("POST", "/api/v1/messages/later-1/cancel")
    ask("POST", "/api/v1/messages/later-1/cancel")
    ask("DELETE", "/api/v1/messages/later-2")
    ask("DELETE", "/api/v1/messages/none")
    run.deliver()
    run.pass_by(minutes=2)
    run.tick()
    run.tick()
    run.deliver()
    run.tick()
    run.deliver()
    for name in ("full", "least", "text", "bytes", "fails", "later-1"):
        ask("GET", f"/api/v1/messages/{name}")
    ask("GET", "/api/v1/messages/none")
    ask("GET", "/api/v1/messages?event_name=later")
    ask("GET", "/api/v1/messages?destination=billing&before=2040-03-06T00:00:00Z")
    ask("GET", "/api/v1/messages?state=error&after=2040-03-05T00:00:00Z")


def _stops(run: Recording, receiver: str) -> None:
    run.topic = "stops"
    ask = run.ask
    ask("PUT", "/api/v1/kill-switch?dry_run=true", {"all": True})
    ask("PUT", "/api/v1/kill-switch", {"tag": "events", "note": "an incident"})
    ask("PUT", "/api/v1/kill-switch", {"destination": "shop"})
    ask("PUT", "/api/v1/kill-switch", {"all": True, "note": "everything"})
    ask("PUT", "/api/v1/kill-switch", {"all": True, "tag": "x"})
    ask("GET", "/api/v1/kill-switch")
    ask("GET", "/api/v1/schedules/fails")
    run.tick()
    ask("DELETE", "/api/v1/kill-switch?all=true")
    ask("DELETE", "/api/v1/kill-switch?tag=nothing")
    ask("DELETE", "/api/v1/kill-switch?tag=events&dry_run=true")
    ask("DELETE", "/api/v1/kill-switch?tag=events")
    night = {
        "cron": "0 22 * * *",
        "timezone": "Europe/Zurich",
        "duration_seconds": 28_800,
        "tag": "events",
        "policy": "postpone",
        "note": "at night",
    }
    ask("PUT", "/api/v1/blackouts/night?dry_run=true", night)
    ask("PUT", "/api/v1/blackouts/night", night)
    ask("PUT", "/api/v1/blackouts/night", night | {"policy": "skip"})
    ask(
        "PUT",
        "/api/v1/blackouts/once",
        {"run_at": "2040-03-07T00:00:00Z", "duration_seconds": 3600, "all": True},
    )
    ask(
        "PUT",
        "/api/v1/blackouts/rule",
        {"rrule": "FREQ=DAILY", "duration_seconds": 60, "destination": "shop"},
    )
    ask(
        "PUT",
        "/api/v1/blackouts/phrase",
        {"phrase": "every day at noon", "duration_seconds": 60.5, "schedule": "fails"},
    )
    ask("PUT", "/api/v1/blackouts/wrong", {"cron": "x", "duration_seconds": 0})
    ask("GET", "/api/v1/blackouts/night")
    ask("GET", "/api/v1/blackouts")
    ask("GET", "/api/v1/schedules/fails/preview?limit=3")
    ask("DELETE", "/api/v1/blackouts/rule?dry_run=true")
    ask("DELETE", "/api/v1/blackouts/rule")
    ask("GET", "/api/v1/blackouts/rule")


def _backfills(run: Recording, receiver: str) -> None:
    run.topic = "backfills"
    ask = run.ask
    made = {
        "id": "past",
        "name": "past",
        "callback_url": f"{receiver}/past",
        "rrule": "DTSTART:20400301T130000Z\nRRULE:FREQ=DAILY",
        "tags": ["past"],
    }
    ask("POST", "/api/v1/schedules", made)
    ask("GET", "/api/v1/schedules/past/backfill")
    ask("POST", "/api/v1/schedules/past/backfill?dry_run=true", {"from": "2040-03-01T00:00:00Z"})
    ask(
        "POST",
        "/api/v1/schedules/past/backfill",
        {
            "from": "2040-03-01T00:00:00Z",
            "to": "2040-03-04T00:00:00Z",
            "rate_per_second": 50,
            "overlap": "queue",
            "only_missing": False,
        },
    )
    ask("POST", "/api/v1/schedules/past/backfill", {"from": "2040-03-01T00:00:00Z"})
    ask("GET", "/api/v1/schedules/past/backfill")
    run.tick()
    run.pass_by(seconds=5)
    run.tick()
    run.deliver()
    ask("GET", "/api/v1/schedules/past/backfill")
    ask("GET", "/api/v1/schedules/past/events/history")
    ask("POST", "/api/v1/schedules/past/backfill", {"from": "2040-03-02T00:00:00Z", "rate_per_second": 0.1})
    ask("DELETE", "/api/v1/schedules/past/backfill?dry_run=true")
    ask("DELETE", "/api/v1/schedules/past/backfill")
    ask("GET", "/api/v1/backlog")
    ask("GET", "/api/v1/ledger")
    ask("GET", "/api/v1/ledger?from=2040-03-05T11:00:00Z&to=2040-03-05T14:00:00Z&tag=events")
    ask("GET", "/api/v1/ledger?format=csv")
    ask("GET", "/api/v1/ledger/verification")
    ask("POST", "/api/v1/backlog/expire", {"destination": "shop", "dry_run": True})
    ask("POST", "/api/v1/backlog/expire", {"schedule_id": "exhausts"})
    ask("POST", "/api/v1/backlog/expire", {})
    ask("GET", "/api/v1/forecast?from=2040-03-06T00:00:00Z&to=2040-03-08T00:00:00Z&bucket=86400")
    ask("GET", "/api/v1/forecast?from=2040-03-06T00:00:00Z&to=2040-03-05T00:00:00Z")
    ask("GET", "/api/v1/calendar?from=2040-03-05T00:00:00Z&to=2040-03-07T00:00:00Z&bucket=21600")
    ask("GET", "/api/v1/calendar?from=2040-03-05T00:00:00Z&to=2040-03-04T00:00:00Z")
    ask("GET", "/api/v1/search?q=SHOP&limit=3")
    ask("GET", "/api/v1/search?q=")
    ask("GET", "/api/v1/tags?prefix=e")
    ask("GET", "/api/v1/tags?limit=0")
    ask("GET", "/api/v1/tags/summary?tag=events&from=2040-03-05T00:00:00Z&to=2040-03-07T00:00:00Z")
    ask("GET", "/api/v1/tags/summary?tag=")
    ask("GET", "/api/v1/figures?tag=nothing&from=2040-03-05T00:00:00Z&to=2040-03-05T02:00:00Z")
    ask("GET", "/api/v1/figures?bucket=61")
    ask("GET", "/api/v1/edits?limit=2")
    ask("GET", "/api/v1/edits?limit=0")
    ask("GET", "/api/v1/audit?limit=3&resource=destination")
    ask("GET", "/api/v1/audit?resource=/x")
    ask("GET", "/api/v1/audit/export?what=resumed")
    ask("GET", "/api/v1/audit/verification")
    ask("GET", "/api/v1/tzdata/check")
    run.topic = "missed"
    for name in ("t-every", "t-on-demand"):
        ask("DELETE", f"/api/v1/schedules/{name}")
    # Nobody worked for three days.
    run.pass_by(days=3)
    run.tick()
    run.tick()
    ask("GET", "/api/v1/schedules/succeeds/events/history")
    ask("GET", "/api/v1/events?state=expired&limit=3")
    ask("GET", "/api/v1/schedules/succeeds")


def ask_for_failures(run: Recording) -> None:
    """What fails, by its cause, and what is sent again by beats."""
    ask = run.ask
    ask("GET", "/api/v1/status")
    found = ask("GET", "/api/v1/failures?state=open,over&limit=100").get_json()["failures"]
    ask("GET", "/api/v1/failures?state=dismissed&tag=none&destination=none")
    ask("GET", "/api/v1/failures?state=closed")
    failing = next(each for each in found if each.get("failure") == "status 503")
    path = f"/api/v1/failures/{failing['id']}"
    ask("GET", path)
    ask("GET", "/api/v1/failures/none")
    asked = {"cause": failing["id"], "which": "newest_of_each_schedule"}
    ask("POST", "/api/v1/events/redrive?dry_run=true", asked)
    ask("POST", "/api/v1/events/redrive", asked | {"status_code": 500})
    started = ask("POST", "/api/v1/events/redrive", asked | {"when": "receiver_answers", "rate": 5})
    redrive = f"/api/v1/redrives/{started.get_json()['redrive_id']}"
    ask("GET", redrive)
    ask("DELETE", redrive)
    ask("GET", "/api/v1/redrives/none")
    ask("POST", f"{path}/dismiss", {"note": "known"})
    ask("POST", f"{path}/dismiss", {"note": "known"})
