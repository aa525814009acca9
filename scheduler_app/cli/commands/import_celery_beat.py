"""`scheduler import-celery-beat`: takes the schedules of a Celery beat over."""

from collections.abc import Iterator
from functools import partial
from typing import IO

import click
from click.core import ParameterSource

from scheduler_app.cli.celery_beat.application import read_application
from scheduler_app.cli.celery_beat.django_dump import read_dump
from scheduler_app.cli.celery_beat.entry import DISABLED_NOTE, Found, schedule_of
from scheduler_app.cli.celery_beat.redbeat import read_redbeat
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.entry_import import Importing, id_prefix_option, import_entries, zone_option
from scheduler_app.client import Scheduler
from scheduler_app.clock import clock


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
@zone_option("Of crontabs that name none.  [default: that of the application, else UTC]")
@id_prefix_option("beat")
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
    fields_of = partial(schedule_of, broker=broker)
    importing = Importing(scheduler, fields_of, DISABLED_NOTE, id_prefix, update, dry_run)
    import_entries(importing, found)


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
