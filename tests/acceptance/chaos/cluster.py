"""What the faults strike: three mongod, Redis, RabbitMQ where it is the broker, two APIs, two beats, two
workers and a receiver."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import requests
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import PyMongoError
from redis import Redis as RedisClient

from scheduler_app.embedded import RabbitMQ, Redis, free_port
from tests.acceptance.chaos.disks import Disk
from tests.acceptance.chaos.proxy import Link
from tests.acceptance.chaos.replica_set import MEMBERS, Member, ReplicaSet
from tests.acceptance.stack import Stack
from tests.processes import wait_until

DATABASE = "chaos"
BROKERS = ("redis", "rabbitmq")
WORKER = ("celery", "-A", "scheduler_app", "worker", "-P", "threads", "--without-gossip", "--without-mingle")
BEAT = ("celery", "-A", "scheduler_app", "beat")
STOP_SECONDS = 30
READ_SECONDS = 150

T = TypeVar("T")


class Cluster:
    """Servers and processes by name, all to be handled from the main thread.

    `harmed` are the workers that a fault has killed, stopped, or cut off for longer than a lease: only they
    may be the reason why something was sent twice. `launcher` is put before each command.
    `broker` is one of BROKERS; where it is RabbitMQ, Redis counts what destinations with limits are sent.
    """

    def __init__(self, folder: Path, launcher: tuple[str, ...] = (), broker: str = "redis") -> None:
        self.folder = folder
        self.disks = [Disk(folder / f"mongod{number}") for number in range(MEMBERS)]
        self.mongo = ReplicaSet(lambda number: self.disks[number].path / "data")
        self.redis = Redis(folder / "redis", free_port())
        self._rabbitmq = (
            RabbitMQ(folder / "rabbitmq", free_port(), password="only-for-tests")
            if broker == "rabbitmq"
            else None
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.harmed: set[str] = set()
        self.exited: list[str] = []
        self.api_ports = {"api1": free_port(), "api2": free_port()}
        self.api_headers: dict[str, str] = {}
        self._commands: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}
        self._launcher = launcher
        self._links: list[Link] = []
        self.stack = Stack(
            folder,
            {
                "MONGO_URI": self.mongo.uri,
                "MONGO_DATABASE": DATABASE,
                **self._broker_settings(),
                "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8",
                "PREQUEUER_EVENT_TIMEFRAME_MINUTES": "1",
                "WORKER_SOFT_SHUTDOWN_SECONDS": "8",
            },
        )

    # -- the servers -------------------------------------------------------------------------------------

    def start_servers(self, stack: ExitStack) -> None:
        for disk in self.disks:
            stack.enter_context(disk)
        stack.callback(self.close)
        self.mongo.start()
        self.redis.start()
        if self._rabbitmq:
            self._rabbitmq.start()
        self._receiver = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.chaos.receiver"], stdout=subprocess.PIPE, text=True
        )
        assert self._receiver.stdout is not None
        self.receiver_port = int(self._receiver.stdout.readline())
        self._client = MongoClient[dict[str, Any]](self.mongo.uri, tz_aware=True, w="majority")
        stack.callback(self._client.close)

    @property
    def database(self) -> Database[dict[str, Any]]:
        """The truth, read beside the product."""
        return self._client[DATABASE]

    def read(self, question: Callable[[Database[dict[str, Any]]], T]) -> T:
        """Its answer, asked again until MongoDB gives one; for threads beside the main one too."""
        deadline = time.monotonic() + READ_SECONDS
        while True:
            try:
                return question(self.database)
            except PyMongoError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    @property
    def rabbitmq(self) -> RabbitMQ:
        """The broker of a cluster that was made with `broker="rabbitmq"`."""
        assert self._rabbitmq, "this cluster has Redis as its broker"
        return self._rabbitmq

    def _broker_settings(self) -> dict[str, str]:
        if self._rabbitmq is None:
            return {"BROKER_URL": self.redis.url}
        return {"BROKER_URL": self._rabbitmq.url, "FLOW_CONTROL_URL": self.redis.url}

    @contextlib.contextmanager
    def broker(self) -> Iterator["RedisClient"]:
        with RedisClient(port=self.redis.port, decode_responses=False) as client:
            yield client

    def callback_url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.receiver_port}{path}"

    def seen(self) -> list[tuple[float, str, str, str]]:
        """What came to the receiver since the last call: (Unix seconds, key, path, run time)."""
        rows = requests.get(self.callback_url("/report")).json()
        return [tuple(row) for row in rows]

    # -- the product's processes -------------------------------------------------------------------------

    def start_processes(self) -> None:
        for name in ("beat1", "beat2", "worker1", "worker2", "api1", "api2"):
            self.launch(name)
        for name in self.processes:
            self.wait_for(name)

    def run_anew(self, *launcher: str) -> None:
        """All processes again, over an empty database and an empty broker."""
        self.stack.close()
        self.processes.clear()
        self._commands.clear()
        self._launcher = launcher
        self._client.drop_database(DATABASE)
        with self.broker() as redis:
            redis.flushall()
        self.start_processes()

    def launch(self, name: str, launcher: tuple[str, ...] = (), **environment: str) -> None:
        """Starts the process of that name, without waiting for it; by default as it ran before."""
        if launcher or environment or name not in self._commands:
            self._commands[name] = ((*self._launcher, *launcher, *self._command(name)), environment)
        command, variables = self._commands[name]
        self.processes[name] = self.stack.start(name, *command, **variables)

    def _command(self, name: str) -> tuple[str, ...]:
        if name.startswith("api"):
            bind = f"127.0.0.1:{self.api_ports[name]}"
            return (
                "gunicorn",
                "--threads",
                "16",
                "--graceful-timeout",
                "10",
                "--bind",
                bind,
                "scheduler_app.api:create_app()",
            )
        if name.startswith("beat"):
            return (*BEAT, f"--pidfile={self.folder / name}.{len(self.stack.running)}.pid")
        return (*WORKER, "-n", f"{name}@%h")

    def wait_for(self, name: str) -> None:
        process = self.processes[name]
        if name.startswith("api"):
            wait_until(lambda: self._healthy(name), f"{name} to answer\n{self.stack.logs()}")
        else:
            self.stack.wait_for_node(name.rstrip("0123456789"), process.pid)

    def restart(self, name: str, launcher: tuple[str, ...] = (), **environment: str) -> None:
        """Starts a process that has ended, and waits until it lives."""
        self.launch(name, launcher, **environment)
        self.wait_for(name)

    def kill(self, *names: str) -> None:
        """kill -9."""
        self.harmed.update(name for name in names if name.startswith("worker"))
        for name in names:
            self.stack.kill(self.processes.pop(name))

    def terminate(self, *names: str) -> None:
        """SIGTERM to all of them, and waits until they have ended."""
        ending = [self.processes.pop(name) for name in names]
        for process in ending:
            process.send_signal(signal.SIGTERM)
        for process in ending:
            process.wait(STOP_SECONDS)

    def pause(self, name: str) -> None:
        """SIGSTOP of its whole group."""
        if name.startswith("worker"):
            self.harmed.add(name)
        os.killpg(self.processes[name].pid, signal.SIGSTOP)

    def unpause(self, name: str) -> None:
        os.killpg(self.processes[name].pid, signal.SIGCONT)

    def cut_off_all_workers(self) -> None:
        """Says that each worker was away from MongoDB for longer than a lease."""
        self.harmed.update(name for name in self.processes if name.startswith("worker"))

    def note_exits(self) -> None:
        """Notes which processes ended though nobody told them to, and starts them again."""
        for name in [name for name, process in self.processes.items() if process.poll() is not None]:
            self.exited.append(f"{name} (status {self.processes[name].returncode})")
            self.restart(name)

    # -- links that can be cut ---------------------------------------------------------------------------

    def primary(self) -> Member:
        return self.mongo.primary()

    def link_to_mongod(self) -> str:
        """Makes `link` one to the primary and returns the URI that goes over it: a driver in replica-set
        mode would find its way round any proxy."""
        self._connect_link(self.mongo.primary().port)
        return f"mongodb://127.0.0.1:{self.link.port}/?directConnection=true"

    def link_to_broker(self) -> str:
        """Makes `link` one to the broker and returns the URL that goes over it."""
        server = self._rabbitmq or self.redis
        self._connect_link(server.port)
        return server.url.replace(f":{server.port}/", f":{self.link.port}/")

    @property
    def link(self) -> Link:
        return self._links[-1]

    def _connect_link(self, port: int) -> None:
        self._links.append(Link(port))

    def relaunch_second(self, *launcher: str, **environment: str) -> None:
        """Beat 2 and worker 2 in other circumstances; in ordinary ones when none are given."""
        second = ("beat2", "worker2")
        self.terminate(*second)
        for name in second:
            self._commands.pop(name)
            self.launch(name, launcher, **environment)
        for name in second:
            self.wait_for(name)

    def _healthy(self, name: str) -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{self.api_ports[name]}/health", timeout=1).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    def close(self) -> None:
        self.stack.close()
        for link in self._links:
            link.close()
        with contextlib.suppress(AttributeError):
            self._receiver.kill()
            self._receiver.wait()
        self.redis.kill()
        if self._rabbitmq:
            self._rabbitmq.kill()
        self.mongo.close()
