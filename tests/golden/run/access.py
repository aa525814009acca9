"""Keys that are kept in MongoDB, and tenants."""

from tests.golden.recording import Recording


def record(run: Recording) -> None:
    _tenants(run)
    _keys(run)
    _people(run)


def _people(run: Recording) -> None:
    run.topic = "people"
    ask = run.ask
    ask("GET", "/api/v1/people")
    ask("GET", "/api/v1/people/nobody")
    ask("DELETE", "/api/v1/people/nobody/sessions")
    ask(
        "POST", "/api/v1/sign-in/token", {"verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}, key=None
    )
    ask("POST", "/api/v1/sign-in/end", {"token": "rrp_unknown"}, key=None)


def _tenants(run: Recording) -> None:
    run.topic = "tenants"
    ask = run.ask
    ask("PUT", "/api/v1/tenants/acme?dry_run=true", {"note": "A customer in Zurich"})
    ask("PUT", "/api/v1/tenants/acme", {"note": "A customer in Zurich"})
    ask("PUT", "/api/v1/tenants/acme", {"note": "A customer in Zurich"})
    ask("PUT", "/api/v1/tenants/gone", {"state": "suspended"})
    ask("PUT", "/api/v1/tenants/wrong", {"state": "asleep"})
    ask("GET", "/api/v1/tenants/acme")
    ask("GET", "/api/v1/tenants")
    ask("GET", "/api/v1/tenants/acme/export")
    ask("GET", "/api/v1/tenants/never/export")
    first = '{"rrule_scheduler_export": 1, "tenant": "elsewhere"}'
    line = '{"collection": "ledger", "document": {"_id": "elsewhere:1", "tenant": "elsewhere"}}'
    ask("POST", "/api/v1/tenants/acme/import", {"lines": [first, line, "{"]})
    ask("POST", "/api/v1/tenants/acme/import", {"lines": [line]})
    ask("POST", "/api/v1/tenants/never/import", {"lines": [first]})
    ask("DELETE", "/api/v1/tenants/acme")
    not_made = ask("DELETE", "/api/v1/tenants/gone?confirm=gone&dry_run=true").get_json()
    run.names[not_made["id"]] = "<id of no deletion>"
    made = ask("DELETE", "/api/v1/tenants/gone?confirm=gone").get_json()
    run.names[made["id"]] = "<id of a deletion>"
    ask("GET", f"/api/v1/deletions/{made['id']}")
    ask("GET", "/api/v1/deletions")
    ask("DELETE", "/api/v1/tags?tag=leaving&confirm=leaving")
    ask(
        "POST",
        "/api/v1/schedules",
        {
            "id": "leaving",
            "name": "Leaving",
            "callback_url": "http://127.0.0.1:9/leaving",
            "on_demand": True,
            "tags": ["leaving"],
        },
    )
    ask("DELETE", "/api/v1/tags?tag=leaving&confirm=other")
    not_made = ask("DELETE", "/api/v1/tags?tag=leaving&confirm=leaving&dry_run=true").get_json()
    run.names[not_made["id"]] = "<id of no deletion of a tag>"
    made = ask("DELETE", "/api/v1/tags?tag=leaving&confirm=leaving").get_json()
    run.names[made["id"]] = "<id of a deletion of a tag>"
    ask("GET", "/api/v1/tenants/gone")
    ask("GET", "/api/v1/tenants/never")


def _keys(run: Recording) -> None:
    run.topic = "keys"
    ask = run.ask
    dashboard = {"name": "dashboard", "scopes": ["read"], "expires_at": "2041-01-01T00:00:00Z"}
    not_made = ask("POST", "/api/v1/keys?dry_run=true", dashboard).get_json()
    run.names[not_made["id"]] = "<id of no key>"
    made = ask("POST", "/api/v1/keys", dashboard).get_json()
    run.names[made["id"]] = "<id of a key>"
    ask("POST", "/api/v1/keys", {"name": "wrong", "scopes": ["everything"]})
    ask("GET", "/api/v1/calendars", key=made["key"])
    ask("DELETE", "/api/v1/schedules/full", key=made["key"])
    ask("GET", f"/api/v1/keys/{made['id']}")
    ask("POST", f"/api/v1/keys/{made['id']}/rotate", {"overlap_seconds": 60})
    ask("GET", "/api/v1/keys")
    leaked = ask("POST", "/api/v1/keys", {"name": "leaked", "scopes": ["write"]}).get_json()
    gone = ask("POST", "/api/v1/keys", {"name": "gone", "scopes": ["trigger"]}).get_json()
    run.names |= {leaked["id"]: "<id of a leaked key>", gone["id"]: "<id of a key that is gone>"}
    ask("POST", "/api/v1/keys/revoke-leaked", {"key": leaked["key"]}, key=None)
    ask("DELETE", f"/api/v1/keys/{gone['id']}?dry_run=true")
    ask("DELETE", f"/api/v1/keys/{gone['id']}")
    ask("GET", f"/api/v1/keys/{gone['id']}")
    ask("GET", "/api/v1/calendars", key=gone["key"])
