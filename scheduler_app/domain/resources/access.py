"""The tables of the fields of keys and tenants."""

from scheduler_app.domain.api_key import MAX_KEY_NAME, KeyScope
from scheduler_app.domain.request_rate import BURST_SECONDS, LEAST_REQUEST_RATE, MAX_REQUEST_RATE
from scheduler_app.domain.resource_fields import (
    Flag,
    ListOf,
    Moment,
    Number,
    Object,
    ResourceField,
    Text,
    Whole,
    Word,
    computed,
)
from scheduler_app.domain.resources.schedule import TAG
from scheduler_app.domain.schedule import MAX_TAGS
from scheduler_app.domain.tenant import (
    MAX_DELIVERY_SLOTS,
    MAX_EVENTS_PER_HOUR,
    MAX_MESSAGES_PER_DAY,
    MAX_RETENTION_DAYS,
    MAX_SCHEDULES,
    MAX_TENANT_NOTE,
    TenantState,
)

_SCOPES = tuple(each.value for each in KeyScope)

_REQUESTS_PER_SECOND = ResourceField(
    "requests_per_second",
    Number(LEAST_REQUEST_RATE, MAX_REQUEST_RATE),
    f"How many requests it may make, of all processes of the API together; those of {BURST_SECONDS} seconds"
    " at once",
    sparse=True,
)

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
    _REQUESTS_PER_SECOND,
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

#: What a tenant may take of what all share.
TENANT_LIMITS = (
    _REQUESTS_PER_SECOND,
    ResourceField(
        "schedules",
        Whole(0, MAX_SCHEDULES),
        "How many schedules it may have; deleted ones are not counted",
        sparse=True,
    ),
    ResourceField(
        "messages_per_day",
        Whole(0, MAX_MESSAGES_PER_DAY),
        "How many messages and triggers it may make in a day, which begins at 00:00 UTC",
        sparse=True,
    ),
    ResourceField(
        "delivery_slots",
        Whole(1, MAX_DELIVERY_SLOTS),
        "How many of its attempts may be in flight at once, of all workers together; what is due beyond that"
        " waits",
        sparse=True,
    ),
    ResourceField(
        "events_per_hour",
        Whole(0, MAX_EVENTS_PER_HOUR),
        "How many events its rules and backfills may owe in an hour, as estimated when one is made or edited",
        sparse=True,
    ),
)
#: What it has used of them, where that is known.
TENANT_USED = (
    computed("schedules", Whole(), "How many schedules it has"),
    computed("messages_per_day", Whole(), "How many messages and triggers it has made since 00:00 UTC"),
    computed("events_per_hour", Whole(), "How many events it owes in its busiest hour, as estimated last"),
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
        "What the lines of OIDC_ROLES gave at the last sign-in",
        given=False,
    ),
    ResourceField(
        "first_seen_at", Moment(), "When that was for the first time", given=False, always_shown=True
    ),
    ResourceField("last_seen_at", Moment(), "When he or she signed in last", given=False, always_shown=True),
    ResourceField("last_seen_from", Text(), "From which address that was", given=False),
)

TENANT_TABLE = (
    ResourceField("name", Text(), "Its name, in the path", given=False, always_shown=True),
    ResourceField(
        "state",
        Word(tuple(each.value for each in TenantState), TenantState),
        "`active`; or `suspended`: its keys are answered 403, nothing of it is sent, and its events wait."
        " An answer may say `deleting`: everything of it is being deleted",
        default="`active`",
        always_shown=True,
    ),
    ResourceField(
        "limits", Object("limits"), "How much it may take of what all share; what is left out has no limit"
    ),
    ResourceField(
        "retention_days",
        Whole(1, MAX_RETENTION_DAYS),
        "After how many days its finished events, failures and redrives are removed; no more than what"
        " RETENTION_DAYS and MESSAGE_RETENTION_DAYS say, which hold without it",
    ),
    ResourceField("note", Text(1, MAX_TENANT_NOTE, visible=True), "What is to be known of it"),
    computed("used", Object("used"), "How much of its limits it has used; only in answers to GET"),
    ResourceField("created_at", Moment(), "When it was made", given=False),
)
