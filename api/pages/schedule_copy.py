"""The form of a new schedule, filled in from another one.

Secrets are not copied: whoever may write schedules must not be able to send them to another receiver.
"""

from dataclasses import dataclass

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.schedule_form import texts_of
from scheduler_app.api.services import services
from scheduler_app.api.wire.schedule import schedule_shown
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.masking import MASK, has_masked_query, split_query
from scheduler_app.domain.schedule import MAX_NAME, Schedule


@dataclass(frozen=True, slots=True)
class CopiedSchedule:
    """What the form says of a copy, and what is left to be written in anew."""

    name: str
    """Of the schedule that it is a copy of."""
    values: Loaded
    left_out: list[str]


def copy_of(found: Schedule) -> CopiedSchedule:
    """Raises Conflict for what the form cannot make."""
    if not isinstance(found.action, HttpAction):
        raise Conflict("only a schedule that calls a web address can be copied here; make others by the API")
    shown = schedule_shown(found, services().now())
    values, left_out = texts_of(shown), list[str]()
    for name, words in (("url", "the query of the web address"), ("path", "the query of the path")):
        if has_masked_query(values[name]):
            values[name] = split_query(values[name])[0]
            left_out.append(words)
    headers = forms.headers_of(values["headers"])
    left_out += [f"the header {name}" for name, value in headers.items() if value == MASK]
    values["headers"] = forms.headers_text({name: each for name, each in headers.items() if each != MASK})
    if values["body"] == MASK:
        values["body"] = ""
        left_out.append("the body")
    if shown.get("signing"):
        left_out.append("that requests are signed")
    return CopiedSchedule(found.name, {**values, "name": f"Copy of {found.name}"[:MAX_NAME]}, left_out)
