"""/api/v1/schedules/pause, /resume, /delete: edits all schedules that match a filter, one page in each call.

A schedule may have one of these words as its id: no route of a single schedule is a POST to the id alone.
"""

from scheduler_app.api import hop_limit
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.dry_run import ask
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.api.wire import DeletedPage, EditFilter, PausedPage, PauseFilter, ResumedPage, examples
from scheduler_app.store.paging import Window
from scheduler_app.usecases.bulk_edits import Verb, edit_page

MAX_SKIPPED = 100

blueprint = ApiBlueprint(
    "edits", __name__, url_prefix="/api/v1/schedules", description="Many schedules, chosen by a filter"
)


@blueprint.route("/pause", methods=["POST"])
@blueprint.arguments(PauseFilter, example=examples.EDIT)
@blueprint.response(200, PausedPage)
def pause_schedules(given: Loaded) -> View:
    """Pause the schedules that match a filter, newest first, a page a call"""
    return _edited(Verb.PAUSE, "paused", given)


@blueprint.route("/resume", methods=["POST"])
@blueprint.arguments(EditFilter, example=examples.EDIT)
@blueprint.response(200, ResumedPage)
def resume_schedules(given: Loaded) -> View:
    """Resume the schedules that match a filter, newest first, a page a call"""
    return _edited(Verb.RESUME, "resumed", given)


@blueprint.route("/delete", methods=["POST"])
@blueprint.arguments(EditFilter, example=examples.EDIT)
@blueprint.response(200, DeletedPage)
def delete_schedules(given: Loaded) -> View:
    """Delete the schedules that match a filter, newest first, a page a call; their history stays"""
    return _edited(Verb.DELETE, "deleted", given)


def _edited(verb: Verb, done: str, given: Loaded) -> View:
    if given["dry_run"]:
        ask()
    made, window = services(), Window(limit=given["limit"], after=given.get("cursor"))
    which = {name: given[name] for name in EditFilter.FILTERS if name in given}
    found = made.store.schedules.page(window, tenant=tenant(), **which)
    hops = hop_limit.request_hops()
    pause: Loaded = {name: given[name] for name in ("note", "until") if name in given}
    page = edit_page(made.manager, verb, found, made.now(), tenant=tenant(), hops=hops, pause=pause)
    view: View = {
        done: page.count,
        "skipped": [{"id": each, "reason": reason} for each, reason in page.skipped[:MAX_SKIPPED]],
        "next_cursor": page.next,
    }
    if len(page.skipped) > MAX_SKIPPED:
        view["skipped_omitted"] = len(page.skipped) - MAX_SKIPPED
    return view
