"""/api/v1/search and /api/v1/tags: what people may mean by some words, what ran of a tag, its deletion."""

from flask import g

from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.services import caller, is_dry_run, services, tenant
from scheduler_app.api.wire import search as wire
from scheduler_app.api.wire.access import TagDeletionOutput, TagDeletionQuery, deletion_shown
from scheduler_app.api.wire.failure import causes_shown
from scheduler_app.api.wire.run_calendar import period_of
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.cause import CauseState
from scheduler_app.domain.forecast import ForecastChoice
from scheduler_app.store.causes import CauseListFilter
from scheduler_app.store.paging import PageRequest

search_blueprint = ApiBlueprint("search", "/api/v1/search", "Whatever has these words")


@search_blueprint.route("", methods=["GET"])
@search_blueprint.arguments(wire.SearchQuery, location="query")
@search_blueprint.response(200, wire.SearchOutput)
def search(query: Loaded) -> View:
    """Find schedules, tags, destinations, events and messages by some words

    Schedules are looked through, the newest first, for 0.3 seconds or so: where there are more than that is
    enough for, `incomplete` is true, and longer words, the beginning of a name, or an id find what is older.
    """
    words = query["q"].strip() or query["q"]
    found = services().search.search(tenant(), words, limit=query["limit"], tag=query.get("tag"))
    return wire.search_shown(found, words)


tags_blueprint = ApiBlueprint("tags", "/api/v1/tags", "The tags of schedules, and what ran of each")


@tags_blueprint.route("", methods=["GET"])
@tags_blueprint.arguments(wire.TagsQuery, location="query")
@tags_blueprint.response(200, wire.TagsOutput)
def list_tags(query: Loaded) -> View:
    """List tags with the number of their schedules"""
    rows, following = services().search.tags(tenant(), **query)
    return {"tags": list(map(wire.tag_shown, rows)), "next": following}


@tags_blueprint.route("", methods=["DELETE"], scope=KeyScope.ADMIN, query=TagDeletionQuery)
@tags_blueprint.response(202, TagDeletionOutput)
def delete_tag() -> View:
    """Delete the schedules with a tag, and everything that hangs on them; `confirm` is the tag once more

    Their events with the history, notifications, backfills and failures go with them, and so do heartbeats,
    calendar feeds and figures of the tag, and keys that are for this tag alone. Schedules that have other
    tags, too, are deleted all the same: a dry run says how many. Within seconds nothing of it is sent; beats
    remove it within minutes. Messages have no tags and stay.
    """
    tag, confirm = g.write_query["tag"], g.write_query.get("confirm")
    deletions = services().deletions
    shown = deletion_shown(deletions.delete_tag(tenant(), tag, confirm, caller(), services().now()))
    if is_dry_run():
        shown["found"] = deletions.count_tag(tenant(), tag)._asdict()
    return shown


@tags_blueprint.route("/summary", methods=["GET"])
@tags_blueprint.arguments(wire.TagSummaryQuery, location="query")
@tags_blueprint.response(200, wire.TagSummaryOutput)
def get_tag_summary(query: Loaded) -> View:
    """Show what ran and is to come of the schedules with a tag, by day, and what of them fails"""
    assembly, tag = services(), query["tag"]
    now = assembly.now()
    period = period_of(wire.by_days(query), now)
    found = assembly.run_calendars.read(tenant(), period, ForecastChoice(tag=tag), now)
    failing = CauseListFilter(states=(CauseState.OPEN,), tag=tag)
    window = PageRequest(limit=wire.MOST_FAILURES)
    failures = assembly.failures.page(tenant(), window, failing, caller().tags)
    return wire.tag_summary_shown(
        assembly.search.counted_tag(tenant(), tag), found, causes_shown(failures.rows)
    )
