"""Other schedulers beside this one, by turns: a burst, 100 a second, 20 a second, and nothing to do.

Each pair is one run of ours and one of the peer's, with the same receiver, on the same machine, within
minutes; a figure is the median of a side's runs, a ratio the median of the pairs' (ours to theirs), with
the least and the greatest. All processes of both sides run all the time. CPU is that of a side's servers,
schedulers and workers, while the work is planned and from some seconds before it is due until it is done;
the programs that plan are not counted. Peers are installed into a folder of the benchmark's own, by name.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from scheduler_app.clock import clock
from scheduler_app.domain.schedule import Schedule
from scheduler_app.embedded import Redis
from tests.bench.arrivals import Arrival, judged
from tests.bench.costs import cpu_seconds, family
from tests.bench.ground import CORES, Ground, ground, wait_for
from tests.bench.planted import events_at, insert, make_schedules, soon, whole_ms
from tests.bench.report import Report, Row, compared

HERE = Path(__file__).parent / "peer_programs"
INSTALLED = Path(__file__).parents[2] / ".venv" / "peers"
PYTHON_PACKAGES = (
    "celery",
    "redis",
    "requests",
    "packaging",
    "celery-redbeat",
    "django-celery-beat",
    "apscheduler",
)
NODE_PACKAGES = ("bullmq", "ioredis")


@dataclass(frozen=True)
class Peer:
    """How one is started, and what it does not guarantee that is guaranteed here."""

    title: str
    processes: Sequence[Sequence[str]]
    lacks: str
    ready: bool = False
    """Whether its processes say when they are ready."""
    node: bool = False
    django: bool = False


def _celery(*arguments: str) -> tuple[str, ...]:
    return ("-m", "celery", "-A", "celery_app", *arguments, "-l", "ERROR")


WORKERS = tuple(_celery("worker", "-P", "threads", "-c", "50", "-n", f"w{number}") for number in range(CORES))
PEERS = {
    "celery_eta": Peer(
        "Celery with `eta`",
        WORKERS,
        "a record of a call, and its history; a call is lost with what Redis wrote in its last second; an eta"
        " beyond the visibility timeout runs again; nothing is listed, edited or cancelled by its time",
    ),
    "bullmq": Peer(
        "BullMQ",
        [("bullmq.cjs", "work")],
        "a record once a job is removed; a job is lost with what Redis wrote in its last second; there are no"
        " calendars and no policies for what was missed",
        ready=True,
        node=True,
    ),
    "apscheduler": Peer(
        "APScheduler",
        [("apscheduler_process.py",)],
        "more than one process, or that another one takes over; retries and a history; a call is lost if the"
        " process ends between taking and making it",
        ready=True,
    ),
    "redbeat": Peer(
        "RedBeat",
        [*WORKERS, _celery("beat", "-S", "redbeat.RedBeatScheduler", "--pidfile=")],
        "more than one beat at a time; a history; less than whole seconds; what was over when it was stored"
        " is never sent",
    ),
    "django_celery_beat": Peer(
        "django-celery-beat",
        [*WORKERS, _celery("beat", "-S", "django_celery_beat.schedulers:DatabaseScheduler", "--pidfile=")],
        "that two beats do not send twice; a history of calls; that a change is known at once",
        django=True,
    ),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), metavar="PEER")
    parser.add_argument(
        "--situations", nargs="+", choices=SITUATIONS, default=list(SITUATIONS), metavar="SITUATION"
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument(
        "--events", type=int, default=2_000, help="of a burst, and of those that wait when idle"
    )
    parser.add_argument("--seconds", type=int, default=10, help="of each rate, and idle")


#: Calls a second.
RATES = {"100/s": 100, "20/s": 20}
SITUATIONS = ("burst", *RATES, "idle")
#: Until the first call is due: a program that plans takes some seconds to start, and a second more for so
#: many calls. RedBeat never sends what was over when it was stored.
LEAD_SECONDS, PLANNED_A_SECOND = 15, 250
#: Beats send their messages at most so long before the instant.
COUNTED_SECONDS = 6
WAITS = timedelta(hours=2)
#: Of which no ratio is made.
COUNTS = ("missing", "twice", "early", "planned_late")
GRACE_SECONDS = 60


def run(options: argparse.Namespace) -> Report:
    _install()
    rows: list[Row] = []
    heads: list[str] = []
    summary: Row = {}
    with ground(workers=CORES, beats=1) as made:
        ours = _Ours(made)
        for name in options.only:
            with _started(name, made) as theirs:
                of_peer: Row = {"not_guaranteed": PEERS[name].lacks}
                for situation in options.situations:
                    pairs = [
                        tuple(_one(side, situation, options) for side in (ours, theirs))
                        for _ in range(options.pairs)
                    ]
                    of_peer[situation] = compared(pairs, but=COUNTS)
                    rows.append(of_peer[situation])
                    heads.append(f"{name} {situation}")
                summary[name] = of_peer
    good = all(row["ours"].get("missing", 0) == row["ours"].get("twice", 0) == 0 for row in rows)
    return Report(rows, summary, good, heads)


class _Side:
    """Who makes the calls: ours, or a peer."""

    processes: dict[str, int]

    def __init__(self, made: Ground) -> None:
        self.made = made

    def plan(self, instants: Sequence[datetime]) -> None:
        raise NotImplementedError

    def done(self) -> bool:
        """Whether all is written, too, once all calls have arrived."""
        return True

    def cpu(self) -> float:
        return sum(map(cpu_seconds, (each for pid in self.processes.values() for each in family(pid))))


class _Ours(_Side):
    def __init__(self, made: Ground) -> None:
        super().__init__(made)
        self.processes = {name: pid for name, pid in made.processes.items() if name != "sink"}
        self._rounds = 0

    def plan(self, instants: Sequence[datetime]) -> None:
        self._rounds += 1
        schedules: list[Schedule] = make_schedules(self.made, prefix=f"round{self._rounds}-")
        insert(self.made, events_at(schedules, len(instants), lambda number: instants[number]))

    def done(self) -> bool:
        return self.made.late(clock.now()) == 0


class _Theirs(_Side):
    def __init__(
        self, made: Ground, name: str, processes: dict[str, int], environment: dict[str, str]
    ) -> None:
        super().__init__(made)
        self.processes = processes
        self._name, self._environment, self._planned = name, environment, 0

    def plan(self, instants: Sequence[datetime]) -> None:
        first, self._planned = self._planned, self._planned + len(instants)
        lines = "\n".join(
            f"{self._name}{first + number} {at.timestamp():.3f}" for number, at in enumerate(instants)
        )
        program = ("bullmq.cjs", "plan") if PEERS[self._name].node else ("plan.py", self._name)
        subprocess.run(
            _command(PEERS[self._name], program),
            input=lines,
            text=True,
            cwd=HERE,
            env=self._environment,
            check=True,
        )


def _one(side: _Side, situation: str, options: argparse.Namespace) -> Row:
    if situation == "idle":
        side.plan([whole_ms(clock.now()) + WAITS] * options.events)
        before = side.cpu()
        time.sleep(options.seconds)
        return {"cpu_ms_per_s": round((side.cpu() - before) / options.seconds * 1000, 1)}
    rate = RATES.get(situation)
    count: int = options.events if rate is None else rate * options.seconds
    first = soon(LEAD_SECONDS + count / PLANNED_A_SECOND, 0)
    step = timedelta(0) if rate is None else timedelta(seconds=1) / rate
    side.made.arrivals()
    before = side.cpu()
    side.plan([first + number * step for number in range(count)])
    used, planned_late = side.cpu() - before, clock.now() > first
    arrivals: list[Arrival] = []

    def all_came() -> bool:
        arrivals.extend(side.made.arrivals())
        return len({each.key for each in arrivals}) >= count

    time.sleep(max(0.0, (first - clock.now()).total_seconds() - COUNTED_SECONDS))
    before = side.cpu()
    try:
        time.sleep(max(0.0, (first - clock.now() + count * step).total_seconds()))
        wait_for(all_came, GRACE_SECONDS, "all to arrive", every=0.25)
        wait_for(side.done, GRACE_SECONDS, "all to be written")
    except TimeoutError:
        print(f"{situation}: {count - len({each.key for each in arrivals})} did not come", file=sys.stderr)
    if not arrivals:  # its process has died, perhaps: the others are measured all the same
        return {"missing": count, "twice": 0, "early": 0, "planned_late": int(planned_late)}
    row = judged(arrivals, count)
    return {
        "throughput_per_s": row["throughput_per_s"],
        "p50_ms": row["lag_ms"]["p50"],
        "p99_ms": row["lag_ms"]["p99"],
        "cpu_us_per_event": round((used + side.cpu() - before) / count * 1e6),
        "missing": count - row["arrived"],
        "twice": row["twice"],
        "early": row["early"],
        "planned_late": int(planned_late),
    }


@contextmanager
def _started(name: str, made: Ground) -> Iterator[_Theirs]:
    """The peer's processes and its Redis, which end with the block."""
    peer = PEERS[name]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        redis = stack.enter_context(Redis(Path(folder) / "redis"))
        environment = os.environ | {
            "PEER_REDIS": redis.url,
            "PEER_URL": made.url,
            "PEER_FOLDER": folder,
            "NODE_PATH": str(INSTALLED / "node_modules"),
        }
        if peer.django:
            environment |= {"PEER_DJANGO": "1"}
            database = _command(peer, ("plan.py", "django_database"))
            subprocess.run(database, input="", text=True, cwd=HERE, env=environment, check=True)
        processes = {"redis": redis.pid or 0}
        for number, program in enumerate(peer.processes):
            process = subprocess.Popen(
                _command(peer, program), cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True
            )
            stack.callback(_end, process)
            processes[f"process{number}"] = process.pid
            if peer.ready:
                assert process.stdout is not None
                process.stdout.readline()
        theirs = _Theirs(made, name, processes, environment)
        _one(theirs, "20/s", argparse.Namespace(seconds=1, events=1))  # until then some of them still start
        yield theirs


def _end(process: subprocess.Popen[str]) -> None:
    for each in family(process.pid):
        each.kill()
    process.communicate()


def _command(peer: Peer, program: Sequence[str]) -> list[str]:
    return ["node" if peer.node else str(INSTALLED / "venv" / "bin" / "python"), *program]


def _install() -> None:
    """Once; `make clean` removes it."""
    done = INSTALLED / "installed"
    if done.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(INSTALLED / "venv")], check=True)
    pip = [str(INSTALLED / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *PYTHON_PACKAGES], check=True)
    subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(INSTALLED), *NODE_PACKAGES],
        check=True,
    )
    done.touch()
