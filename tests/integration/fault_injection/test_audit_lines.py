"""No change without a line of the audit, and no line without a change, wherever a request breaks.

The acts are the routes that may change something: one that is new and stands in neither table fails here.
Each call to MongoDB that an act makes breaks in each way; then what differs in the database is compared with
the lines that are there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from scheduler_app.api.factory import routed
from scheduler_app.config import Settings
from tests.drawn import SEED, drawn
from tests.integration.fault_injection.conftest import Bench
from tests.integration.fault_injection.door import Call, Door, Way
from tests.integration.fault_injection.world import Run, World
from tests.processes import wait_until

Request = tuple[str, str, dict[str, Any] | None]

URL: Final = "http://127.0.0.1:9/"
SCHEDULE: Final = {"id": "s1", "name": "n", "callback_url": URL, "rrule": "FREQ=DAILY"}
MADE: Final[Request] = ("POST", "/api/v1/schedules", SCHEDULE)
PAUSED: Final[Request] = ("POST", "/api/v1/schedules/s1/pause", None)
DESTINATION: Final[Request] = ("PUT", "/api/v1/destinations/d1", {"url": URL})
CALENDAR: Final[Request] = ("PUT", "/api/v1/calendars/c1", {"dates": [{"date": "2040-01-02"}]})
BLACKOUT: Final[Request] = (
    "PUT",
    "/api/v1/blackouts/b1",
    {"all": True, "cron": "0 22 * * *", "duration_seconds": 3600, "policy": "skip"},
)
SWITCH: Final[Request] = ("PUT", "/api/v1/kill-switch", {"all": True, "note": "a"})
HEARTBEAT: Final[Request] = ("PUT", "/api/v1/heartbeats/h1", {"cron": "0 9 * * *"})
NOTIFICATION: Final[Request] = (
    "PUT",
    "/api/v1/notifications/n1",
    {"to": [{"type": "webhook", "url": URL}], "on": ["failing"]},
)
SILENCE: Final[Request] = ("PUT", "/api/v1/silences/q1", {"until": "2040-01-01T00:00:00Z", "reason": "x"})
KEY: Final[Request] = ("POST", "/api/v1/keys", {"name": "k", "scopes": ["read"]})
TAGGED: Final[Request] = ("POST", "/api/v1/schedules", SCHEDULE | {"tags": ["t1"]})
TENANT: Final[Request] = ("PUT", "/api/v1/tenants/acme", {"note": "a"})
FEED: Final[Request] = ("POST", "/api/v1/calendar-feeds", {"name": "f"})
SIGNED: Final[Request] = ("POST", "/api/v1/schedules/s1/signing-secret", None)
STOPPED: Final[Request] = ("POST", "/api/v1/destinations/d1/pause", None)
SUSPENDED: Final[Request] = ("PUT", "/api/v1/tenants/acme", {"state": "suspended"})
BACKFILL: Final[Request] = (
    "POST",
    "/api/v1/schedules/s1/backfill",
    {"from": "2026-02-20T00:00:00Z", "to": "2026-02-21T12:00:00Z", "rate_per_second": 1},
)


@dataclass(frozen=True)
class Act:
    """A request, after those that make what it needs. In its path, {} is the id of the one document in
    `named`, or what that finds."""

    endpoint: str
    request: Request
    before: tuple[Request, ...] = ()
    named: str | Callable[[World], str] = ""

    def __str__(self) -> str:
        return self.endpoint


def _newest_edit(world: World) -> str:
    return str((world.database["audit"].find_one({"what": "paused"}) or {})["_id"])


ACTS: Final = [
    Act("schedules.create_schedule", MADE),
    Act("schedules.update_schedule", ("PUT", "/api/v1/schedules/s1", {"name": "m"}), (MADE,)),
    Act("schedules.delete_schedule", ("DELETE", "/api/v1/schedules/s1", None), (MADE,)),
    Act("schedules.pause_schedule", PAUSED, (MADE,)),
    Act("schedules.resume_schedule", ("POST", "/api/v1/schedules/s1/resume", None), (MADE, PAUSED)),
    Act("bulk.create_schedules", ("POST", "/api/v1/schedules/bulk", {"schedules": [SCHEDULE]})),
    Act("edits.pause_schedules", ("POST", "/api/v1/schedules/pause", {"all": True}), (MADE,)),
    Act("edits.resume_schedules", ("POST", "/api/v1/schedules/resume", {"all": True}), (MADE, PAUSED)),
    Act("edits.delete_schedules", ("POST", "/api/v1/schedules/delete", {"all": True}), (MADE,)),
    Act(
        "edits_log.revert_edit",
        ("POST", "/api/v1/schedules/s1/edits/{}/revert", None),
        (MADE, PAUSED),
        _newest_edit,
    ),
    Act("signing.make_signing_secret", SIGNED, (MADE,)),
    Act(
        "signing.remove_signing_secret",
        ("DELETE", "/api/v1/schedules/s1/signing-secret", None),
        (MADE, SIGNED),
    ),
    Act("destinations.put_destination", DESTINATION),
    Act(
        "destinations.change_destination",
        ("PATCH", "/api/v1/destinations/d1", {"timeout_seconds": 5}),
        (DESTINATION,),
    ),
    Act("destinations.delete_destination", ("DELETE", "/api/v1/destinations/d1", None), (DESTINATION,)),
    Act("destinations.pause_destination", STOPPED, (DESTINATION,)),
    Act(
        "destinations.resume_destination",
        ("POST", "/api/v1/destinations/d1/resume", None),
        (DESTINATION, STOPPED),
    ),
    Act("calendars.put_calendar", CALENDAR),
    Act("calendars.delete_calendar", ("DELETE", "/api/v1/calendars/c1", None), (CALENDAR,)),
    Act("calendars_of_schedules.create_calendar_feed", FEED),
    Act(
        "calendars_of_schedules.delete_calendar_feed",
        ("DELETE", "/api/v1/calendar-feeds/{}", None),
        (FEED,),
        "calendar_feeds",
    ),
    Act("blackouts.put_blackout", BLACKOUT),
    Act("blackouts.delete_blackout", ("DELETE", "/api/v1/blackouts/b1", None), (BLACKOUT,)),
    Act("kill-switch.turn_kill_switch_on", SWITCH),
    Act("kill-switch.turn_kill_switch_off", ("DELETE", "/api/v1/kill-switch?all=true", None), (SWITCH,)),
    Act("heartbeats.put_heartbeat", HEARTBEAT),
    Act("heartbeats.delete_heartbeat", ("DELETE", "/api/v1/heartbeats/h1", None), (HEARTBEAT,)),
    Act("heartbeats.rotate_heartbeat_token", ("POST", "/api/v1/heartbeats/h1/token", None), (HEARTBEAT,)),
    Act("notifications.put_notification", NOTIFICATION),
    Act("notifications.delete_notification", ("DELETE", "/api/v1/notifications/n1", None), (NOTIFICATION,)),
    Act("silences.put_silence", SILENCE),
    Act("silences.delete_silence", ("DELETE", "/api/v1/silences/q1", None), (SILENCE,)),
    Act("backfills.start_backfill", BACKFILL, (MADE,)),
    Act(
        "backfills.cancel_backfill",
        ("DELETE", "/api/v1/schedules/s1/backfill", None),
        (MADE, BACKFILL),
    ),
    Act("keys.create_key", KEY),
    Act("keys.rotate_key", ("POST", "/api/v1/keys/{}/rotate", None), (KEY,), "api_keys"),
    Act("keys.delete_key", ("DELETE", "/api/v1/keys/{}", None), (KEY,), "api_keys"),
    Act("tags.delete_tag", ("DELETE", "/api/v1/tags?tag=t1&confirm=t1", None), (TAGGED,)),
    Act("tenants.put_tenant", TENANT),
    Act("tenants.delete_tenant", ("DELETE", "/api/v1/tenants/acme?confirm=acme", None), (SUSPENDED,)),
]

#: Those that change nothing that people keep, or that have their lines elsewhere, and why.
WITHOUT_LINE: Final = {
    **dict.fromkeys(("previews.preview_rule", "echo", "pages.choose_zone"), "changes nothing"),
    **dict.fromkeys(
        ("messages.schedule_message", "messages.schedule_messages", "messages.cancel_message",
         "messages.delete_message", "messages.reschedule_message", "schedules.trigger_schedule",
         "tasks.execute_task", "events.cancel_event", "events.redrive_event", "events.complete_event",
         "events.fail_event", "backlog.expire_backlog"),
        "its line stands in the event's own document",
    ),
    **dict.fromkeys(("heartbeats.ping_heartbeat", "ping"), "a heartbeat keeps its pings itself"),
    **dict.fromkeys(("destinations.test_destination", "notifications.test_notification"), "keeps nothing"),
    **dict.fromkeys(
        ("people.end_sessions", "sign-in.redeem_verifier", "sign-in.end_sign_in"),
        "needs a provider where people sign in: test_sign_in_lines.py",
    ),
    **dict.fromkeys(
        ("imports.import_schedules", "tenants.import_tenant", "tasks.create_task", "tasks.update_task",
         "tasks.delete_task",
         "tasks.schedule_task",
         "keys.revoke_leaked_key", "failures.dismiss_failure", "events.redrive_events",
         "redrives.stop_redrive"),
        "does by the same verbs what acts above do, or needs more than requests to come about:"
        " tests/integration/api/test_audit.py",
    ),
}  # fmt: skip

#: What people keep: the collection, and what begins the name of its resources in lines.
KEPT: Final = {
    "schedules": "schedule", "destinations": "destination", "calendars": "calendar",
    "calendar_feeds": "calendar feed", "blackouts": "blackout", "kill_switches": "kill switch",
    "heartbeats": "heartbeat", "notifications": "notification", "silences": "silence",
    "backfills": "backfill", "api_keys": "key", "tenants": "tenant", "deletions": "deletion",
}  # fmt: skip
#: What beats move on, or what only says when something was written.
VOLATILE: Final = (
    *("unlogged", "owner", "lease_until", "next_run_at", "checkpoint", "cut_pending", "finishes_at", "owed"),
    *("last_run", "sealed", "updated_at", "writes", "last_used_at", "last_used_from", "incarnation"),
)


def test_every_route_that_may_change_something_stands_here() -> None:
    acts = {act.endpoint for act in ACTS} | WITHOUT_LINE.keys()
    rules = routed(Settings()).url_map.iter_rules()
    changing = {rule.endpoint for rule in rules if set(rule.methods or ()) - {"GET", "HEAD", "OPTIONS"}}
    # Pages call the use cases that the routes of the API call.
    api = {each for each in changing if not each.startswith("pages.")}
    assert acts - changing == set()
    assert api - acts == set(), "give a new route an act, or say where its line stands"


State = dict[str, dict[str, Any]]


def _kept(world: World) -> State:
    """All that is kept, by the names that lines have for it."""
    return {
        f"{kind}/{row['_id']}": {name: value for name, value in row.items() if name not in VOLATILE}
        for collection, kind in KEPT.items()
        for row in world.database[collection].find()
    }


def _lines(world: World) -> dict[str, str]:
    """The resource of each line, by its id."""
    rows = [*world.database["audit"].find()]
    for row in world.database["schedules"].find({"unlogged": {"$exists": True}}):
        rows += row["unlogged"]
    return {row["_id"]: row["resource"] for row in rows}


def _send(world: World, client: Any, act: Act) -> int:
    method, path, body = act.request
    if act.named:
        own = act.named(world) if callable(act.named) else (world.database[act.named].find_one() or {})["_id"]
        path = path.format(own)
    status: int = client.open(path, method=method, json=body).status_code
    return status


def _prepared(world: World, act: Act) -> None:
    process = world.process()
    try:
        for method, path, body in act.before:
            answer = process.client.open(path, method=method, json=body)
            assert answer.status_code < 300, answer.text
    finally:
        process.close()


def _tried(
    bench: Bench, act: Act, call: Call | None = None, way: Way | None = None
) -> tuple[list[Call], list[str]]:
    """The calls that it makes, and what is wrong after one of them broke."""
    with bench.world() as world:
        _prepared(world, act)
        before, known = _kept(world), _lines(world)
        door = Door(call, way) if call else Door()
        with bench.tried(world) as process, bench.doors.put(door):
            run = Run(lambda: _send(world, process.client, act)).start()
            try:
                wait_until(
                    lambda: run.ended.is_set() or (way is Way.ENDED and door.reached.is_set()),
                    "the act",
                    pause=0.002,
                )
            finally:
                door.bury()
                run.join()
        if way is Way.ENDED:
            world.note_end_of_process()
        after = _kept(world)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        told = {resource for own_id, resource in _lines(world).items() if own_id not in known}
        wrong = [f"no line tells of {each}" for each in sorted(changed - told)]
        wrong += [f"a line tells of {each}, which has not changed" for each in sorted(told - changed)]
        if call is None and not (run.succeeded and changed):
            wrong.append(f"it changes nothing: {run}")
    return [each for each in door.calls if each.thread == "run"], wrong


def _places(bench: Bench, act: Act) -> list[tuple[Call, Way]]:
    calls, wrong = _tried(bench, act)
    assert not wrong, wrong
    return [(call, way) for call in calls if not call.kind.endswith("of Redis") for way in Way]


def _wrong(bench: Bench, act: Act, places: list[tuple[Call, Way]]) -> list[str]:
    return [f"{call}, {way}: {each}" for call, way in places for each in _tried(bench, act, call, way)[1]]


@pytest.mark.timeout(600)  # how much there is to do differs from draw to draw
@pytest.mark.parametrize("act", ACTS, ids=lambda each: f"{each}, drawn by {SEED}")
def test_a_drawn_part_of_the_places(bench: Bench, act: Act) -> None:
    wrong = _wrong(bench, act, drawn(_places(bench, act), str(act)))
    assert not wrong, f"with FAULTS_SEED={SEED}: {wrong}"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("act", ACTS, ids=str)
def test_each_place(bench: Bench, act: Act) -> None:
    places = _places(bench, act)
    wrong = _wrong(bench, act, places)
    assert not wrong, f"of {len(places)} places: {wrong}"
