"""/api/schedules/pause, /resume, /delete: all schedules that match a filter, a page a call.

A schedule may have such a word as its id: none of its own paths is a POST to the word alone.
"""

from typing import Any

from api import dry_run, examples, hops
from api.noun import Noun
from api.schemas import DeletedPage, EditFilter, PausedPage, ResumedPage
from api.services import services
from scheduler_app.domain.schedule import TENANT
from scheduler_app.store.paging import Window
from scheduler_app.usecases.bulk_edits import Verb, edit_page

MAX_SKIPPED = 100

blueprint = Noun(
    "edits", __name__, url_prefix="/api/schedules", description="Many schedules, chosen by a filter"
)


@blueprint.route("/pause", methods=["POST"])
@blueprint.arguments(EditFilter, example=examples.EDIT)
@blueprint.response(200, PausedPage)
def pause_schedules(given: dict[str, Any]) -> dict[str, Any]:
    """Pause the schedules that match a filter, newest first, a page a call"""
    return _edited(Verb.PAUSE, "paused", given)


@blueprint.route("/resume", methods=["POST"])
@blueprint.arguments(EditFilter, example=examples.EDIT)
@blueprint.response(200, ResumedPage)
def resume_schedules(given: dict[str, Any]) -> dict[str, Any]:
    """Resume the schedules that match a filter, newest first, a page a call"""
    return _edited(Verb.RESUME, "resumed", given)


@blueprint.route("/delete", methods=["POST"])
@blueprint.arguments(EditFilter, example=examples.EDIT)
@blueprint.response(200, DeletedPage)
def delete_schedules(given: dict[str, Any]) -> dict[str, Any]:
    """Delete the schedules that match a filter, newest first, a page a call; their history stays"""
    return _edited(Verb.DELETE, "deleted", given)


def _edited(verb: Verb, done: str, given: dict[str, Any]) -> dict[str, Any]:
    if given["dry_run"]:
        dry_run.ask()
    made, window = services(), Window(limit=given["limit"], after=given.get("cursor"))
    which = {name: given[name] for name in ("state", "name", "tag", "last_outcome") if name in given}
    found = made.store.schedules.page(window, tenant=TENANT, **which)
    page = edit_page(made.manager, verb, found, made.now(), hops=hops.given())
    view: dict[str, Any] = {
        done: page.count,
        "skipped": [{"id": each, "reason": reason} for each, reason in page.skipped[:MAX_SKIPPED]],
        "next_cursor": page.following,
    }
    if len(page.skipped) > MAX_SKIPPED:
        view["skipped_omitted"] = len(page.skipped) - MAX_SKIPPED
    return view
