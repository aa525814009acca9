"""Example requests of the specification. The API accepts each of them as it stands."""

from api.json_types import View

SCHEDULE: View = {
    "name": "Daily Backup",
    "rrule": "FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0",
    "timezone": "Europe/Zurich",
    "callback_url": "https://example.com/backup",
    "method": "POST",
    "json": {"target": "all"},
    "max_retries": 5,
}
CHANGE: View = {"rrule": "FREQ=WEEKLY;BYDAY=MO,TH", "timeout_seconds": 30}
PREVIEW: View = {
    "rrule": "DTSTART:20261020T023000\nRRULE:FREQ=DAILY",
    "timezone": "Europe/Zurich",
    "after": "2026-10-23T12:00:00Z",
    "limit": 3,
}
BULK: View = {
    "schedules": [
        SCHEDULE,
        {"name": "Once", "run_at": "2040-01-01T00:00:00Z", "callback_url": "https://example.com/once"},
    ]
}
REDRIVE: View = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "limit": 100}
EDIT: View = {"tag": "import-2026-11", "dry_run": True}
ROTATION: View = {"overlap_seconds": 86_400}
CALENDAR: View = {
    "country": "CH",
    "subdivision": "ZH",
    "dates": [{"date": "2027-01-02", "name": "Berchtoldstag"}],
    "weekend": ["SA", "SU"],
}
