"""Destinations and calendars, and the calendars that people subscribe to."""

from tests.golden.recording import Recording


def record(run: Recording, receiver: str) -> None:
    _destinations(run, receiver)
    _calendars(run)
    _feeds(run)


def _destinations(run: Recording, receiver: str) -> None:
    run.topic = "destinations"
    ask = run.ask
    full = {
        "url": f"{receiver}/shop?key=letmein",
        "method": "PUT",
        "headers": {"X-Shop": "letmein", "Accept": "text/plain"},
        "auth": {"type": "basic", "username": "ann", "password": "letmein"},
        "allowed_methods": ["PUT", "POST"],
        "signing": True,
        "max_retries": 3,
        "retry_backoff_seconds": 1.5,
        "retry_backoff_max_seconds": 30,
        "retry_codes": ["5xx"],
        "success_codes": [200, "204-206"],
        "timeout_seconds": 7,
        "rate_per_second": 500,
        "burst": 50,
        "concurrency": 40,
        "breaker": {"failures": 9, "open_seconds": 30},
        "queue": "special",
        "paused": False,
    }
    ask("PUT", "/api/v1/destinations/shop?dry_run=true", full)
    ask("PUT", "/api/v1/destinations/shop", full)
    ask("GET", "/api/v1/destinations/shop")
    shown = ask("GET", "/api/v1/destinations/told")
    ask("GET", "/api/v1/destinations/told", headers={"If-None-Match": shown.headers["ETag"]})
    ask("PUT", "/api/v1/destinations/told", {"url": f"{receiver}/told", "method": "POST"})
    ask("PUT", "/api/v1/destinations/shop", full | {"burst": 60}, headers={"If-Match": '"7-00000000"'})
    ask("PUT", "/api/v1/destinations/shop?if-absent=true", full | {"burst": 70})
    ask("PATCH", "/api/v1/destinations/shop", {"burst": 80, "queue": None})
    ask("PATCH", "/api/v1/destinations/shop?dry_run=true", {"breaker": None})
    ask(
        "PATCH", "/api/v1/destinations/shop", {"rate_per_second": 0, "nonsense": 1, "auth": {"type": "basic"}}
    )
    ask("PATCH", "/api/v1/destinations/none", {"burst": 80})
    ask(
        "PUT",
        "/api/v1/destinations/bearer",
        {"url": f"{receiver}/bearer", "auth": {"type": "bearer", "token": "letmein"}},
    )
    ask("PUT", "/api/v1/destinations/gone", {"url": f"{receiver}/gone"})
    ask("POST", "/api/v1/destinations/shop/pause")
    ask("POST", "/api/v1/destinations/shop/resume")
    ask("POST", "/api/v1/destinations/shop/resume")
    ask("POST", "/api/v1/destinations/bearer/test")
    ask("POST", "/api/v1/destinations/gone/test?dry_run=true")
    ask("DELETE", "/api/v1/destinations/gone?dry_run=true")
    ask("DELETE", "/api/v1/destinations/gone", headers={"If-Match": '"5-00000000"'})
    ask("DELETE", "/api/v1/destinations/gone")
    ask("DELETE", "/api/v1/destinations/billing")
    ask("GET", "/api/v1/destinations/gone")
    ask("GET", "/api/v1/destinations?limit=2")
    ask("GET", "/api/v1/destinations")


def _calendars(run: Recording) -> None:
    run.topic = "calendars"
    ask = run.ask
    days = {
        "dates": [{"date": "2040-04-02", "name": "Own day"}, {"date": "2040-05-01"}],
        "country": "DE",
        "subdivision": "BY",
        "categories": ["public", "catholic"],
        "weekend": ["SA", "SU"],
    }
    ask("PUT", "/api/v1/calendars/own?dry_run=true", days)
    ask("PUT", "/api/v1/calendars/own", days)
    shown = ask("GET", "/api/v1/calendars/own")
    ask("GET", "/api/v1/calendars/own", headers={"If-None-Match": shown.headers.get("ETag", "")})
    ask(
        "PUT",
        "/api/v1/calendars/own",
        days | {"categories": ["public"]},
        headers={"If-Match": shown.headers.get("ETag", "")},
    )
    ask("PUT", "/api/v1/calendars/own", days, headers={"If-Match": shown.headers.get("ETag", "")})
    ask("PUT", "/api/v1/calendars/nyse", {"exchange": "NYSE", "weekend": ["SA", "SU"]})
    ics = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nBEGIN:VEVENT\nUID:c1\nDTSTART;VALUE=DATE:20400601\nDTEND;VALUE=DATE:20400603\nSUMMARY:Closed\nEND:VEVENT\nEND:VCALENDAR\n"  # noqa: E501
    ask("PUT", "/api/v1/calendars/file", {"ics": ics})
    ask("PUT", "/api/v1/calendars/least", {})
    ask(
        "PUT",
        "/api/v1/calendars/wrong",
        {"country": "XX", "weekend": ["XX"], "dates": [{"date": "2040-02-30"}]},
    )
    ask("GET", "/api/v1/calendars/own/days?from=2040-04-01&to=2040-05-31")
    ask("GET", "/api/v1/calendars/file/days?from=2040-06-01&to=2040-06-30")
    ask("GET", "/api/v1/calendars/nyse/days?from=2040-07-01&to=2040-07-10")
    ask("GET", "/api/v1/calendars/none/days?from=2040-07-01&to=2040-07-10")
    ask("GET", "/api/v1/calendars?limit=2")
    ask("PUT", "/api/v1/calendars/zurich", {"country": "CH", "weekend": ["SU"]})
    ask("DELETE", "/api/v1/calendars/zurich")
    ask("DELETE", "/api/v1/calendars/nyse?dry_run=true")
    ask("DELETE", "/api/v1/calendars/nyse")
    ask("GET", "/api/v1/calendars/nyse")


def _feeds(run: Recording) -> None:
    run.topic = "calendar-feeds"
    ask = run.ask
    ask("POST", "/api/v1/calendar-feeds?dry_run=true", {"name": "dry"})
    made = ask("POST", "/api/v1/calendar-feeds", {"name": "Operations", "tag": "nightly"}).get_json()
    every = ask("POST", "/api/v1/calendar-feeds", {"name": "All"}).get_json()
    ask("POST", "/api/v1/calendar-feeds", {"tag": "nightly"})
    ask("GET", "/api/v1/calendar-feeds")
    ask("GET", f"/api/v1/calendar.ics?token={made['token']}", key=None)
    ask("GET", f"/api/v1/calendar.ics?token={made['token']}&tag=other", key=None)
    ask("GET", f"/api/v1/calendar.ics?token={every['token']}&tag=ics", key=None)
    ask("GET", "/api/v1/calendar.ics?token=nothing", key=None)
    ask("GET", "/api/v1/calendar.ics?tag=ics")
    ask("DELETE", f"/api/v1/calendar-feeds/{every['id']}?dry_run=true")
    ask("DELETE", f"/api/v1/calendar-feeds/{every['id']}")
    ask("DELETE", f"/api/v1/calendar-feeds/{every['id']}")
