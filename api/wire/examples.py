"""Example requests of the specification. The API accepts each of them as it stands."""

from scheduler_app.api.json_types import View

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
IMPORT: View = {
    "ics": "\r\n".join(
        (
            *("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//example//EN", "BEGIN:VEVENT", "UID:1@example.com"),
            *("DTSTART;TZID=Europe/Zurich:20400102T090000", "RRULE:FREQ=WEEKLY", "SUMMARY:Weekly report"),
            *("END:VEVENT", "END:VCALENDAR", ""),
        )
    ),
    "schedule": {"callback_url": "https://example.com/report"},
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
MESSAGE: View = {
    "id": "order-4711-reminder",
    "event_name": "orders.reminder",
    "payload": {"order_id": "4711"},
    "metadata": {"source": "shop"},
    "scheduled_at": "2040-01-01T00:00:00Z",
    "callback_url": "https://example.com/events",
}
MESSAGES: View = {
    "messages": [
        {name: value for name, value in MESSAGE.items() if name != "id"},
        {"event_name": "orders.expired", "delay_seconds": 3600, "callback_url": "https://example.com/events"},
    ]
}
RESCHEDULE: View = {"delay_seconds": 600}
DESTINATION: View = {
    "url": "https://example.com/hooks",
    "auth": {"type": "bearer", "token": "a-token-of-yours"},
    "rate_per_second": 50,
    "burst": 10,
    "concurrency": 5,
    "breaker": {"failures": 10, "open_seconds": 60},
}
DESTINATION_CHANGE: View = {"rate_per_second": 20, "breaker": None}
PAUSE: View = {"until": "2040-01-01T00:00:00Z", "note": "the receiver moves"}
FAILURE: View = {"reason": "the disk is full"}
KILL_SWITCH: View = {"tag": "billing", "note": "the billing system is being restored"}
BLACKOUT: View = {
    "cron": "0 22 * * *",
    "timezone": "Europe/Zurich",
    "duration_seconds": 28_800,
    "policy": "postpone",
    "tag": "billing",
    "note": "no calls from 22:00 to 06:00",
}
HEARTBEAT: View = {
    "cron": "30 2 * * *",
    "timezone": "Europe/Zurich",
    "grace_seconds": 3_600,
    "note": "the nightly backup of the shop",
}
KEY: View = {"name": "deploys", "scopes": ["read", "trigger"], "expires_at": "2040-01-01T00:00:00Z"}
NOTIFICATION: View = {
    "match": {"tags": ["customer:*"]},
    "after_seconds": 120,
    "remind_seconds": 14_400,
    "hours": {"cron": "0 8 * * 1-5", "timezone": "Europe/Zurich", "duration_seconds": 36_000},
    "to": [{"type": "webhook", "url": "https://example.com/alerts"}],
}
SILENCE: View = {
    "match": {"destinations": ["erp"]},
    "until": "2040-01-01T06:00:00Z",
    "reason": "the ERP system is being upgraded",
}
TASK: View = {"id": "my-task-1", "name": "My Task", "command": "echo hello"}
TASK_CHANGE: View = {"name": "Updated Name"}
TASK_TIME: View = {"scheduled_at": "2040-12-01T15:00:00Z"}

TENANT_IMPORT = {
    "lines": [
        '{"rrule_scheduler_export": 1, "tenant": "acme", "secrets": true}',
        '{"end": true, "documents": {}}',
    ]
}
