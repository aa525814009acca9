"""The definitions of the indexes; `store/index_builds.py` makes them. A changed one gets a new name."""

from typing import NamedTuple

from pymongo import ASCENDING, DESCENDING, IndexModel

from scheduler_app.domain.http_action import DESTINATION_PREFIX
from scheduler_app.domain.schedule import PAUSED_BY_FAILURES
from scheduler_app.store.access_tokens import BY_KEY
from scheduler_app.store.audit_lines import BY_NUMBER as AUDIT_NUMBER
from scheduler_app.store.audit_lines import BY_RESOURCE, OF_ALL, OWED_LINES, UNCHAINED
from scheduler_app.store.idempotency import BY_OWNER, KEPT_SECONDS
from scheduler_app.store.ledger import BY_HOUR, BY_NUMBER, OF_SCHEDULE, UNSETTLED
from scheduler_app.store.mongo import Document
from scheduler_app.store.people import BY_PROVIDER_SESSION, OF_TENANT_SEEN

DAY_SECONDS = 86_400
#: How long lines of the ledger, and of deletions, are kept, whatever the retention of events is.
LEDGER_DAYS = 400
#: Who has not signed in for so long is forgotten.
PEOPLE_DAYS = 400
NODE_TTL_SECONDS = 60
#: A silence that is over is shown for so long.
SILENCES_SHOWN_SECONDS = 7 * DAY_SECONDS
ROUTED = "routed_v2"
HELD = "held_v1"
ENDS = "ends_v1"
OWED_NOTIFICATIONS = "notify_v1"
NOTIFIES = "notifies_v1"
BY_DUE = "due_v4"
BY_NEXT_RUN = "expand_v3"
OWED_RANGES = "owed_v2"
PENDING = "pending_v1"
BY_TAG = "list_tag_v1"
OF_DESTINATION = "destination_v1"
"""Of events that wait for one."""
BY_ACTION = "action_v1"
WAITING_OF_CAUSE = "cause_waiting_v1"
DEAD_OF_CAUSE = "cause_dead_v1"
HEARTBEATS_DUE = "due_v1"
TELLINGS_OF_RULE = "rule_v1"
TELLINGS_OPEN = "open_v1"
TELLINGS_OWED = "owed_v1"
OF_TENANT = "tenant_v1"
BY_EXPIRY = "expiry_v2"
CAUSE_LIVING = "living_v1"
CAUSE_FAILING = "failing_v1"
CAUSE_DEAD = "dead_v1"
EXPECTING = "expecting_v1"
STOPPED = "stopped_v1"
HAS_BREAKER = "breaker_v1"

EVENTS = [
    # `$exists` and not a list of states: a partial index on `state: {$in: …}` is not used by such queries.
    IndexModel(
        # With the partition, tenant and origin, so that the waiting events of other beats' partitions, of one
        # tenant, and of one origin, are left out without being read. The partition stands behind the time:
        # what is due is one range, in order, for a beat with one partition or with all, and for those who ask
        # for all events.
        [
            ("state", ASCENDING),
            ("due_at", ASCENDING),
            ("partition", ASCENDING),
            ("tenant", ASCENDING),
            ("origin", ASCENDING),
        ],
        name=BY_DUE,
        partialFilterExpression={"due_at": {"$exists": True}},
    ),
    # The living events of queues that schedules name, and no others: a write for those alone.
    IndexModel(
        [
            ("queue", ASCENDING),
            ("state", ASCENDING),
            ("due_at", ASCENDING),
            ("tenant", ASCENDING),
            ("origin", ASCENDING),
        ],
        name=ROUTED,
        partialFilterExpression={"routed": True, "due_at": {"$exists": True}},
    ),
    # The events that kill switches hold, by the switch; no others are written to it.
    IndexModel(
        [("held", ASCENDING)],
        name=HELD,
        partialFilterExpression={"held": {"$exists": True}, "due_at": {"$exists": True}},
    ),
    IndexModel(
        [("schedule_id", ASCENDING), ("run_time", DESCENDING), ("_id", DESCENDING)], name="schedule_v1"
    ),
    # The pending events of a schedule, however many are finished. It is written when an event is made and
    # when it ends.
    IndexModel(
        [("schedule_id", ASCENDING), ("run_time", DESCENDING), ("_id", DESCENDING)],
        name=PENDING,
        partialFilterExpression={"due_at": {"$exists": True}},
    ),
    IndexModel([("tenant", ASCENDING), ("run_time", DESCENDING), ("_id", DESCENDING)], name="list_v1"),
    # What waits for each destination; the events of others are not written to it.
    IndexModel(
        [("origin", ASCENDING), ("state", ASCENDING), ("due_at", ASCENDING)],
        name=OF_DESTINATION,
        partialFilterExpression={
            "due_at": {"$exists": True},
            "origin": {"$gte": DESTINATION_PREFIX, "$lt": DESTINATION_PREFIX + "~"},
        },
    ),
    # The dead letters in the order of every other list of events; no other state is written to it.
    IndexModel(
        [("tenant", ASCENDING), ("run_time", DESCENDING), ("_id", DESCENDING)],
        name="dead_v2",
        partialFilterExpression={"state": "error"},
    ),
    # The records of missed occurrences, and nothing else.
    IndexModel(
        [("schedule_id", ASCENDING), ("run_time", ASCENDING)],
        name="missed_v1",
        partialFilterExpression={"missed.first": {"$exists": True}},
    ),
    # Until when receivers may say how their work went; written for events that wait for that alone.
    IndexModel(
        [("due_at", ASCENDING)],
        name="awaited_v1",
        partialFilterExpression={"completion.awaiting": True},
    ),
    # Messages by the time they are scheduled for; written when they are made, rescheduled and removed.
    IndexModel(
        [("tenant", ASCENDING), ("run_time", DESCENDING), ("_id", DESCENDING)],
        name="messages_v1",
        partialFilterExpression={"kind": "message"},
    ),
    IndexModel(
        [
            ("tenant", ASCENDING),
            ("event_name", ASCENDING),
            ("run_time", DESCENDING),
            ("_id", DESCENDING),
        ],
        name="message_names_v1",
        partialFilterExpression={"kind": "message", "event_name": {"$exists": True}},
    ),
    # Written for messages that name a destination, and for no others.
    IndexModel(
        [
            ("tenant", ASCENDING),
            ("action.destination", ASCENDING),
            ("run_time", DESCENDING),
            ("_id", DESCENDING),
        ],
        name="message_destinations_v1",
        partialFilterExpression={"kind": "message", "action.destination": {"$exists": True}},
    ),
    # Events that ended and whose notification is still to be made; no others are written to it.
    IndexModel(
        [("notify.since", ASCENDING)],
        name=OWED_NOTIFICATIONS,
        partialFilterExpression={"notify.since": {"$exists": True}},
    ),
    # Unfinished messages that name a destination to be notified: its deletion asks for them.
    IndexModel(
        [("tenant", ASCENDING), ("notifies.destination", ASCENDING)],
        name=NOTIFIES,
        partialFilterExpression={"notifies.destination": {"$exists": True}, "due_at": {"$exists": True}},
    ),
    # The events whose last attempt failed and that wait for the next one, by their cause; no event that has
    # not failed is written to it.
    IndexModel(
        [("cause", ASCENDING), ("due_at", ASCENDING)],
        name=WAITING_OF_CAUSE,
        partialFilterExpression={"cause": {"$exists": True}, "due_at": {"$exists": True}},
    ),
    # The dead letters of a cause; those without one are found as null.
    IndexModel(
        [("state", ASCENDING), ("cause", ASCENDING), ("run_time", DESCENDING), ("_id", DESCENDING)],
        name=DEAD_OF_CAUSE,
        partialFilterExpression={"state": "error"},
    ),
]

SCHEDULES = [
    # With the id, so that a list in the order of next runs goes on after a row: many fire at one instant.
    IndexModel(
        [("state", ASCENDING), ("next_run_at", ASCENDING), ("_id", ASCENDING), ("partition", ASCENDING)],
        name=BY_NEXT_RUN,
        partialFilterExpression={"next_run_at": {"$exists": True}},
    ),
    IndexModel(
        [("state", ASCENDING), ("zone_data", ASCENDING)],
        name="zone_v1",
        partialFilterExpression={"zone_data": {"$exists": True}},
    ),
    # What ends by itself, and no others: deleted ones, which are kept for a time, active ones without a next
    # occurrence, pauses. A state has one of the three times: what is over of it is one range, in its order.
    IndexModel(
        [
            ("state", ASCENDING),
            ("deleted_at", ASCENDING),
            ("finishes_at", ASCENDING),
            ("pause.until", ASCENDING),
        ],
        name=ENDS,
        partialFilterExpression={
            "$or": [
                {"deleted_at": {"$exists": True}},
                {"finishes_at": {"$exists": True}},
                {"pause.until": {"$exists": True}},
            ]
        },
    ),
    # Written by an edit that leaves something to beats, and by nothing else. With the tenant, whose bounds
    # leave out schedules: an index of a list compares no pattern of ids with its keys.
    IndexModel(
        [("owed.next_run_at", ASCENDING), ("tenant", ASCENDING)],
        name=OWED_RANGES,
        partialFilterExpression={"owed": {"$exists": True}},
    ),
    # Who observes a calendar, and with which of its days their future was computed.
    IndexModel(
        [("tenant", ASCENDING), ("calendar", ASCENDING), ("state", ASCENDING), ("calendar_days", ASCENDING)],
        name="calendar_v1",
        partialFilterExpression={"calendar": {"$exists": True}},
    ),
    IndexModel([("tenant", ASCENDING), ("created_at", DESCENDING), ("_id", DESCENDING)], name="list_v1"),
    IndexModel(
        [("tenant", ASCENDING), ("state", ASCENDING), ("created_at", DESCENDING), ("_id", DESCENDING)],
        name="list_state_v1",
    ),
    IndexModel(
        [("tenant", ASCENDING), ("name", ASCENDING), ("created_at", DESCENDING), ("_id", DESCENDING)],
        name="list_name_v1",
    ),
    IndexModel(
        [("tenant", ASCENDING), ("tags", ASCENDING), ("created_at", DESCENDING), ("_id", DESCENDING)],
        name=BY_TAG,
    ),
    # Those that name a destination, and those that do something else than an HTTP request, which name none:
    # the names of other kinds all sort before "http".
    IndexModel(
        [("action.destination", ASCENDING), ("action.type", ASCENDING), ("_id", ASCENDING)],
        name=BY_ACTION,
        partialFilterExpression={
            "$or": [{"action.destination": {"$exists": True}}, {"action.type": {"$lt": "http"}}]
        },
    ),
    IndexModel(
        [("tenant", ASCENDING), ("notifies.destination", ASCENDING)],
        name=NOTIFIES,
        partialFilterExpression={"notifies.destination": {"$exists": True}},
    ),
    # Those whose last run did not succeed, which all have names after "completed": the run of a schedule that
    # goes on succeeding is not written to it.
    IndexModel(
        [
            ("tenant", ASCENDING),
            ("last_run.outcome", ASCENDING),
            ("created_at", DESCENDING),
            ("_id", DESCENDING),
        ],
        name="list_outcome_v1",
        partialFilterExpression={"last_run.outcome": {"$gt": "completed"}},
    ),
    # Those that expect something of their runs, and no others.
    IndexModel(
        [("tenant", ASCENDING), ("_id", ASCENDING)],
        name=EXPECTING,
        partialFilterExpression={"expect": {"$exists": True}},
    ),
    # Those that are set aside, and those that their failures have paused: of a state, it has none but these.
    IndexModel(
        [("state", ASCENDING), ("tenant", ASCENDING), ("_id", ASCENDING)],
        name=STOPPED,
        partialFilterExpression={"$or": [{"state": "error"}, {"pause.reason": PAUSED_BY_FAILURES}]},
    ),
    # Those with lines for the audit, for the seconds until a beat has moved them.
    IndexModel(
        [("unlogged._id", ASCENDING)],
        name=OWED_LINES,
        partialFilterExpression={"unlogged": {"$exists": True}},
    ),
]

CALENDARS = [
    IndexModel([("tenant", ASCENDING), ("created_at", DESCENDING), ("_id", DESCENDING)], name="list_v1"),
    IndexModel(
        [("changed_at", ASCENDING)],
        name="changed_v1",
        partialFilterExpression={"changed_at": {"$exists": True}},
    ),
    IndexModel(
        [("holiday_data", ASCENDING)],
        name="holiday_data_v1",
        partialFilterExpression={"holiday_data": {"$exists": True}},
    ),
    IndexModel(
        [("deleted_at", ASCENDING)],
        name="deleted_v1",
        partialFilterExpression={"deleted_at": {"$exists": True}},
    ),
]

#: Written when something begins to fail and is over, and each second while it goes on.
CAUSES = [
    # One cause of a key is alive at a time.
    IndexModel(
        [("key", ASCENDING)],
        name=CAUSE_LIVING,
        unique=True,
        partialFilterExpression={"living": True},
    ),
    # Those of failing receivers, which beats look at every 2 s: there may be thousands of other kinds.
    IndexModel(
        [("key", ASCENDING)],
        name=CAUSE_FAILING,
        partialFilterExpression={"living": True, "kind": "failing"},
    ),
    IndexModel([("tenant", ASCENDING)], name=CAUSE_DEAD, partialFilterExpression={"dead": True}),
    IndexModel([("key", ASCENDING), ("since", DESCENDING)], name="key_v1"),
    IndexModel([("tenant", ASCENDING), ("since", DESCENDING), ("_id", DESCENDING)], name="list_v1"),
]

HEARTBEATS = [
    IndexModel([("tenant", ASCENDING), ("_id", ASCENDING)], name="list_v1"),
    # Those that beats are to look at, by when.
    IndexModel(
        [("look_at", ASCENDING)],
        name=HEARTBEATS_DUE,
        partialFilterExpression={"look_at": {"$exists": True}},
    ),
]
#: Written when a rule tells of a change of a cause.
TELLINGS = [
    IndexModel([("rule", ASCENDING), ("is_end", ASCENDING), ("told_at", DESCENDING)], name=TELLINGS_OF_RULE),
    IndexModel([("rule", ASCENDING)], name=TELLINGS_OPEN, partialFilterExpression={"open": True}),
    IndexModel([("rule", ASCENDING)], name=TELLINGS_OWED, partialFilterExpression={"owed": True}),
]
BY_TENANT = [IndexModel([("tenant", ASCENDING)], name=OF_TENANT)]

#: What is kept for each owner is counted by it, newest first.
IDEMPOTENCY = [
    IndexModel(
        [("owner", ASCENDING), ("created_at", DESCENDING), ("size", ASCENDING)],
        name=BY_OWNER,
    )
]

DESTINATIONS = [
    IndexModel([("tenant", ASCENDING), ("created_at", DESCENDING), ("_id", DESCENDING)], name="list_v1"),
    # Those that say which workers send what comes to them, and no others.
    IndexModel([("queue", ASCENDING)], name="queue_v1", partialFilterExpression={"queue": {"$exists": True}}),
    IndexModel(
        [("tenant", ASCENDING), ("_id", ASCENDING)],
        name=HAS_BREAKER,
        partialFilterExpression={"breaker": {"$exists": True}},
    ),
]
CALENDAR_FEEDS = [IndexModel([("tenant", ASCENDING), ("created_at", DESCENDING)], name="list_v1")]
# Those that beats have something to do for, and no others.
BACKFILLS = [
    IndexModel(
        [("active", ASCENDING), ("tenant", ASCENDING)],
        name="active_v1",
        partialFilterExpression={"active": True},
    )
]
REDRIVES = [
    IndexModel(
        [("active", ASCENDING), ("tenant", ASCENDING)],
        name="active_v1",
        partialFilterExpression={"active": True},
    )
]
DELETIONS = [
    # One of a key is at work at a time.
    IndexModel([("key", ASCENDING)], name="key_v1", unique=True, partialFilterExpression={"active": True}),
    IndexModel([("active", ASCENDING)], name="active_v1", partialFilterExpression={"active": True}),
    IndexModel([("started_at", DESCENDING)], name="list_v1"),
    IndexModel([("tenant", ASCENDING), ("started_at", DESCENDING)], name="list_tenant_v1"),
]
SESSIONS = [
    IndexModel([("key", ASCENDING), ("created_at", DESCENDING)], name=BY_KEY),
    # Those that the provider may end, by its own name for them.
    IndexModel(
        [("provider_session", ASCENDING)],
        name=BY_PROVIDER_SESSION,
        partialFilterExpression={"provider_session": {"$exists": True}},
    ),
]
SIGN_IN_GRANTS = [IndexModel([("key", ASCENDING), ("created_at", DESCENDING)], name=BY_KEY)]
PEOPLE = [IndexModel([("tenant", ASCENDING), ("last_seen_at", DESCENDING)], name=OF_TENANT_SEEN)]

#: What was done to one resource, and to all of a tenant; written by what people do, and hardly else.
AUDIT = [
    IndexModel([("resource", ASCENDING), ("at", DESCENDING), ("_id", DESCENDING)], name=BY_RESOURCE),
    IndexModel([("tenant", ASCENDING), ("at", DESCENDING), ("_id", DESCENDING)], name=OF_ALL),
    # Unique, so that two beats never give the same place.
    IndexModel(
        [("tenant", ASCENDING), ("number", ASCENDING)],
        name=AUDIT_NUMBER,
        unique=True,
        partialFilterExpression={"number": {"$exists": True}},
    ),
    # The lines of the last seconds.
    IndexModel(
        [("tenant", ASCENDING), ("_id", ASCENDING)],
        name=UNCHAINED,
        partialFilterExpression={"unchained": True},
    ),
]

#: Written when a revision ends, and read by the witness alone.
ENDED_REVISIONS = [
    IndexModel([("schedule_id", ASCENDING), ("revision", ASCENDING)], name=OF_SCHEDULE),
]

#: Unique, so that two witnesses never write the same line.
LEDGER = [
    IndexModel([("tenant", ASCENDING), ("number", ASCENDING)], name=BY_NUMBER, unique=True),
    IndexModel([("tenant", ASCENDING), ("hour", ASCENDING), ("turn", ASCENDING)], name=BY_HOUR, unique=True),
    # The lines that tell of events which had not ended, or are missing.
    IndexModel([("hour", ASCENDING)], name=UNSETTLED, partialFilterExpression={"unsettled": True}),
]

OUTBOX = [IndexModel([("until", ASCENDING)], name="until_v1")]

OF_COLLECTIONS = {
    "schedules": SCHEDULES,
    "events": EVENTS,
    "calendars": CALENDARS,
    "outbox": OUTBOX,
    "destinations": DESTINATIONS,
    "idempotency": IDEMPOTENCY,
    "calendar_feeds": CALENDAR_FEEDS,
    "backfills": [*BACKFILLS, *BY_TENANT],
    "sessions": SESSIONS,
    "sign_in_grants": [*SIGN_IN_GRANTS, *BY_TENANT],
    "people": PEOPLE,
    "deletions": DELETIONS,
    "audit": AUDIT,
    "causes": CAUSES,
    "redrives": [*REDRIVES, *BY_TENANT],
    "heartbeats": HEARTBEATS,
    "kill_switches": BY_TENANT,
    "blackouts": BY_TENANT,
    "notifications": BY_TENANT,
    "silences": BY_TENANT,
    "api_keys": [
        *BY_TENANT,
        IndexModel([("expires_at", ASCENDING), ("_id", ASCENDING)], name=BY_EXPIRY, sparse=True),
    ],
    "tellings": TELLINGS,
    "ended_revisions": ENDED_REVISIONS,
    "ledger": LEDGER,
}

#: Each would be work for each event, or for each edit of a schedule. Releases before the INDEX_LEVEL ask for
#: some of them by name.
REPLACED = {
    "events": ("due_v1", "due_v2", "due_v3", "retention_v1", "routed_v1"),
    "schedules": (
        *("expand_v1", "expand_v2", "owed_v1"),
        *("finish_v1", "deleted_v1", "paused_until_v1", "set_aside_v1", "paused_by_failures_v1"),
        *("destination_v1", "other_actions_v1"),
    ),
}
#: An older release counted attempts to sign in here, each address for a minute.
UNUSED_COLLECTIONS = ("sign_in_attempts",)


class ExpiryIndex(NamedTuple):
    """An index by which MongoDB removes documents, so many seconds after the instant in a field."""

    collection: str
    field: str
    name: str
    seconds: int
    only: Document | None = None
    """The documents that it holds; None for all with the field."""


def expiry_indexes(*, retention_days: int, message_retention_days: int) -> list[ExpiryIndex]:
    """All of them, for events and messages that are kept for so long."""
    kept, ledger_kept = retention_days * DAY_SECONDS, LEDGER_DAYS * DAY_SECONDS
    # The witness judges hours whose events are kept; a revision that has ended may have begun before.
    judged = kept + 2 * DAY_SECONDS
    occurrences: Document = {"archived_at": {"$exists": True}, "schedule_id": {"$exists": True}}
    # Messages have no schedule, and a retention of their own.
    messages: Document = {"archived_at": {"$exists": True}, "kind": "message"}
    messages_kept = message_retention_days * DAY_SECONDS
    return [
        ExpiryIndex("events", "archived_at", "retention_v2", kept, occurrences),
        ExpiryIndex("events", "archived_at", "message_retention_v1", messages_kept, messages),
        ExpiryIndex("redrives", "ended_at", "retention_v1", kept),
        ExpiryIndex("causes", "over_at", "retention_v1", kept),
        ExpiryIndex("tellings", "expires_at", "expiry_v1", 0),
        ExpiryIndex("figures", "expires_at", "expiry_v1", 0),
        ExpiryIndex("quotas", "expires_at", "expiry_v1", 0),
        ExpiryIndex("silences", "until", "expiry_v1", SILENCES_SHOWN_SECONDS),
        ExpiryIndex("ended_revisions", "ended_at", "retention_v1", judged),
        ExpiryIndex("ended_calendars", "ended_at", "retention_v1", judged),
        ExpiryIndex("ledger", "written_at", "retention_v1", ledger_kept),
        ExpiryIndex("deletions", "ended_at", "retention_v1", ledger_kept),
        ExpiryIndex("idempotency", "created_at", "kept_v1", KEPT_SECONDS),
        ExpiryIndex("sessions", "expires_at", "expired_v1", 0),
        ExpiryIndex("sign_in_grants", "expires_at", "expired_v1", 0),
        ExpiryIndex("people", "last_seen_at", "forgotten_v1", PEOPLE_DAYS * DAY_SECONDS),
        ExpiryIndex("nodes", "seen_at", "alive_v1", NODE_TTL_SECONDS),
    ]
