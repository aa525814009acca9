"""The tables of the fields of keys and people."""

from scheduler_app.domain.api_key import MAX_KEY_NAME, KeyScope
from scheduler_app.domain.resource_fields import Flag, ListOf, Moment, ResourceField, Text, Word, computed
from scheduler_app.domain.resources.schedule import TAG
from scheduler_app.domain.resources.tenant import REQUESTS_PER_SECOND
from scheduler_app.domain.schedule import MAX_TAGS

_SCOPES = tuple(each.value for each in KeyScope)

#: Every field of a key, in the order of specifications and answers.
KEY = (
    ResourceField("id", Text(), "Its id, which stands in the key, too", given=False, always_shown=True),
    ResourceField(
        "name",
        Text(1, MAX_KEY_NAME, visible=True),
        f"What people call it, in up to {MAX_KEY_NAME} characters; it stands beside what is done with it",
        required=True,
    ),
    ResourceField(
        "scopes",
        ListOf(Word(_SCOPES, KeyScope), 1, len(_SCOPES)),
        "What it may do: `read`, `trigger`, `write`, `admin`; only what your own key may do",
        required=True,
    ),
    ResourceField("tenant", Text(1, 63), "The tenant in which it acts", default="that of the request"),
    ResourceField(
        "installation",
        Flag(),
        "It acts in every tenant, by the header `Scheduler-Tenant`, as the keys of API_KEYS do",
        default="`false`",
        at="is_installations",
    ),
    ResourceField(
        "tags",
        ListOf(TAG, 1, MAX_TAGS),
        "It sees and changes only schedules with one of these tags, and what it makes must have one; all else"
        " is refused. Every schedule of its tenant unless given",
    ),
    ResourceField("expires_at", Moment(), "When it ends; without, it goes on until it is deleted"),
    REQUESTS_PER_SECOND,
    ResourceField(
        "previous_until", Moment(), "Until when the key before the last rotation opens", given=False
    ),
    ResourceField("created_at", Moment(), "When it was made", given=False),
    ResourceField("created_by", Text(), "The name of the key that made it; absent if none", given=False),
    ResourceField(
        "last_used_at", Moment(), "When it was used last, noted once a minute; absent if never", given=False
    ),
    ResourceField("last_used_from", Text(), "From which address that was", given=False),
    computed("key", Text(), "The key itself. Only in the answer that made it or rotated it"),
)

PERSON = (
    ResourceField("id", Text(), "Its id, the same at each sign-in", given=False, always_shown=True),
    ResourceField("name", Text(), "The name that the provider gives", given=False),
    ResourceField("mail", Text(), "The mail address that the provider gives", given=False),
    ResourceField(
        "subject", Text(), "By which the provider knows him or her", given=False, always_shown=True
    ),
    ResourceField("tenant", Text(), "The tenant in which he or she acts", given=False, always_shown=True),
    ResourceField(
        "installation", Flag(), "He or she acts in every tenant", given=False, at="is_installations"
    ),
    ResourceField(
        "scopes",
        ListOf(Word(_SCOPES, KeyScope), 1, len(_SCOPES)),
        "What the lines of OIDC_ROLES gave at the last sign-in, or when the provider was asked later",
        given=False,
    ),
    ResourceField(
        "first_seen_at", Moment(), "When that was for the first time", given=False, always_shown=True
    ),
    ResourceField("last_seen_at", Moment(), "When he or she signed in last", given=False, always_shown=True),
    ResourceField("last_seen_from", Text(), "From which address that was", given=False),
)
