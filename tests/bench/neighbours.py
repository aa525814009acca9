"""Victims at a steady rate beside a bad neighbour: how late they are, before it comes and while it is there.

One run for each case, an undisturbed phase first: its figures are ratios of one run. The neighbour's lag is
not judged, and what hangs in the end is not waited for; it must only be there still, in some state.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from scheduler_app.clock import clock
from scheduler_app.domain.event import Event
from scheduler_app.domain.states import LIVING
from tests.bench.arrivals import Arrival, watched
from tests.bench.ground import CORES, Ground, ground, sleep_until, wait_for
from tests.bench.neighbour import Neighbour
from tests.bench.neighbours_cases import neighbours
from tests.bench.planted import events_at, insert, make_schedules, soon
from tests.bench.receiver import Receiver, receiver
from tests.bench.report import Report, Row

#: What the processes use when nothing is due is measured in it, before victims are dispatched.
IDLE_SECONDS = 3
LEAD_SECONDS = 6 + IDLE_SECONDS
#: How long victims that are late are waited for, and then the records of those that came.
GRACE_SECONDS = 60
RECORD_SECONDS = 10
#: What hangs is measured in it, when no victim is due any more.
QUIET_SECONDS = 5
#: A victim's p99 may be that many times what it was undisturbed, or so many ms, whichever is more.
RATIO = 2
ALWAYS_ALLOWED_MS = 50
SAMPLES = 60
VICTIM = "victim"


def arguments(parser: argparse.ArgumentParser) -> None:
    names = list(neighbours())
    parser.add_argument(
        "--case", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--seconds", type=int, default=60, help="the disturbed phase; 360 for the full run")
    parser.add_argument("--undisturbed", type=int, default=20, metavar="SECONDS", help="the phase before")
    parser.add_argument("--rate", type=int, default=100, help="victims a second")
    parser.add_argument("--workers", type=int, default=CORES)


def run(options: argparse.Namespace) -> Report:
    rows = [_case(name, neighbours()[name], options) for name in options.case]
    return Report(rows, summary(options.case, rows), all(map(harmless, rows)), options.case)


def _case(name: str, neighbour: Neighbour, options: argparse.Namespace) -> Row:
    """Starts everything for one case, and stops it without waiting for what hangs."""
    with (
        receiver(neighbour.origins) as stranger,
        ground(workers=options.workers, beats=1, apis=neighbour.apis) as made,
    ):
        try:
            return Run(made, neighbour, stranger, options).row()
        finally:
            neighbour.stop()


class Run:
    """One case: what is planted, and what is seen of it."""

    def __init__(
        self, made: Ground, neighbour: Neighbour, stranger: Receiver, options: argparse.Namespace
    ) -> None:
        self._made, self._neighbour, self._stranger = made, neighbour, stranger
        self._rate, self._undisturbed, self._seconds = options.rate, options.undisturbed, options.seconds
        self._arrivals: list[Arrival] = []

    def row(self) -> Row:
        made, neighbour = self._made, self._neighbour
        begin, victims, planted = self._plant()
        idle = self._cpu_per_s(IDLE_SECONDS)
        first = begin - timedelta(seconds=self._undisturbed)
        sleep_until(first)
        neighbour.watch()
        made.costs.start()
        sleep_until(begin)
        cpu = {"undisturbed": self._since_start(self._undisturbed)}
        made.costs.start()
        neighbour.disturb()
        judged_from = max(clock.now(), begin + timedelta(seconds=neighbour.gap_seconds))
        memory = self._memory(begin + timedelta(seconds=neighbour.gap_seconds + self._seconds))
        cpu["disturbed"] = self._since_start((clock.now() - begin).total_seconds())
        requests = self._stranger.arrivals()
        until = self._wait_for(victims)
        waiting = self._waiting(idle)
        neighbour.stop()
        made.stack.close()
        states, attempts = self._states()
        return {
            **judged_by_phase(victims, self._arrivals, begin, judged_from, until),
            "states": states,
            "planted": {"victims": len(victims), "others": planted},
            "neighbour": {
                "requests": len(requests),
                # Two of one key are an attempt and its retry, or a repeat.
                "keys": len({arrival.key for arrival in requests}),
                "recorded": attempts,
                **neighbour.figures(begin),
            },
            "cpu_percent": cpu,
            "waiting": waiting,
            "memory_mib": memory,
        }

    def _plant(self) -> tuple[datetime, list[Event], int]:
        """The instant at which the neighbour begins, the victims of both phases, and how many others."""
        made, count = self._made, self._rate * (self._undisturbed + self._seconds)
        schedules = make_schedules(made, prefix=VICTIM)
        planted = self._neighbour.events(self._seconds)
        first = soon(LEAD_SECONDS, count + planted)
        begin = first + timedelta(seconds=self._undisturbed)
        gap = timedelta(seconds=self._neighbour.gap_seconds)

        def due(number: int) -> datetime:
            at = first + timedelta(milliseconds=number * 1000 // self._rate)
            return at if at < begin else at + gap

        victims = events_at(schedules, count, due)
        insert(made, victims)
        self._neighbour.prepare(made, self._stranger, begin, self._seconds)
        return begin, victims, planted

    def _since_start(self, seconds: float) -> Row:
        """CPU by kind of process since the costs' start, as a percentage of one core."""
        by_kind: Row = {}
        for name, used in self._made.costs.since_start(1)["cpu_s"].items():
            kind = name.rstrip("0123456789")
            by_kind[kind] = by_kind.get(kind, 0) + used
        return {kind: round(100 * used / seconds, 2) for kind, used in by_kind.items()}

    def _cpu_per_s(self, seconds: float) -> Row:
        self._made.costs.start()
        time.sleep(seconds)
        return self._since_start(seconds)

    def _memory(self, until: datetime) -> Row:
        """Of workers, beat and API until then: at the start, in the middle, at the end, and how much more the
        last third ends with than it began."""
        began, samples = clock.now(), [self._sample()]
        pause = (until - began).total_seconds() / SAMPLES
        for number in range(1, SAMPLES + 1):
            sleep_until(began + timedelta(seconds=number * pause))
            samples.append(self._sample())
        return {
            name: {
                "start": samples[0][name],
                "middle": samples[len(samples) // 2][name],
                "end": samples[-1][name],
                "growth": round(_last_third([sample[name] for sample in samples])),
            }
            for name in samples[0]
        }

    def _sample(self) -> dict[str, int]:
        servers = ("mongod", "redis", "sink")
        return {name: mib for name, mib in self._made.costs.memory().items() if name not in servers}

    def _wait_for(self, victims: Sequence[Event]) -> datetime:
        """Until all have come and are recorded, or the time for it is over; returns when it stopped looking
        for arrivals."""
        try:
            wait_for(lambda: self._all_came(len(victims)), GRACE_SECONDS, "the victims")
            until = clock.now()
            wait_for(lambda: self._completed() == len(victims), RECORD_SECONDS, "the victims' records")
        except TimeoutError:  # they are told as missing, or as not completed
            return clock.now()
        return until

    def _all_came(self, count: int) -> bool:
        self._arrivals += self._made.arrivals()
        return len({arrival.key for arrival in self._arrivals}) >= count

    def _completed(self) -> int:
        victims = {"schedule_id": {"$regex": f"^{VICTIM}"}, "state": "completed"}
        return self._made.store.mongo.collection("events").count_documents(victims)

    def _waiting(self, idle: Mapping[str, float]) -> Row:
        """What the requests that hang cost when nothing else is due: of one core, and for each. With timeouts
        shorter than the run, that is their ends, their retries and what was postponed too."""
        held = self._stranger.held()
        if not held:
            return {"held": 0, "worker_us_per_s_each": 0.0}
        used = self._cpu_per_s(QUIET_SECONDS)
        more = {kind: used[kind] - idle[kind] for kind in ("worker", "beat", "mongod")}
        return {
            "held": held,
            "cpu_percent": {kind: round(percent, 2) for kind, percent in more.items()},
            "worker_us_per_s_each": round(max(0.0, more["worker"]) * 1e4 / held, 1),
        }

    def _states(self) -> tuple[Row, int]:
        """How many events of the victims and of the others are in which state, and the others' attempts."""
        whose = {"$regexMatch": {"input": "$schedule_id", "regex": f"^{VICTIM}"}}
        counted = {"count": {"$sum": 1}, "attempts": {"$sum": {"$size": "$attempts"}}}
        groups = self._made.store.mongo.collection("events").aggregate(
            [{"$group": {"_id": {"victim": whose, "state": "$state"}, **counted}}]
        )
        states: Row = {"victims": {}, "others": {}}
        attempts = 0
        for group in groups:
            victim = group["_id"]["victim"]
            states["victims" if victim else "others"][group["_id"]["state"]] = group["count"]
            attempts += 0 if victim else group["attempts"]
        return states, attempts


def judged_by_phase(
    victims: Sequence[Event],
    arrivals: Sequence[Arrival],
    begin: datetime,
    judged_from: datetime,
    until: datetime,
) -> Row:
    """The victims of both phases. Those that fell due while the neighbour was still being let loose must
    arrive like the others; how late they are is not judged."""
    due = {event.id: event.due_at for event in victims}
    first = min(due.values())
    undisturbed, unjudged, disturbed = (
        watched(
            {key: at.timestamp() for key, at in due.items() if low <= at < high}, arrivals, until.timestamp()
        )
        for low, high in ((first, begin), (begin, judged_from), (judged_from, until))
    )
    p99, allowed = disturbed["lag_ms"]["p99"], max(RATIO * undisturbed["lag_ms"]["p99"], ALWAYS_ALLOWED_MS)
    missing = unjudged["missing"] + disturbed["missing"]
    return {
        "undisturbed": undisturbed,
        "disturbed": disturbed,
        "unjudged": unjudged,
        "p99_ratio": round(p99 / undisturbed["lag_ms"]["p99"], 2),
        "of_allowed": round(p99 / allowed, 2),
        "met": p99 <= allowed and not missing,
    }


def harmless(row: Row) -> bool:
    """Whether no victim came twice or early, and no event is lost: each that was planted is in a state, and
    a victim that has not come is not finished."""
    phases = [row[phase] for phase in ("undisturbed", "unjudged", "disturbed")]
    states, planted = row["states"], row["planted"]
    living = sum(count for state, count in states["victims"].items() if state in LIVING)
    return (
        not any(phase["twice"] or phase["early"] for phase in phases)
        and sum(states["victims"].values()) == planted["victims"]
        and sum(states["others"].values()) >= planted["others"]
        and living >= sum(phase["missing"] for phase in phases)
    )


def summary(names: Sequence[str], rows: Sequence[Row]) -> Row:
    """The worst of all cases, and each by its name."""
    memory = [figures for row in rows for figures in row["memory_mib"].values()]
    each = [row["waiting"]["worker_us_per_s_each"] for row in rows]
    return {
        "unmet": [name for name, row in zip(names, rows, strict=True) if not row["met"]],
        "of_allowed_max": max(row["of_allowed"] for row in rows),
        "missing": sum(row["disturbed"]["missing"] + row["unjudged"]["missing"] for row in rows),
        "growth_mib_max": max(figures["growth"] for figures in memory),
        "waiting_us_per_s_each_max": max(each),
        "cases": dict(zip(names, rows, strict=True)),
    }


def _last_third(samples: Sequence[float]) -> float:
    """Medians at both ends, of a few samples each: one that met a garbage collection tells nothing."""
    third = samples[len(samples) * 2 // 3 :]
    few = max(1, len(third) // 4)
    return statistics.median(third[-few:]) - statistics.median(third[:few])
