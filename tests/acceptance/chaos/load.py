"""Hundreds of schedules for a window of some seconds, edited meanwhile; all of it drawn from a seed."""

import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from pymongo.database import Database

from tests.acceptance.chaos.owed import SECOND, SENT_HOWEVER_LATE, Era, Lateness, Owed, Script
from tests.acceptance.chaos.people import People
from tests.acceptance.chaos.silences import Silence

T = TypeVar("T")


class Target(Protocol):
    """Where a load is created, and what its audit reads; `Cluster` is one."""

    harmed: set[str]
    exited: list[str]

    @property
    def api_ports(self) -> Mapping[str, int]: ...

    @property
    def api_headers(self) -> Mapping[str, str]: ...

    def callback_url(self, path: str) -> str: ...

    def read(self, question: Callable[[Database[dict[str, Any]]], T]) -> T: ...

    def seen(self) -> list[tuple[float, str, str, str]]: ...

    def note_exits(self) -> None: ...


LEAD_SECONDS = 3
BULK = 500
EDITED = 16
#: Due at one instant: however two workers share them, one has a batch of 50 in flight.
TOGETHER = 130
STEPS = (1, 2, 3)

OK = Script("/ok")
SLOW = Script("/slow/700")
FAILS_TWICE = Script("/fail/2", requests=3)
FAILS_ALWAYS = Script("/fail/99", requests=2, state="error", max_retries=1)
HELD = Script("/slow/1500")
MISBEHAVING = tuple(Script(path, requests=2) for path in ("/hang/1", "/late/1", "/bytes/1", "/close/1"))


#: Late enough that no sound system expires anything, and soon enough that faults make it.
POLICIES = (
    Lateness("none", late_after=4),
    Lateness("latest", late_after=4),
    Lateness(expire_after=6),
)


def _policy(lateness: Lateness) -> dict[str, Any]:
    if lateness == SENT_HOWEVER_LATE:
        return {}
    fields = {"catch_up": lateness.catch_up, "late_after_seconds": lateness.late_after}
    return fields | {"expire_after_seconds": lateness.expire_after}


#: Each takes longer than the second to the next one, by more than clocks may differ; or with its retry, where
#: it fails at first.
OVERLAPPING = {
    "skip": Script("/slow/2200"),
    "queue": Script("/slow/2000"),
    "cancel_earlier": Script("/fail/1", requests=2),
}
QUEUE_LIMIT = 3
#: Half of the rules that may overlap have the first tag, and the other half the second.
TAGS = ("odd", "even")


class Load:
    """`start()`, then break something, then `finish()`: the window is over and each edit is answered."""

    def __init__(
        self, cluster: Target, name: str, seed: int, window: int, *, bursts: int = 1, lead: int = LEAD_SECONDS
    ) -> None:
        self.name = f"{name}-{seed}"
        self.window = window
        self.owed: list[Owed] = []
        self.silences: list[Silence] = []
        """What faults have stopped for a while, by kill switches and blackouts."""
        self._cluster = cluster
        self._draw = random.Random(f"{name} {seed}")
        self._people = People(list(cluster.api_ports.values()), cluster.api_headers)
        self._pool = ThreadPoolExecutor(EDITED + 1)
        self._edits: list[Future[None]] = []
        self._drafts: list[dict[str, Any]] = []
        self._bursts = bursts
        self._lead = lead
        self.begins = datetime.now(UTC)

    @property
    def ends(self) -> datetime:
        return self.begins + self.window * SECOND

    def start(self) -> None:
        self.begins = datetime.now(UTC).replace(microsecond=0) + self._lead * SECOND
        self._draft_rules(60, OK, 1)
        self._draft_rules(60, OK, 2)
        self._draft_rules(10, SLOW, 3)
        self._draft_rules(10, FAILS_TWICE, 4)
        self._draft_rules(5, FAILS_ALWAYS, 4)
        for script in MISBEHAVING:
            self._draft_rules(2, script, 5)
        for lateness in POLICIES:
            self._draft_rules(10, OK, 2, lateness)
        for policy, script in OVERLAPPING.items():
            self._draft_rules(4, script, 1, run_overlap=policy, queue_limit=QUEUE_LIMIT)
        self._draft_instants()
        self._create()
        self._edits = [self._pool.submit(self._edit, number) for number in range(EDITED)]

    def add_later(self) -> "Future[None]":
        """More schedules, created one by one while something is broken."""
        return self._pool.submit(self._create_one_by_one)

    def finish(self) -> None:
        """Waits for the end of the window and for everybody's answers."""
        time.sleep(max(0.0, (self.ends - datetime.now(UTC)).total_seconds()))
        for edit in self._edits:
            edit.result()
        self._pool.shutdown()

    # -- creating ----------------------------------------------------------------------------------------

    def _draft_rules(
        self,
        count: int,
        script: Script,
        step: int,
        lateness: Lateness = SENT_HOWEVER_LATE,
        **policies: Any,
    ) -> None:
        times = max(1, self.window // step)
        rule = f"DTSTART:{self.begins:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;INTERVAL={step};COUNT={times}"
        for number in range(count):
            since = self.begins - self._lead * SECOND
            tags: tuple[str, ...] = () if policies else (TAGS[number % len(TAGS)],)
            owed = self._draft(script, rrule=rule, tags=list(tags), **_policy(lateness), **policies)
            owed.tags = tags
            owed.lateness = lateness
            owed.run_overlap = policies.get("run_overlap", "allow")
            owed.eras.append(Era(since, self.begins, step, times))

    def _draft_instants(self) -> None:
        singles = [self._draw.randrange(self.window * 1000) for _ in range(60)]
        together = [(number + 1) * self.window * 1000 // (self._bursts + 1) for number in range(self._bursts)]
        for offset in singles:
            self._draft_instant(OK, offset)
        for offset in together:
            for _ in range(TOGETHER):
                self._draft_instant(HELD, offset)

    def _draft_instant(self, script: Script, offset_ms: int) -> None:
        instant = self.begins + timedelta(milliseconds=offset_ms)
        self._draft(script, run_at=instant.isoformat()).instants = (instant,)

    def _draft(self, script: Script, **timing: Any) -> Owed:
        owed = Owed(f"{self.name}-{len(self.owed)}", script)
        self.owed.append(owed)
        self._drafts.append({"id": owed.schedule_id, **self._fields(script), **timing})
        return owed

    def _fields(self, script: Script) -> dict[str, Any]:
        return {
            "name": self.name,
            "callback_url": self._cluster.callback_url(script.path),
            "max_retries": script.max_retries,
            "retry_backoff_seconds": 1,
            "retry_backoff_max_seconds": 2,
            "timeout_seconds": 3,
        }

    def _create(self) -> None:
        for first in range(0, len(self._drafts), BULK):
            answer = self._people.post("/schedules/bulk", {"schedules": self._drafts[first : first + BULK]})
            assert answer.ok, answer.text
            assert answer.json()["refused"] == 0, answer.text
        # A machine with too much to do may take longer for that than until the window begins.
        ids = [owed.schedule_id for owed in self.owed]
        query = {"_id": {"$in": ids}}
        rows = self._cluster.read(lambda database: list(database["schedules"].find(query, {"created_at": 1})))
        created = {row["_id"]: row["created_at"] for row in rows}
        for owed in self.owed:
            since = created[owed.schedule_id]
            owed.eras = [replace(era, since=max(era.since, since)) for era in owed.eras]

    def _create_one_by_one(self) -> None:
        draw = random.Random(f"{self.name} later")
        for _ in range(20):
            instant = (datetime.now(UTC) + timedelta(seconds=draw.uniform(0.5, 6))).replace(
                microsecond=0
            ) + SECOND
            rule = f"DTSTART:{instant:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;COUNT=5"
            owed = self._made(rule)
            owed.eras.append(Era(self._row(owed)["created_at"], instant, 1, 5))
            self.owed.append(owed)
            time.sleep(draw.uniform(0.05, 0.3))

    def _made(self, rule: str) -> Owed:
        """A schedule whose id is theirs, so that a creation asked for again is the same one."""
        answer = self._people.post("/schedules", self._fields(OK) | {"rrule": rule})
        assert answer.status_code == 201, answer.text
        return Owed(answer.json()["id"], OK)

    # -- editing -----------------------------------------------------------------------------------------

    def _edit(self, number: int) -> None:
        """One schedule is changed, paused and resumed at random moments, and paused or deleted at the end."""
        draw = random.Random(f"{self.name} edited {number}")
        longest = min(5.0, self.window / 8)
        held = STEPS[0]
        owed = self._made(self._rule(held))
        self._note(owed, held, "created_at")
        path, version = f"/schedules/{owed.schedule_id}", 1
        while datetime.now(UTC) < self.ends - 2 * SECOND:
            time.sleep(draw.uniform(0.1, longest))
            step = owed.eras[-1].step
            if step == 0:
                step = held
                self._change("POST", f"{path}/resume", None, version)
            elif draw.random() < 0.3:
                held, step = step, 0
                self._change("POST", f"{path}/pause", None, version)
            else:
                step = draw.choice([other for other in STEPS if other != step])
                self._change("PUT", path, {"rrule": self._rule(step)}, version)
            version += 1
            self._note(owed, step, "revised_at")
        if number % 2:
            self._change("DELETE", path, None, version, gone=404)
            self._note(owed, 0, "deleted_at")
            owed.deleted_at = owed.eras[-1].since
        elif owed.eras[-1].step:
            self._change("POST", f"{path}/pause", None, version)
            self._note(owed, 0, "revised_at")
        self.owed.append(owed)

    def _change(self, method: str, path: str, body: Any, version: int, gone: int = 412) -> None:
        """`If-Match` makes asking again harmless: what our first try has done is a 412 (or a 404) then."""
        answer = self._people.ask(method, path, body, **{"If-Match": f'"{version}"'})
        assert answer.ok or answer.status_code in (412, gone), f"{method} {path}: {answer.text}"
        if answer.status_code == 412:
            assert f"at version {version + 1}," in answer.text, f"nobody else edits it: {answer.text}"

    def _rule(self, step: int) -> str:
        return f"DTSTART:{self.begins:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;INTERVAL={step}"

    def _note(self, owed: Owed, step: int, since: str) -> None:
        answered_at, row = time.time(), self._row(owed)
        owed.eras.append(Era(row[since], self.begins, step, None, row["revision"], answered_at))

    def _row(self, owed: Owed) -> dict[str, Any]:
        row = self._cluster.read(lambda database: database["schedules"].find_one({"_id": owed.schedule_id}))
        assert row is not None, f"{owed.schedule_id} was created and is not there"
        return row
