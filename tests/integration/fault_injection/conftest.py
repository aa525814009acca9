"""Worlds to break, on the real mongod and Redis."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from flask import Flask
from kombu import pools
from pymongo import MongoClient
from redis import Redis as RedisClient

from scheduler_app.api.factory import routed
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain import missed
from scheduler_app.embedded import Mongod, Redis
from scheduler_app.store import Store, mongo
from scheduler_app.usecases import stops
from scheduler_app.usecases.duties import dispatch, expansion
from scheduler_app.worker import pipeline, recorder, reports
from tests.acceptance.journal import Journal
from tests.integration.fault_injection.door import CLIENT_OPTIONS, PATIENCE_SECONDS, Doors
from tests.integration.fault_injection.world import Process, Time, World
from tests.lent_clients import LentClients
from tests.prepared_databases import PreparedDatabases


@dataclass
class Bench:
    """Makes one world after another."""

    doors: Doors
    _databases: PreparedDatabases
    _clients: LentClients
    _mongo_uri: str
    _redis: Redis
    _journal: Journal
    _apps: tuple[Flask, Flask]
    _time: Time
    _changes: dict[str, Any] = field(default_factory=dict)
    """Settings of each world."""

    @contextmanager
    def world(self) -> Iterator[World]:
        name = self._databases.take()
        with RedisClient(port=self._redis.port) as client:
            client.flushall()
        settings = Settings(
            mongo_uri=self._mongo_uri,
            mongo_database=name,
            broker_url=self._redis.url,
            callback_allowed_networks="127.0.0.0/8",
            prequeuer_event_timeframe_minutes=1,
            **self._changes,
        )
        with closing(Store(settings)) as store:
            yield World(settings, store, self._journal, self._apps, self._time)
        # Connections to a broker outlive the application that opened them; a process has its own.
        pools.reset()  # type: ignore[no-untyped-call]
        self._databases.give_back(name)

    @contextmanager
    def tried(self, world: World) -> Iterator[Process]:
        """The process whose calls pass the door, with clients of its own."""

        def make(uri: str, **options: Any) -> MongoClient[dict[str, Any]]:
            return self._clients.make(uri, **options | CLIENT_OPTIONS)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mongo, "MongoClient", make)
            process = world.tried()
        with closing(process):
            yield process


BenchMaker = Callable[..., AbstractContextManager[Bench]]


@pytest.fixture(scope="module")
def make_bench(
    prepared_databases: PreparedDatabases,
    lent_clients: LentClients,
    mongod_server: Mongod,
    redis_server: Redis,
) -> BenchMaker:
    """Makes a bench whose worlds have these settings, too."""
    servers = prepared_databases, lent_clients, mongod_server.uri, redis_server
    return partial(_made, servers)


@pytest.fixture(scope="module")
def bench(make_bench: BenchMaker) -> Iterator[Bench]:
    with make_bench() as made:
        yield made


@contextmanager
def _made(servers: tuple[PreparedDatabases, LentClients, str, Redis], **changes: Any) -> Iterator[Bench]:
    time = Time()
    with pytest.MonkeyPatch.context() as patch, closing(Journal()) as journal:
        patch.setattr(clock, "now", time)
        # What a process gives up after a moment is not given up here because this machine stands still.
        patch.setattr(stops, "ANSWER_SECONDS", PATIENCE_SECONDS)
        patch.setattr(dispatch, "SELECTION_SECONDS", PATIENCE_SECONDS)
        patch.setattr(reports, "LAST_SECONDS", PATIENCE_SECONDS)
        patch.setattr(pipeline, "END_SECONDS", PATIENCE_SECONDS)
        # Nor does anybody wait for a moment here.
        patch.setattr(recorder, "BACKOFF_SECONDS", (0.01,))
        # Little is much here: an edit leaves more than three occurrences to beats, and a beat makes a record
        # of those beyond three that were missed.
        patch.setattr(expansion, "OCCURRENCES_AN_EDIT", 3)
        patch.setattr(missed, "MAX_SINGLES", 3)
        settings = Settings(callback_allowed_networks="127.0.0.0/8", **changes)
        apps = routed(settings), routed(settings)
        yield Bench(Doors(patch), *servers, journal, apps, time, changes)
