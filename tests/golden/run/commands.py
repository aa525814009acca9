"""Commands as somebody types them, in a folder with the files that they name, and what they print."""

import re
import shlex
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from tests.golden.product import ADMIN, Product, main

#: Kept in the folder in which the commands run.
FILES: Final = {
    "calendar.ics": """BEGIN:VCALENDAR
VERSION:2.0
PRODID:x
BEGIN:VEVENT
UID:u1
DTSTART:20400401T090000Z
RRULE:FREQ=DAILY;COUNT=3
SUMMARY:Backup
END:VEVENT
END:VCALENDAR
""",
    "closed.ics": """BEGIN:VCALENDAR
VERSION:2.0
PRODID:x
BEGIN:VEVENT
UID:c1
DTSTART;VALUE=DATE:20400601
DTEND;VALUE=DATE:20400603
SUMMARY:Closed
END:VEVENT
END:VCALENDAR
""",
    "crontab": "MAILTO=ann@example.com\n# a comment\n*/5 * * * * /usr/bin/true\n@daily echo hello\n61 * * * * wrong\n",  # noqa: E501
    "dump.json": """[
 {"model": "django_celery_beat.intervalschedule", "pk": 1, "fields": {"every": 10, "period": "minutes"}},
 {"model": "django_celery_beat.periodictask", "pk": 1, "fields": {"name": "report", "task": "shop.tasks.report",
  "interval": 1, "crontab": null, "solar": null, "clocked": null, "args": "[]", "kwargs": "{}", "queue": "reports",
  "exchange": null, "routing_key": null, "headers": "{}", "priority": null, "expires": null,
  "expire_seconds": null, "one_off": false, "start_time": null, "enabled": true, "last_run_at": null,
  "total_run_count": 0, "date_changed": "2040-01-01T00:00:00Z", "description": ""}}
]
""",  # noqa: E501
    "scheduler.yaml": """destinations:
  - name: applied
    url: https://example.com/applied
calendars:
  - name: applied
    country: CH
schedules:
  - id: applied
    name: applied
    cron: 0 9 * * *
    destination: applied
    calendar: applied
""",
    "changed.yaml": """schedules:
  - id: applied
    name: renamed
    cron: 0 10 * * *
    destination: applied
  - id: new
    name: new
    on_demand: true
    callback_url: https://example.com/new
""",
    "lines.ndjson": '{"id": "line", "name": "line", "cron": "0 9 * * *", "callback_url": "https://example.com/line"}\n{"name": 5}\n',  # noqa: E501
}
#: Commands by topic. Those of a topic stand in one file.
COMMANDS: Final = {
    "schedules": """
create {url}/fine --name Backup --id backup --cron "0 9 * * *" --timezone Europe/Zurich --header "X-Team: ops" --data '{{"full": true}}' --tag nightly --max-retries 0
create {url}/fails --name "a [bold]name[/] of markup" --id markup --on-demand --max-retries 0 --json
create --command "echo hello" --name command --id command --phrase "every day at noon"
create {url}/x --name wrong --cron "0 9"
create {url}/x --cron "0 9 * * *" --name wrong --json --cron "61 * * * *"
create
get backup
get backup --json
get backup markup
get none
list
list --json --limit 1
list --tag nightly --limit 1
list --state paused
update backup --name "Backup at ten" --cron "0 10 * * *"
update backup --tag weekly --json
update none --name x
pause backup --until 2040-06-01T00:00:00Z --note "for a while"
pause --tag weekly --json
resume backup
resume --all --yes --json
next
next backup --limit 2 --json
preview "FREQ=DAILY;COUNT=2"
preview --cron "0 9 * * 1-5" --limit 2 --json
preview --phrase "every blue moon"
why backup 2040-03-06T10:00:00Z
why backup 2040-03-06T09:00:00Z --json
schedule backup --at 2040-05-01T09:00:00Z
schedule markup --in 2h --json
execute command
execute command --json
trigger backup
trigger markup none --json
trigger markup
tzdata check
tzdata check --json
forecast --from 2040-03-06T00:00:00Z --to 2040-03-07T00:00:00Z --bucket 6h
forecast --from 2040-03-06T00:00:00Z --for 1d --bucket 12h --json
export --tag weekly
""",  # noqa: E501
    "events": """
status
status --json
failures list
failures list --state dismissed --json
failures show none
failures show {failure}
failures show {failure} --json
failures resend {failure} --when receiver_answers --rate 5
failures resend {failure} --which newest_of_each_schedule --when receiver_answers --json
failures redrive-show {redrive}
failures redrive-show {redrive} --json
failures redrive-stop {redrive}
failures redrive-stop {redrive} --json
failures dismiss {failure} --note known
failures dismiss {failure} --json
events
events --state error --json
failed
failed --json --limit 1
history backup
history markup --json --include-cancelled
tail --lines 2 --no-follow
tail --lines 1 --no-follow --json
cancel {waiting}
cancel --schedule none --json
cancel --schedule backup --yes --json
redrive {failed} --dry-run
redrive --tag weekly --dry-run
redrive {failed}
redrive --schedule markup --dry-run --json
redrive --schedule markup --yes --json
backlog show
backlog show --json
backlog expire --schedule markup --dry-run
backlog expire --schedule markup --json
backfill start backup --from 2040-03-01T00:00:00Z --to 2040-03-03T00:00:00Z --dry-run
backfill start backup --from 2040-03-01T00:00:00Z --to 2040-03-03T00:00:00Z --json
backfill show backup
backfill show backup --json
backfill cancel backup
backfill cancel backup --json
""",
    "messages": """
message schedule {url}/message --id one --event-name orders --at 2040-04-01T00:00:00Z --data '{{"a": 1}}' --metadata 'trace: letmein'
message schedule {url}/message --id two --in 90s --json
message schedule
message list
message list --event-name orders --json
message get one
message get one --json
message get none
message reschedule one --at 2040-04-02T00:00:00Z
message reschedule one --in 5h --json
message cancel one
message cancel two --json
message cancel two
""",  # noqa: E501
    "resources": """
destination set shop {url}/shop --header "X-Key: letmein" --rate-per-second 5 --burst 2 --max-retries 3
destination set shop {url}/shop --breaker '{{"failures": 5, "open_seconds": 30}}' --json
destination set wrong ftp://x/
destination get shop
destination get shop --json
destination list
destination list --json
destination pause shop
destination pause shop --json
destination resume shop
destination resume shop --json
destination test shop
destination test shop --json
destination delete shop
destination delete shop
calendar put office --country CH --subdivision ZH --date "2040-03-07=Move" --weekend SA --weekend SU
calendar put file --ics closed.ics --json
calendar get office
calendar get office --json
calendar list
calendar list --json
calendar days office --from 2040-03-01 --to 2040-03-10
calendar days office --from 2040-03-07 --to 2040-03-07 --json
calendar delete file
calendar delete file --json
kill-switch on --tag weekly --note "an incident"
kill-switch on --all --json
kill-switch list
kill-switch list --json
kill-switch off --all
kill-switch off --tag weekly --json
kill-switch off --tag weekly
blackout set night --cron "0 22 * * *" --lasts 8h --tag weekly --policy skip
blackout set once --at 2040-03-10T00:00:00Z --lasts 1h --all --json
blackout list
blackout list --json
blackout delete night
blackout delete night
""",
    "watching": """
heartbeat list
heartbeat set backup --every 90m --tag nightly --note "the nightly backup"
heartbeat set report --cron "0 6 * * *" --timezone Europe/Zurich --grace 10m --json
heartbeat set wrong
heartbeat ping backup
heartbeat ping backup --start --json
heartbeat ping backup --exit-status 3 --output "no space is left"
heartbeat ping none
heartbeat list
heartbeat list --json
heartbeat rotate backup
heartbeat rotate report --json
heartbeat delete report
heartbeat delete report
notification list
notification set oncall --webhook "{url}/alerts?key=letmein" --tag nightly --after 5m --remind 4h
notification set all --webhook {url}/all --on failing --on recovered --json
notification set wrong --webhook ftp://x/
notification list
notification list --json
notification test oncall
notification test none
notification delete all
notification delete all
silence list
silence set upgrade --for 2h --reason "the shop is being upgraded" --destination shop
silence set upgrade --for 3h --reason "the shop is being upgraded" --destination shop --json
silence list
silence list --json
silence delete upgrade
silence delete upgrade
audit list --what resumed
audit list --limit 1 --json
audit export --what resumed
audit verify
audit verify --json
ledger show
ledger show --from 2040-03-05T00:00:00Z --to 2040-03-05T12:00:00Z --tag nightly --json
ledger verify
ledger verify --json
""",
    "files": """
apply -f scheduler.yaml --plan
apply -f scheduler.yaml
apply -f scheduler.yaml --json
apply -f changed.yaml --plan --json
apply -f changed.yaml --prune --yes --owner ann
apply -f none.yaml
apply --schema
import calendar.ics --callback-url {url}/ics --id-prefix ics --dry-run
import calendar.ics --callback-url {url}/ics --id-prefix ics
import lines.ndjson
import-crontab crontab --dry-run
import-crontab crontab --timezone UTC --dry-run
import-crontab crontab --timezone Europe/Zurich --id-prefix cron
import-celery-beat --dump dump.json --broker shop --dry-run
import-celery-beat --dump dump.json --broker shop
export --everything
""",
    "profiles": """
profile set work --url https://scheduler.example.com --api-key letmein
profile list
profile list --json
profile remove work
profile remove work
version
version --json
completion show bash
list --profile none
list --api-key wrong
nonsense
delete markup
delete --tag weekly --yes --json
delete none
""",
}
#: What the API, which runs in this process, logs meanwhile.
_LOG_LINES: Final = re.compile(r"^[\d-]+T[\d:.]+Z \[\w+ *\] .*\n", re.MULTILINE)


class Shell:
    """Runs commands, and writes down what they print."""

    def __init__(self, product: Product, url: str, folder: Path, receiver: str) -> None:
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        self._product = product
        self._values = {"url": receiver, "waiting": "none", "failed": "none"}
        self._values |= {"failure": "none", "redrive": "none"}
        self._environment = {
            "SCHEDULER_URL": url,
            "SCHEDULER_API_KEY": ADMIN,
            "SCHEDULER_PROFILES": str(folder / "profiles.toml"),
            "COLUMNS": "120",
            "TERM": "dumb",
            "NO_COLOR": "1",
        }
        self.ran: list[list[str]] = []

    def topic(self, lines: str) -> str:
        """Runs the commands of these lines; returns them with what they print."""
        return "\n".join(self._shown(line) for line in lines.strip().splitlines())

    def put(self, **values: str) -> None:
        """Gives names of lines their values."""
        self._values |= values

    def _shown(self, line: str) -> str:
        arguments = shlex.split(line.format(**self._values))
        self.ran.append(arguments)
        self._product.time.pass_by(seconds=1)
        done = CliRunner().invoke(main, arguments, env=self._environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        said = _LOG_LINES.sub("", done.stderr)
        error = f"(stderr)\n{said}" if said else ""
        return f"$ scheduler {line}\n{done.stdout}{error}(exit status {done.exit_code})\n"


def record(product: Product, url: str, folder: Path, receiver: str) -> tuple[dict[str, str], list[list[str]]]:
    """Returns what the commands print, by topic, and which commands were run."""
    shell, pages = Shell(product, url, folder, receiver), {}
    for topic, lines in COMMANDS.items():
        if topic == "events":
            _work(product, shell)
        pages[topic] = shell.topic(lines)
    return pages, shell.ran


def _work(product: Product, shell: Shell) -> None:
    """Lets a worker send what was triggered; one event waits after it."""
    product.tick()
    product.deliver()
    failed = product.database["events"].find_one({"state": "error"})
    made = product.client.post("/api/v1/schedules/backup/trigger", headers={"X-API-Key": ADMIN}).get_json()
    assert failed is not None
    failing = product.database["causes"].find_one({"kind": "failing"})
    assert failing is not None
    asked = {"cause": failing["_id"], "when": "receiver_answers"}
    started = product.client.post("/api/v1/events/redrive", json=asked, headers={"X-API-Key": ADMIN})
    shell.put(failure=failing["_id"], redrive=started.get_json()["redrive_id"])
    shell.put(failed=failed["_id"], waiting=made["event_id"])
