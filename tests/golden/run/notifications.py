"""Heartbeats, who is told that one is missed, and what is not told for a while."""

from urllib.parse import urlsplit

from tests.golden.recording import Recording

#: What beats do here; the messages are delivered where the documents are sent again.
DUTIES = ("heartbeats", "tell")


def record(run: Recording, receiver: str) -> None:
    _rules(run, receiver)
    _silences(run)
    _heartbeats(run)


def _rules(run: Recording, receiver: str) -> None:
    run.topic = "notifications"
    ask = run.ask
    full = {
        "on": ["missed", "dead_letter", "recovered"],
        "match": {"tags": ["backup*"]},
        "after_seconds": 0,
        "remind_seconds": 300,
        "hours": {"cron": "0 8 * * *", "timezone": "Europe/Zurich", "duration_seconds": 43_200},
        "to": [{"type": "webhook", "url": f"{receiver}/alerts?key=letmein"}],
    }
    ask("PUT", "/api/v1/notifications/backups?dry_run=true", full)
    ask("PUT", "/api/v1/notifications/backups", full)
    ask("PUT", "/api/v1/notifications/backups", full)
    ask("PUT", "/api/v1/notifications/backups", full | {"remind_seconds": 600})
    ask("GET", "/api/v1/notifications/backups")
    least = {"match": {"schedules": ["none"]}, "to": [{"type": "webhook", "url": f"{receiver}/least"}]}
    ask("PUT", "/api/v1/notifications/least", least)
    # It tells of nothing that there is. The ids of its messages are drawn.
    ask("POST", "/api/v1/notifications/least/test?dry_run=true")
    ask("POST", "/api/v1/notifications/least/test")
    ask("POST", "/api/v1/notifications/none/test")
    ask("PUT", "/api/v1/notifications/wrong", {"on": ["all"], "to": [{"type": "webhook", "url": "ftp://x/"}]})
    ask("PUT", "/api/v1/notifications/gone", least)
    ask("DELETE", "/api/v1/notifications/gone?dry_run=true")
    ask("DELETE", "/api/v1/notifications/gone")
    ask("DELETE", "/api/v1/notifications/gone")
    ask("GET", "/api/v1/notifications/gone")
    ask("GET", "/api/v1/notifications")


def _silences(run: Recording) -> None:
    run.topic = "silences"
    ask = run.ask
    full = {
        "match": {"destinations": ["billing"], "schedules": ["full"]},
        "until": "2040-03-20T00:00:00Z",
        "reason": "billing is being upgraded",
    }
    ask("PUT", "/api/v1/silences/upgrade?dry_run=true", full)
    ask("PUT", "/api/v1/silences/upgrade", full)
    ask("PUT", "/api/v1/silences/upgrade", full)
    ask("PUT", "/api/v1/silences/upgrade", full | {"until": "2040-03-21T00:00:00Z"})
    ask("GET", "/api/v1/silences/upgrade")
    ask("PUT", "/api/v1/silences/past", {"until": "2040-03-01T00:00:00Z", "reason": "x"})
    ask("PUT", "/api/v1/silences/gone", {"until": "2040-03-20T00:00:00Z", "reason": "everything"})
    ask("DELETE", "/api/v1/silences/gone?dry_run=true")
    ask("DELETE", "/api/v1/silences/gone")
    ask("DELETE", "/api/v1/silences/gone")
    ask("GET", "/api/v1/silences/gone")
    ask("GET", "/api/v1/silences")


def _heartbeats(run: Recording) -> None:
    run.topic = "heartbeats"
    ask = run.ask
    full = {
        "every_seconds": 600,
        "grace_seconds": 60,
        "note": "the backup of the shop",
        "tags": ["backup-shop"],
    }
    ask("PUT", "/api/v1/heartbeats/backup?dry_run=true", full)
    made = ask("PUT", "/api/v1/heartbeats/backup", full).get_json()
    ask("PUT", "/api/v1/heartbeats/backup", full)
    ask("PUT", "/api/v1/heartbeats/backup", full | {"grace_seconds": 90})
    ask("PUT", "/api/v1/heartbeats/rule", {"cron": "0 6 * * *", "calendar": "own", "on_holiday": "skip"})
    ask("PUT", "/api/v1/heartbeats/wrong", {"on_demand": True, "grace_seconds": 0})
    path = urlsplit(made["ping_url"]).path
    ask("GET", path, key=None)
    ask("POST", f"{path}/start", key=None)
    ask("GET", "/api/v1/heartbeats/backup")
    ask("POST", path, key=None, data="42 files")
    ask("GET", f"{path}/0", key=None)
    ask("GET", f"{path}/256", key=None)
    rotated = ask("POST", "/api/v1/heartbeats/backup/token").get_json()
    ask("GET", path, key=None)
    path = urlsplit(rotated["ping_url"]).path
    # A run fails, which is told; it is told again after a while, and that it is over.
    ask("POST", f"{path}/3", key=None, data="no space is left")
    run.tick(*DUTIES)
    ask("GET", "/api/v1/heartbeats/backup")
    ask("GET", "/api/v1/failures?tag=backup-shop")
    run.pass_by(minutes=11)
    run.tick(*DUTIES)
    ask("POST", "/api/v1/heartbeats/backup/ping?dry_run=true", {"kind": "start"})
    ask("POST", "/api/v1/heartbeats/backup/ping", {"exit_status": 0, "output": "43 files"})
    ask("POST", "/api/v1/heartbeats/backup/ping", {"kind": "success", "exit_status": 1})
    ask("POST", "/api/v1/heartbeats/none/ping")
    run.tick(*DUTIES)
    ask("GET", "/api/v1/failures?state=over&tag=backup-shop")
    ask("PUT", "/api/v1/heartbeats/gone", full)
    ask("DELETE", "/api/v1/heartbeats/gone?dry_run=true")
    ask("DELETE", "/api/v1/heartbeats/gone")
    ask("DELETE", "/api/v1/heartbeats/gone")
    ask("GET", "/api/v1/heartbeats/gone")
    ask("GET", "/api/v1/heartbeats")
