"""The deletion of everything that goes with a tag: counted, confirmed by the tag itself, and followed."""

from typing import Final

from flask import render_template
from marshmallow import validate
from werkzeug.wrappers import Response

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages import forms
from scheduler_app.api.pages.formatting import counted
from scheduler_app.api.pages.frame import blueprint, to_page
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import name_of
from scheduler_app.usecases.deeds.deletions import MOST_COUNTED

#: What is counted, in words for people: the counts of a deletion, by collection.
_WORDS: Final = {"schedules": "schedule", "events": "run", "heartbeats": "heartbeat"}


class TagDeletionForm(InputSchema):
    tag = fields.String(required=True, validate=validate.Length(1, 64))
    confirm = fields.String(validate=validate.Length(max=64))


class TagDeletionPageQuery(InputSchema):
    tag = fields.String(required=True, validate=validate.Length(1, 64))
    deletion = fields.String(validate=validate.Length(1, 64))


@blueprint.get("/tags/delete")
@forms.takes_query(TagDeletionPageQuery)
def delete_tag(query: Loaded) -> str:
    """Asks; of a deletion that has begun it says how far that is."""
    tag = query["tag"]
    deletion = services().deletions.at_work(tenant(), tag)
    if deletion is None and "deletion" in query:
        deletion = services().deletions.find(tenant(), query["deletion"], caller())
    if deletion is None:
        return _ask(tag)
    removed = [
        counted(count, _WORDS[name]) if name in _WORDS else f"{count:,} {name.replace('_', ' ')}"
        for name, count in sorted(deletion.counts.items(), key=lambda pair: -pair[1])
    ]
    return render_template("delete_tag.html", tag=tag, deletion=deletion, removed=removed)


@blueprint.post("/tags/delete")
@forms.takes_form(TagDeletionForm)
def delete_tag_on_page(form: Loaded) -> Response | tuple[str, int]:
    tag, typed = form["tag"], form.get("confirm", "")
    try:
        begun = services().deletions.delete_tag(tenant(), tag, typed, caller(), services().now())
    except InvalidField:
        return _ask(tag, typed=typed), 422
    return to_page("delete_tag", tag=tag, deletion=name_of(begun.id))


def _ask(tag: str, typed: str | None = None) -> str:
    found = services().deletions.count_tag(tenant(), tag)
    shown = {name: counted(count, _WORDS[name]) for name, count in found._asdict().items() if name in _WORDS}
    for name in shown:
        if getattr(found, name) >= MOST_COUNTED:
            shown[name] = f"{MOST_COUNTED:,} {_WORDS[name]}s or more"
    return render_template("delete_tag.html", tag=tag, found=found, shown=shown, typed=typed)
