"""`scheduler import-celery-beat`: takes the schedules of a Celery beat over."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import IO
from zoneinfo import ZoneInfo

import click
from click.core import ParameterSource

from scheduler_app.cli.celery_beat.application import read_application
from scheduler_app.cli.celery_beat.django_dump import read_dump
from scheduler_app.cli.celery_beat.entry import Found, Refused
from scheduler_app.cli.celery_beat.importing import Importing, Taken
from scheduler_app.cli.celery_beat.redbeat import read_redbeat
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.output import say, table
from scheduler_app.cli.progress import counted
from scheduler_app.client import Scheduler
from scheduler_app.clock import clock

_COUNTS = ("created", "changed", "unchanged", "differs", "refused")
_PREFIX = re.compile(r"[A-Za-z0-9-]{1,16}")


def _zone(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return value and ZoneInfo(value).key
    except (ValueError, OSError, KeyError):
        raise click.BadParameter("must be a zone of IANA's, such as Europe/Zurich") from None


def _prefix(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not _PREFIX.fullmatch(value):
        raise click.BadParameter("must be 1 to 16 letters, digits and hyphens")
    return value


@click.command("import-celery-beat")
@click.option("--app", metavar="MODULE:APP", help="The application whose beat_schedule it is; is imported.")
@click.option(
    "--dump", type=click.File(encoding="utf-8"), help="What `manage.py dumpdata` wrote; - for stdin."
)
@click.option(
    "--redbeat",
    metavar="URL",
    envvar="SCHEDULER_REDBEAT_URL",
    help="RedBeat's Redis.  [SCHEDULER_REDBEAT_URL]",
)
@click.option(
    "--redbeat-prefix", default="redbeat:", show_default=True, help="What RedBeat's keys begin with."
)
@click.option(
    "--broker", required=True, metavar="NAME", help="The tasks' broker, as CELERY_BROKERS names it."
)
@click.option(
    "--timezone",
    metavar="ZONE",
    callback=_zone,
    help="Of crontabs that name none.  [default: that of the application, else UTC]",
)
@click.option(
    "--id-prefix",
    default="beat",
    show_default=True,
    callback=_prefix,
    help="What the schedules' ids begin with.",
)
@click.option("--update", is_flag=True, help="Change schedules that exist and differ.")
@click.option("--dry-run", is_flag=True, help="Show what each would become, and change nothing.")
@with_client
def import_celery_beat(
    scheduler: Scheduler,
    app: str | None,
    dump: IO[str] | None,
    redbeat: str | None,
    redbeat_prefix: str,
    broker: str,
    timezone: str | None,
    id_prefix: str,
    update: bool,
    dry_run: bool,
) -> None:
    """Create a schedule, with an action celery_task, of each entry of a Celery beat: the beat_schedule of an
    application (--app), the tables of django-celery-beat (--dump), or the keys of RedBeat (--redbeat).

    What is imported a second time is the same, and stays as it is. What cannot be taken over is named with
    the reason, and the exit status is 1.
    """
    found = _found(app, dump, redbeat, redbeat_prefix, timezone)
    importing = Importing(scheduler, broker, id_prefix, update, dry_run)
    done: list[Taken] = []
    refused: list[Refused] = []
    for each in counted(importing.take(found), "entries"):
        if isinstance(each, Refused):
            refused.append(each)
        else:
            done.append(each)
    if dry_run:
        _show(done)
    counts = Counter(each.result for each in done) + Counter(refused=len(refused))
    for taken in done:
        if taken.result == "differs":
            say(
                f"{taken.name}: schedule {taken.schedule_id} exists and differs; --update changes it",
                err=True,
            )
        for note in taken.notes:
            say(f"{taken.name}: {note}", err=True)
    for lost in refused:
        say(f"{lost.name}: cannot be taken over: {lost.reason}", err=True)
    said = ", ".join(f"{name} {counts[name]:,}" for name in _COUNTS)
    click.echo(f"{'dry run: ' if dry_run else ''}{said}")
    if counts["refused"] or counts["differs"]:
        raise click.exceptions.Exit(1)


def _found(
    app: str | None, dump: IO[str] | None, redbeat: str | None, redbeat_prefix: str, timezone: str | None
) -> Iterator[Found]:
    source = click.get_current_context().get_parameter_source("redbeat")
    if source is ParameterSource.ENVIRONMENT and (app is not None or dump is not None):
        redbeat = None
    if sum(each is not None for each in (app, dump, redbeat)) == 1:
        if app is not None:
            return read_application(app, timezone)
        if dump is not None:
            return read_dump(dump, timezone or "UTC", clock.now())
        if redbeat is not None:
            return read_redbeat(redbeat, redbeat_prefix, timezone or "UTC")
    raise click.UsageError("give one of --app, --dump and --redbeat: where the beat keeps its schedules")


def _show(done: list[Taken]) -> None:
    """One line for each: what it becomes, and when it runs next, in UTC."""
    # Imported here: a command that shows no table need not wait for rich.
    from rich.markup import escape

    columns = ("entry", "id", "result", "becomes", "next three, in UTC")
    rows = [
        (
            escape(each.name),
            each.schedule_id,
            f"{each.result}, paused" if each.paused else each.result,
            each.trigger,
            ", ".join(each.occurrences) or "none",
        )
        for each in done
    ]
    table(columns, rows, unbroken=("id",), key="id")
