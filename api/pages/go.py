"""Search: pages, customers and other tags, schedules, destinations, runs and messages by some words."""

from dataclasses import dataclass, replace
from difflib import get_close_matches

from flask import redirect, render_template, request, url_for
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.forms import LOOK_SECONDS, takes_query
from scheduler_app.api.pages.frame import blueprint
from scheduler_app.api.pages.places import PLACES
from scheduler_app.api.pages.times import instant
from scheduler_app.api.scopes import may
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.masking import masked_url
from scheduler_app.domain.search import FoundEvent
from scheduler_app.usecases.questions.search import SearchAnswer

#: Of each kind.
MOST = 8
#: Names among which the nearest are looked for where nothing was found, and how many are offered.
MOST_NAMES = 200
NEAREST = 3


class GoQuery(InputSchema):
    to = fields.String(validate=validate.Length(max=200))


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found, and what is said beside its name."""

    name: str
    address: str
    beside: str = ""
    state: str = ""
    """A state of an event or a schedule."""
    id: str = ""


@blueprint.get("/go")
@takes_query(GoQuery)
def go(query: Loaded) -> str | Response:
    """Lists what the words may mean. A form that was submitted redirects to a single match; the search that
    runs while a person types only lists."""
    words = query.get("to", "").strip()
    sections, incomplete = _sections(words)
    hits = [hit for _, found in sections for hit in found]
    if request.headers.get("HX-Request"):
        return render_template("found.html", hits=hits, to=words, incomplete=incomplete)
    # The ids of events begin with that of their schedule.
    meant = [hit for hit in hits if hit.id == words] or hits
    if len(meant) == 1 and words and (meant[0].id == words or not incomplete):
        return redirect(meant[0].address, 303)
    nearest = _nearest(words) if words and not hits else []
    return render_template("go.html", sections=sections, to=words, incomplete=incomplete, nearest=nearest)


def _sections(words: str) -> tuple[list[tuple[str, list[Hit]]], bool]:
    """What was found, by its kind; and whether there may be more schedules."""
    pages = [
        Hit(page.name, page.address())
        for place in PLACES
        for page in place.pages
        if page.is_called(words) and (may(KeyScope.WRITE) or not page.is_form)
    ]
    sections = [("Pages", pages)]
    incomplete = False
    if words:
        search = replace(services().search, seconds=LOOK_SECONDS)
        found = search.search(tenant(), words, limit=MOST)
        sections += _found(found)
        incomplete = found.incomplete
    return [(title, hits) for title, hits in sections if hits], incomplete


def _found(found: SearchAnswer) -> list[tuple[str, list[Hit]]]:
    tags = [
        Hit(
            each.tag, _tag_address(each.tag), f"{each.schedules} schedule{'s' if each.schedules != 1 else ''}"
        )
        for each in found.tags
    ]
    schedules = [
        Hit(
            each.name or name_of(each.id),
            url_for(f"{PAGES}.schedule", schedule_id=each.id),
            " · ".join(filter(None, (each.phrase, masked_url(each.url) if each.url else ""))),
            each.state,
            name_of(each.id),
        )
        for each in found.schedules
    ]
    destinations = [
        Hit(name_of(each.id), url_for(f"{PAGES}.edit_destination", name=each.id), masked_url(each.url))
        for each in found.destinations
    ]
    return [
        ("Customers and other tags", tags),
        ("Schedules", schedules),
        ("Destinations", destinations),
        ("Runs", list(map(_event_hit, found.events))),
        ("Messages", list(map(_event_hit, found.messages))),
    ]


def _event_hit(event: FoundEvent) -> Hit:
    due = instant(event.run_time) if event.run_time else ""
    return Hit(
        name_of(event.id), url_for(f"{PAGES}.event", event_id=event.id), due, event.state, name_of(event.id)
    )


def _tag_address(tag: str) -> str:
    return url_for(f"{PAGES}.tag_page", tag=tag)


def _nearest(words: str) -> list[Hit]:
    """Names that differ little from the words: of tags, and of the newest schedules."""
    tags, _ = services().search.tags(tenant(), limit=MOST_NAMES)
    named = {each.tag.rpartition(":")[2]: Hit(each.tag, _tag_address(each.tag)) for each in tags}
    for each in services().schedules.newest(tenant(), most=MOST_NAMES):
        named[each.name] = Hit(each.name, url_for(f"{PAGES}.schedule", schedule_id=each.id))
    by_folded = {name.casefold(): hit for name, hit in named.items()}
    return [by_folded[name] for name in get_close_matches(words.casefold(), by_folded, NEAREST)]
