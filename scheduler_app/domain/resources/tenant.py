"""The tables of the fields of tenants. The command line reads them where no server's packages are."""

from scheduler_app.domain.request_rate import BURST_SECONDS, LEAST_REQUEST_RATE, MAX_REQUEST_RATE
from scheduler_app.domain.resource_fields import (
    Moment,
    Number,
    Object,
    ResourceField,
    Text,
    Whole,
    Word,
    computed,
)
from scheduler_app.domain.tenant import (
    MAX_DELIVERY_SLOTS,
    MAX_EVENTS_PER_HOUR,
    MAX_MESSAGES_PER_DAY,
    MAX_RETENTION_DAYS,
    MAX_SCHEDULES,
    MAX_TENANT_NOTE,
    TenantState,
)

#: Of tenants and of keys.
REQUESTS_PER_SECOND = ResourceField(
    "requests_per_second",
    Number(LEAST_REQUEST_RATE, MAX_REQUEST_RATE),
    f"How many requests it may make, of all processes of the API together; those of {BURST_SECONDS} seconds"
    " at once",
    sparse=True,
)

#: What a tenant may take of what all share.
TENANT_LIMITS = (
    REQUESTS_PER_SECOND,
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
    computed(
        "schedules",
        Whole(),
        "How many schedules it has; in a list with very many of them, how many it had when it made one last",
    ),
    computed("messages_per_day", Whole(), "How many messages and triggers it has made since 00:00 UTC"),
    computed("events_per_hour", Whole(), "How many events it owes in its busiest hour, as estimated last"),
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
