"""The bad neighbours of `neighbours`: each is prepared before anything is due, and begins at an instant."""

import json
import os
import signal
import socket
import threading
from contextlib import ExitStack
from datetime import datetime, timedelta

import requests

from scheduler_app.clock import clock
from scheduler_app.domain.ids import TENANT, whole_id
from scheduler_app.domain.tenant import Tenant
from tests.bench.ground import Ground
from tests.bench.half_open import HalfOpenConnections
from tests.bench.limited_backlog import LimitedBacklog
from tests.bench.neighbour import Neighbour
from tests.bench.paced import PacedClients
from tests.bench.planted import SCHEDULES, events_at, insert, make_schedules, whole_ms
from tests.bench.receiver import Receiver
from tests.bench.report import Row
from tests.bench.running_commands import RunningCommands

#: Longer than a bulk creation takes on a machine under load.
BULK_TIMEOUT_SECONDS = 120


class HangingRequests(Neighbour):
    """A steady rate of callbacks to receivers that do not answer in time.

    The rate is that of the events, `retries` for each of them come on top. A schedule for each event of a
    second, as if each fired every second, and at least one for each origin.
    """

    def __init__(self, path: str, rate: int, timeout: float, origins: int, retries: int = 3) -> None:
        self.origins = origins
        self._retries = retries
        self._path, self._rate, self._timeout = path, rate, timeout

    def events(self, seconds: float) -> int:
        return int(self._rate * seconds)

    def prepare(self, made: Ground, receiver: Receiver, begin: datetime, seconds: float) -> None:
        schedules = make_schedules(
            made,
            prefix="hanging",
            path=self._path,
            count=max(self._rate, self.origins),
            receiver=receiver,
            timeout_seconds=self._timeout,
            max_retries=self._retries,
            backoff_seconds=1.0,
            backoff_max_seconds=300.0,
        )
        pause = timedelta(seconds=1 / self._rate)
        insert(
            made,
            events_at(schedules, self.events(seconds), lambda number: whole_ms(begin + number * pause)),
        )


class Overdue(Neighbour):
    """A backlog of another receiver, which answers: everything in it was due an hour ago, before any victim.

    Beat is held while the backlog is written, so that all of it is there when beat goes on. It may be a whole
    tenant's, of many receivers, none of which has much.
    """

    gap_seconds = 12

    def __init__(self, events: int, *, tenant: str = TENANT, origins: int = 1) -> None:
        self._events = events
        self._tenant = tenant
        if origins > 1:
            self.gap_seconds = 25
        self.origins = origins

    def events(self, seconds: float) -> int:
        return self._events

    def prepare(self, made: Ground, receiver: Receiver, begin: datetime, seconds: float) -> None:
        if self._tenant != TENANT:
            made.store.tenants.put(Tenant(self._tenant, clock.now()))
        prefix = whole_id(self._tenant, "overdue")
        schedules = make_schedules(made, prefix=prefix, receiver=receiver, count=max(SCHEDULES, self.origins))
        due = whole_ms(clock.now() - timedelta(hours=1))
        self._made = made
        self._backlog = events_at(
            schedules, self._events, lambda number: due + timedelta(milliseconds=number // 30)
        )

    def disturb(self) -> None:
        beats = [pid for name, pid in self._made.processes.items() if name.startswith("beat")]
        for pid in beats:
            os.kill(pid, signal.SIGSTOP)
        insert(self._made, self._backlog)
        for pid in beats:
            os.kill(pid, signal.SIGCONT)


class BulkCreations(Neighbour):
    """Some clients create secondly rules at once, all of which call a port where nobody listens."""

    apis = 1

    def __init__(self, clients: int, rules: int) -> None:
        self._clients, self._rules = clients, rules
        self._threads: list[threading.Thread] = []
        self._answers: list[Row] = []
        self._sockets = ExitStack()

    def prepare(self, made: Ground, receiver: Receiver, begin: datetime, seconds: float) -> None:
        # Bound and not listening: connections are refused, and nobody else gets the port.
        refused = self._sockets.enter_context(socket.socket())
        refused.bind(("127.0.0.1", 0))
        rule = {
            "name": "refused",
            "rrule": "FREQ=SECONDLY",
            "callback_url": f"http://127.0.0.1:{refused.getsockname()[1]}/",
            "method": "POST",
        }
        body = json.dumps({"schedules": [rule] * self._rules})
        self._threads = [
            threading.Thread(target=self._create, args=(f"{made.stack.url}/api/schedules/bulk", body))
            for _ in range(self._clients)
        ]

    def disturb(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._sockets.close()

    def figures(self, begin: datetime) -> Row:
        return {
            "created": sum(answer["created"] for answer in self._answers),
            "bulk_s": round(max(answer["seconds"] for answer in self._answers), 2),
        }

    def _create(self, url: str, body: str) -> None:
        began = clock.now()
        try:
            answer = requests.post(
                url, body, headers={"Content-Type": "application/json"}, timeout=BULK_TIMEOUT_SECONDS
            )
            created = answer.json()["created"] if answer.ok else 0
        except requests.RequestException:  # an API that does not answer has created nothing that counts
            created = 0
        self._answers.append({"created": created, "seconds": (clock.now() - began).total_seconds()})


class HalfOpen(Neighbour):
    """Connections to the API that stop in the middle, while others create schedules and ask for health."""

    apis = 1

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._exit = ExitStack()

    def prepare(self, made: Ground, receiver: Receiver, begin: datetime, seconds: float) -> None:
        self._clients = PacedClients(made.stack.url)
        self._half_open = HalfOpenConnections(made.stack.url, self._connections)

    def watch(self) -> None:
        self._exit.enter_context(self._clients)

    def disturb(self) -> None:
        self._exit.enter_context(self._half_open)

    def stop(self) -> None:
        self._exit.close()

    def figures(self, begin: datetime) -> Row:
        return {**self._clients.figures(begin.timestamp()), "connections_opened": self._half_open.opened}


def _hanging() -> dict[str, Neighbour]:
    return {
        f"silent-{rate}-{timeout}s-{origins}": HangingRequests("silent", rate, timeout, origins)
        for rate in (1, 60, 600)
        for timeout in (10, 300)
        for origins in (1, 50)
    }


def neighbours() -> dict[str, Neighbour]:
    """All cases by name; `silent-60-10s-1` is 60 requests/s with a timeout of 10 s at one origin."""
    return {
        **_hanging(),
        "drip-60-10s": HangingRequests("drip", 60, 10, 1),
        "bulk": BulkCreations(clients=2, rules=1_000),
        "half-open": HalfOpen(200),
        "overdue": Overdue(100_000),
        "tenant": Overdue(100_000, tenant="acme", origins=300),
        "commands": RunningCommands(50),
        "limited": LimitedBacklog(20_000, rate=50, burst=10, concurrency=5),
    }
