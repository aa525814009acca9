"""`scheduler apply`: makes what is there what files say."""

from importlib import resources
from pathlib import Path

import click

from scheduler_app.cli.bulk import yes_option
from scheduler_app.cli.client_options import with_client_and_json
from scheduler_app.cli.output import ProgressBar, say, show_json
from scheduler_app.client import Schedule, Scheduler
from scheduler_app.clock import clock

#: The exit status of a plan that found changes.
CHANGES = 2
_NAMED = 10


def _show_schema(context: click.Context) -> None:
    click.echo(resources.files("scheduler_app.cli.apply").joinpath("schema.json").read_text(), nl=False)
    context.exit()


@click.command()
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(exists=True, path_type=Path),
    help="A file of YAML or JSON, or a folder of them.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, given: _show_schema(context) if given else None,
    help="Print the JSON schema of the files, for editors and checks, and exit.",
)
@click.option("--plan", "only_plan", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--prune", is_flag=True, help="Delete the owner's schedules that are in no file any more.")
@click.option(
    "--owner",
    default="files",
    show_default=True,
    help="Whose schedules these are: they get the tag apply:OWNER.",
)
@yes_option
@with_client_and_json
def apply(
    scheduler: Scheduler,
    path: Path | None,
    only_plan: bool,
    prune: bool,
    owner: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Make calendars, destinations, blackouts, notifications and schedules what files say.

    The files have the keys calendars, destinations, blackouts, notifications and schedules: lists of items
    with the fields of the API.
    What is there and the same stays as it is, and so does a field of a schedule that no file names.

    With --plan nothing is changed: it says which fields would change, and which occurrences of the next 30
    days would be added, removed or moved. The exit status is then 2 where something would change.
    """
    # Imported here: they import the reader of YAML, for which `--help` need not wait.
    from scheduler_app.cli.apply import applying
    from scheduler_app.cli.apply.applying import (
        apply_items,
        orphans,
        owner_tag,
        with_owner_tag,
    )
    from scheduler_app.cli.apply.files import FileError, read_items
    from scheduler_app.cli.apply.planning import plan

    if path is None:
        raise click.UsageError("give -f FILE or FOLDER")
    tag = owner_tag(owner)
    try:
        items = with_owner_tag(read_items(path), tag)
    except FileError as error:
        raise click.ClickException(str(error)) from None
    kept = {item.name for item in items if item.kind == "schedules"}
    leaving = orphans(scheduler, tag, kept) if prune else []
    if leaving and not only_plan and not yes:
        _confirm(leaving)
    now = clock.now()
    found = []
    with ProgressBar("planned" if only_plan else "applied", len(items) + len(leaving)) as progress:
        steps = plan(scheduler, items, now, leaving) if only_plan else apply_items(scheduler, items, leaving)
        for step in steps:
            found.append(step)
            progress(len(found))
    if as_json:
        show_json({"plan": only_plan, "items": [applying.change_as_json(step) for step in found]})
    else:
        for step in found:
            applying.say_change(step)
        say(f"{'plan: ' if only_plan else ''}{applying.results_summary(found)}")
    if any(step.result == "refused" for step in found):
        raise click.exceptions.Exit(1)
    if only_plan and any(step.changes for step in found):
        raise click.exceptions.Exit(CHANGES)


def _confirm(leaving: list[Schedule]) -> None:
    many = f"{len(leaving)} {'schedule' if len(leaving) == 1 else 'schedules'}"
    names = ", ".join(str(each["id"]) for each in leaving[:_NAMED])
    click.confirm(f"delete {many} ({names}{', …' if len(leaving) > _NAMED else ''})?", abort=True, err=True)
