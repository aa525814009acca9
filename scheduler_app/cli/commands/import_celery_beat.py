"""`scheduler import-celery-beat`: takes the schedules of a Celery beat over. The `beat_schedule` of an
application is read here; this imports the application, as beat does.
"""

import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import IO, Any

import click
from click.core import ParameterSource

from scheduler_app.cli.celery_beat.django_dump import read_dump
from scheduler_app.cli.celery_beat.entry import (
    DISABLED_NOTE,
    MAX_ENTRIES,
    SOLAR,
    BeatEntry,
    FoundEntry,
    schedule_of,
)
from scheduler_app.cli.celery_beat.redbeat import read_redbeat
from scheduler_app.cli.celery_beat.triggers import crontab_trigger, interval_trigger, seconds
from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.entry_import import (
    EntryImporter,
    NotImportable,
    RefusedEntry,
    import_entries,
    import_options,
    zone_option,
)
from scheduler_app.client import Json, Scheduler
from scheduler_app.clock import clock

_CRONTAB_FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")


def read_application(place: str, timezone: str | None) -> Iterator[FoundEntry]:
    """Every entry of the application at `module:attribute`. `timezone` is that of crontabs; None for the
    application's own. Raises CannotStart."""
    app = _application(place)
    # What beat does before it reads its schedule: on_after_finalize and conf.imports may add to it.
    app.loader.init_worker()
    app.finalize()
    entries = app.conf.beat_schedule or {}
    if len(entries) > MAX_ENTRIES:
        raise CannotStart(f"beat_schedule has more than {MAX_ENTRIES:,} entries")
    zone = timezone or str(app.conf.timezone or "UTC")
    for name, entry in entries.items():
        try:
            yield _entry(str(name), entry, zone)
        except NotImportable as refused:
            yield RefusedEntry(str(name), str(refused))


def _application(place: str) -> Any:
    module, _, attribute = place.partition(":")
    sys.path.insert(0, "")
    try:
        app = getattr(import_module(module), attribute or "app", None)
    except ModuleNotFoundError as error:
        raise CannotStart(
            f"importing {module} needs {error.name}, which is not installed here: run this where your"
            " application runs, and in its folder"
        ) from None
    except Exception as error:
        # It is the user's own code that fails: anything may come.
        raise CannotStart(f"importing {module} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove("")
    if not hasattr(app, "conf") or not hasattr(app, "finalize"):
        raise CannotStart(f"{module} has no Celery application {attribute or 'app'}; give --app module:name")
    return app


def _entry(name: str, given: Any, timezone: str) -> BeatEntry:
    if not isinstance(given, Mapping):
        names = ("task", "schedule", "args", "kwargs", "options")
        given = {each: getattr(given, each, None) for each in names}
    trigger, notes = _trigger(given.get("schedule"), timezone)
    if given.get("relative"):
        notes = (*notes, "relative: it counts from its import, and not from round times")
    return BeatEntry(
        name=name,
        key=name,
        task=str(given.get("task") or name),
        trigger=trigger,
        args=given.get("args") or (),
        kwargs=given.get("kwargs") or {},
        options=given.get("options") or {},
        notes=notes,
    )


def _trigger(schedule: Any, timezone: str) -> tuple[Json, tuple[str, ...]]:
    """By the names of Celery's classes: whoever reads a dump needs no Celery. A class derived from one of
    them may mean something else."""
    if isinstance(schedule, timedelta):
        return interval_trigger(schedule), ()
    if isinstance(schedule, (int, float)) and not isinstance(schedule, bool):
        return interval_trigger(seconds(schedule)), ()
    kind = f"{type(schedule).__module__}.{type(schedule).__qualname__}"
    if kind == "celery.schedules.crontab":
        fields = {name: getattr(schedule, f"_orig_{name}") for name in _CRONTAB_FIELDS}
        return crontab_trigger(fields, timezone), ()
    if kind == "celery.schedules.schedule":
        relative = ("relative: it counts from its import, and not from round times",)
        return interval_trigger(schedule.run_every), relative if schedule.relative else ()
    if kind == "celery.schedules.solar":
        raise NotImportable(SOLAR)
    raise NotImportable(f"its schedule is a {kind}, of which only its own code knows when it is due")


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
@import_options("beat")
@with_client
def import_celery_beat(
    scheduler: Scheduler,
    app: str | None,
    dump: IO[str] | None,
    redbeat: str | None,
    redbeat_prefix: str,
    broker: str,
    timezone: str | None,
    **how: Any,
) -> None:
    """Create a schedule, with an action celery_task, of each entry of a Celery beat: the beat_schedule of an
    application (--app), the tables of django-celery-beat (--dump), or the keys of RedBeat (--redbeat).

    What is imported a second time is the same, and stays as it is. What cannot be taken over is named with
    the reason, and the exit status is 1.
    """
    found = _found(app, dump, redbeat, redbeat_prefix, timezone)
    fields_of = partial(schedule_of, broker=broker)
    import_entries(EntryImporter(scheduler, fields_of, DISABLED_NOTE, **how), found)


def _found(
    app: str | None, dump: IO[str] | None, redbeat: str | None, redbeat_prefix: str, timezone: str | None
) -> Iterator[FoundEntry]:
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
