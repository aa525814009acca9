"""Does what files say, item by item."""

from collections.abc import Iterator, Sequence

from scheduler_app.cli.apply.files import Item
from scheduler_app.cli.apply.kinds import OfKind
from scheduler_app.cli.apply.planning import Step
from scheduler_app.client import Schedule, Scheduler, SchedulerError


def apply_items(scheduler: Scheduler, items: Sequence[Item]) -> Iterator[Step]:
    """Creates and changes; an item that is refused harms only itself. Raises SchedulerError where the API
    does not answer."""
    for item in items:
        try:
            done = OfKind(scheduler, item.kind).put(item.name, item.fields)
        except SchedulerError as error:
            yield _refused(item, error)
        else:
            yield Step(item, str(done["result"]))


def delete_schedules(scheduler: Scheduler, schedules: Sequence[Schedule]) -> Iterator[Step]:
    """Deletes schedules that are in no file any more."""
    for schedule in schedules:
        item = Item("schedules", str(schedule["id"]), {}, "")
        try:
            scheduler.cancel(item.name)
        except SchedulerError as error:
            if error.status != 404:
                yield _refused(item, error)
                continue
        yield Step(item, "deleted")


def _refused(item: Item, error: SchedulerError) -> Step:
    if error.status is None or error.status >= 500:
        raise error
    return Step(item, "refused", reason=error.detail)
