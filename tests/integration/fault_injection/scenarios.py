"""What is tried: each duty, and each verb of people, with what it finds and what has to come of it.

The clock stands at noon. The schedule has occurrences 24, 14 and 4 seconds before noon and 6, 16 and 26
seconds after it, unless a scenario says otherwise: none of the latter is dispatched yet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from scheduler_app.domain.ids import TENANT, event_id
from scheduler_app.domain.lateness import CatchUp
from tests.integration.fault_injection.world import (
    LONG_AGO,
    NO_WORKER,
    SCHEDULE,
    Expected,
    Process,
    World,
    at,
    occurrences,
    rule,
)

KEY: Final = {"Idempotency-Key": "the-same-key"}
DUE: Final = (-24, -14, -4)
LATER: Final = (6, 16, 26)
ALL: Final = (*DUE, *LATER)


def occurrence(seconds: int, *, of: str = SCHEDULE, revision: int = 1) -> str:
    """The id of its event."""
    return event_id(of, revision, at(seconds))


def all_sent(world: World) -> Expected:
    return Expected(occurrences(*ALL))


def none_sent(world: World) -> Expected:
    return Expected([])


def nothing(world: World) -> list[str]:
    return []


@dataclass(frozen=True)
class Scenario:
    """`run` returns the status of the answer where it is a request."""

    name: str
    prepare: Callable[[World], None]
    run: Callable[[Process, World], int | None]
    expected: Callable[[World], Expected] = all_sent
    threads: frozenset[str] = frozenset({"run"})
    """The calls of these threads are the places of this scenario."""
    again: frozenset[int] = frozenset({200, 201, 202, 204})
    """The answers that say to a request which is repeated that it is done."""
    intended: Callable[[World], list[str]] = nothing
    """What is wrong beside the events, after everything."""
    before_settling: Callable[[World, bool], list[str]] = lambda world, is_done: []
    """What is wrong before recovery begins; the second argument says whether the request is done."""
    otherwise: Callable[[World], Expected] | None = None
    """What has to come where the request is not done; None for a duty, which is always done."""

    def __str__(self) -> str:
        return self.name


# -- what they find ------------------------------------------------------------------------------------------


def scheduled(world: World) -> None:
    world.schedule()


def missed(world: World) -> None:
    """Occurrences more than 72 seconds late are not sent any more; there are eight of them."""
    world.schedule(made=-200, first=-144, count=18, catch_up=CatchUp.NONE, late_after_seconds=72.0)


def much_is_due(world: World) -> None:
    """Four are due, and none of them is an event: an edit leaves them to beats."""
    world.schedule(first=-34, count=7)


def edited_while_much_was_due(world: World) -> None:
    much_is_due(world)
    assert _call(world, "put", f"/api/schedules/{SCHEDULE}", json=body(3)(world)) == 200
    assert world.database["schedules"].count_documents({"owed": {"$exists": True}}) == 1


def half_expanded(world: World) -> None:
    """There are events up to ten seconds after noon; three of them are due."""
    world.schedule()
    world.expand(at(10))


def dispatched(world: World) -> None:
    """The message of the three that are due lies in the queue."""
    half_expanded(world)
    world.dispatch()


def dispatched_to_a_destination(world: World) -> None:
    world.has_time_of_flow_control()
    process = world.process()
    body = {"url": world.url, "rate_per_second": 1000, "burst": 1000, "concurrency": 50}
    assert process.client.put("/api/destinations/erp", json=body).status_code in (200, 201)
    made = {"id": SCHEDULE, "name": "limited", "destination": "erp", "rrule": rule(DUE[0], 6)}
    world.time.put(at(-60))
    assert process.client.post("/api/schedules", json=made).status_code == 201
    process.close()
    world.time.put(at(0))
    world.dispatch()


def dispatched_suspects(world: World) -> None:
    """The first of them has lost two workers before."""
    half_expanded(world)
    world.set_event(occurrence(-24), {"$set": {"lost_leases": 2}})
    world.dispatch()


def crashed(world: World) -> None:
    """One event's worker is lost, one page's dispatcher, and one message."""
    half_expanded(world)
    lost = {"state": "running", "owner": NO_WORKER, "lease_until": LONG_AGO}
    world.set_event(occurrence(-24), {"$set": lost})
    sent = {"state": "worker_queue", "dispatched_at": at(-60), "dispatches": 1}
    world.set_event(occurrence(-14), {"$set": sent | {"dispatcher": "gone"}})
    world.database["outbox"].insert_one({"_id": "gone", "v": 1, "ids": [occurrence(-14)], "until": LONG_AGO})
    world.set_event(occurrence(-4), {"$set": sent | {"due_at": at(-20)}})


def deleted_long_ago(world: World) -> None:
    scheduled(world)
    world.schedule("old", first=100)
    assert world.store.schedules.delete("old", at(0) - timedelta(days=400))
    row = {"_id": "old", "v": 1, "tenant": TENANT, "deleted_at": LONG_AGO}
    world.database["calendars"].insert_one(row | {"_id": "default/old", "name": "old"})


def paused(world: World) -> None:
    half_expanded(world)
    world.time.put(at(-20))
    assert _call(world, "post", f"/api/schedules/{SCHEDULE}/pause") == 200
    world.time.put(at(0))


def failed(world: World) -> None:
    """The first event is a dead letter."""
    half_expanded(world)
    dead = {"state": "error", "attempt": 1, "archived_at": at(-10)}
    world.set_event(occurrence(-24), {"$set": dead, "$unset": {"due_at": ""}})


def stopped(world: World) -> None:
    """A kill switch holds what is due."""
    half_expanded(world)
    assert _call(world, "put", KILL_SWITCH, json={"all": True}) == 200
    world.dispatch()
    assert world.database["events"].count_documents({"held": {"$exists": True}}) >= len(DUE)


def backfilling(world: World) -> None:
    backfillable(world)
    assert _call(world, "post", BACKFILL, json=PAST) == 202


def backfillable(world: World) -> None:
    """The schedule's rule begins before the schedule was made: these occurrences it never had."""
    world.schedule(first=-94, count=13)
    world.expand(at(40))


def paused_for_a_while(world: World) -> None:
    half_expanded(world)
    world.time.put(at(-20))
    until = at(-2).isoformat()
    assert _call(world, "post", f"/api/schedules/{SCHEDULE}/pause", json={"until": until}) == 200
    world.time.put(at(0))


def switched_off(world: World) -> None:
    stopped(world)
    assert _call(world, "delete", f"{KILL_SWITCH}?all=true") == 200


def _call(world: World, method: str, path: str, **options: Any) -> int:
    process = world.process()
    try:
        return process.client.open(path, method=method.upper(), **options).status_code
    finally:
        process.close()


# -- what they do --------------------------------------------------------------------------------------------

KILL_SWITCH: Final = "/api/kill-switch"
BACKFILL: Final = f"/api/schedules/{SCHEDULE}/backfill"
PAST: Final = {"from": at(-100).isoformat(), "to": at(-62).isoformat(), "rate_per_second": 10}


def ticks(*names: str) -> Callable[[Process, World], None]:
    def run(process: Process, world: World) -> None:
        process.tick(*names)

    return run


def works(process: Process, world: World) -> None:
    """A worker delivers what lies in the queue, and ends in good order."""
    process.deliver_messages()
    process.end_worker()


def asks(method: str, path: str, **options: Any) -> Callable[[Process, World], int]:
    def run(process: Process, world: World) -> int:
        given = {name: each(world) if callable(each) else each for name, each in options.items()}
        return process.client.open(path, method=method, **given).status_code

    return run


def body(first: int, *, every: int = 10) -> Callable[[World], dict[str, Any]]:
    return lambda world: {"name": "n", "callback_url": world.url, "rrule": rule(first, 3, every=every)}


def a_message(world: World) -> dict[str, Any]:
    return {"callback_url": world.url, "payload": {}, "scheduled_at": at(0).isoformat()}


# -- what has to come of it ----------------------------------------------------------------------------------


def of_the_new_one(world: World) -> Expected:
    made = [row["_id"] for row in world.database["schedules"].find({"_id": {"$ne": SCHEDULE}})]
    return Expected([each for one in made for each in occurrences(3, 13, 23, of=one)])


def one_was_made(world: World) -> list[str]:
    count = world.database["schedules"].count_documents({})
    return [] if count == 1 else [f"{count} schedules were made"]


def edited_once(version: int, **fields: Any) -> Callable[[World], list[str]]:
    def look(world: World) -> list[str]:
        row = world.database["schedules"].find_one({"_id": SCHEDULE}) or {}
        found = {"version": row.get("version")} | {name: row.get(name) for name in fields}
        return [] if found == {"version": version} | fields else [f"the schedule is at {found}"]

    return look


def old_ones_are_gone(world: World) -> list[str]:
    left = [row["_id"] for name in ("schedules", "calendars") for row in world.database[name].find()]
    return [] if left == [SCHEDULE] else [f"left are {left}"]


def nothing_is_sent_while_it_is_on(world: World, is_done: bool) -> list[str]:
    """It is turned off then."""
    if not world.database["kill_switches"].count_documents({}):
        return ["the kill switch is not on"] if is_done else []
    process = world.process()
    process.tick()
    process.deliver_messages()
    process.close()
    wrong = [f"{call.key} was sent by a stopped system" for call in world.calls]
    assert _call(world, "delete", f"{KILL_SWITCH}?all=true") == 200
    return wrong


def switch_is_off(world: World) -> list[str]:
    return ["the kill switch is on"] if world.database["kill_switches"].count_documents({}) else []


def eight_were_missed(world: World) -> list[str]:
    """By events of their own, or in a record."""
    expired = list(world.database["events"].find({"state": "expired"}))
    count = sum(row.get("missed", {}).get("count", 1) for row in expired)
    return [] if count == 8 else [f"{count} are told of as missed"]


def made_up_for(world: World) -> Expected:
    own = occurrences(*range(-54, 27, 10))
    return Expected([*own, *occurrences(*range(-94, -63, 10), kind="backfill")])


WORKER: Final = frozenset({"handover", "flow-control", "withholding", "courier", "leases", "followers"})
RECORDS: Final = frozenset({"recorder", "reports"})

DUTIES: Final = [
    Scenario("expand", scheduled, ticks("expand")),
    Scenario(
        "expand what was missed",
        missed,
        ticks("expand"),
        lambda world: Expected(occurrences(*range(-64, 27, 10))),
        intended=eight_were_missed,
    ),
    Scenario(
        "expand what an edit left",
        edited_while_much_was_due,
        ticks("owed"),
        lambda world: Expected(occurrences(-34, *DUE, 3, 13, 23)),
    ),
    Scenario("dispatch", half_expanded, ticks("dispatch")),
    Scenario("claim", dispatched, works),
    Scenario("send", dispatched, works, threads=WORKER),
    Scenario("send to a destination", dispatched_to_a_destination, works, threads=WORKER),
    Scenario("send a suspect", dispatched_suspects, works, threads=WORKER),
    Scenario("record", dispatched, works, threads=RECORDS),
    Scenario("recover", crashed, ticks("recover")),
    Scenario("prune", deleted_long_ago, ticks("prune", "prune_calendars"), intended=old_ones_are_gone),
    Scenario("backfill, by a beat", backfilling, ticks("backfill"), made_up_for),
    Scenario(
        "resume, by a beat",
        paused_for_a_while,
        ticks("resume"),
        lambda world: Expected(occurrences(-24, *LATER)),
    ),
    Scenario("release", switched_off, ticks("release")),
]

VERBS: Final = [
    Scenario(
        "create",
        lambda world: None,
        asks("POST", "/api/schedules", json=body(3), headers=KEY),
        of_the_new_one,
        intended=one_was_made,
        otherwise=none_sent,
    ),
    Scenario(
        "edit",
        half_expanded,
        asks("PUT", f"/api/schedules/{SCHEDULE}", json=body(3)),
        lambda world: Expected(occurrences(*DUE, 3, 13, 23)),
        intended=edited_once(2, name="n"),
        otherwise=all_sent,
    ),
    Scenario(
        "edit before it is expanded",
        scheduled,
        asks("PUT", f"/api/schedules/{SCHEDULE}", json=body(3)),
        lambda world: Expected(occurrences(*DUE, 3, 13, 23)),
        intended=edited_once(2, name="n"),
        otherwise=all_sent,
    ),
    Scenario(
        "edit that leaves much to beats",
        much_is_due,
        asks("PUT", f"/api/schedules/{SCHEDULE}", json=body(3)),
        lambda world: Expected(occurrences(-34, *DUE, 3, 13, 23)),
        intended=edited_once(2, name="n"),
        otherwise=lambda world: Expected(occurrences(-34, *ALL)),
    ),
    Scenario(
        "pause",
        half_expanded,
        asks("POST", f"/api/schedules/{SCHEDULE}/pause", headers=KEY),
        lambda world: Expected(occurrences(*DUE)),
        intended=edited_once(2, state="paused"),
        otherwise=all_sent,
    ),
    Scenario(
        "resume",
        paused,
        asks("POST", f"/api/schedules/{SCHEDULE}/resume", headers=KEY),
        lambda world: Expected(occurrences(-24, *LATER)),
        intended=edited_once(3),
        otherwise=lambda world: Expected(occurrences(-24)),
    ),
    Scenario(
        "trigger",
        half_expanded,
        asks("POST", f"/api/schedules/{SCHEDULE}/trigger", headers=KEY),
        lambda world: Expected([*occurrences(*ALL), *occurrences(0, kind="manual")]),
        otherwise=all_sent,
    ),
    Scenario(
        "schedule a message",
        lambda world: None,
        asks("POST", "/api/messages", json=a_message, headers=KEY),
        lambda world: Expected([("", "message", at(0))]),
        otherwise=none_sent,
    ),
    Scenario(
        "cancel",
        half_expanded,
        asks("POST", f"/api/events/{occurrence(-4)}/cancel", headers=KEY),
        lambda world: Expected(occurrences(-24, -14, *LATER)),
        again=frozenset({200, 409}),
        otherwise=all_sent,
    ),
    Scenario(
        "redrive",
        failed,
        asks("POST", f"/api/events/{occurrence(-24)}/redrive", headers=KEY),
        again=frozenset({200, 202, 409}),
        otherwise=lambda world: Expected(occurrences(-14, -4, *LATER)),
    ),
    Scenario(
        "delete",
        half_expanded,
        asks("DELETE", f"/api/schedules/{SCHEDULE}"),
        lambda world: Expected([]),
        again=frozenset({200, 204, 404}),
        intended=edited_once(2, state="deleted"),
        otherwise=all_sent,
    ),
    Scenario(
        "backfill",
        backfillable,
        asks("POST", BACKFILL, json=PAST, headers=KEY),
        made_up_for,
        otherwise=lambda world: Expected(occurrences(*range(-54, 27, 10))),
    ),
    Scenario(
        "kill switch on",
        half_expanded,
        asks("PUT", KILL_SWITCH, json={"all": True}),
        before_settling=nothing_is_sent_while_it_is_on,
        otherwise=all_sent,
    ),
    Scenario(
        "kill switch off",
        stopped,
        asks("DELETE", f"{KILL_SWITCH}?all=true"),
        again=frozenset({200, 404}),
        intended=switch_is_off,
    ),
]
