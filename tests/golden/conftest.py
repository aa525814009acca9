"""One recorded run for all tests of this folder, which run one after the other in one process."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from flask import Flask

from tests.acceptance.journal import Journal
from tests.golden import documents, run
from tests.golden.golden_files import FILES, OLDER
from tests.golden.product import ADMIN, READER, SECRETS_KEY, Mongod, Product, Redis, Settings, held_time
from tests.golden.recording import Recording
from tests.golden.run import older, open_doors, reading, reworking
from tests.golden.steady import Steady

Asked = list[tuple[str, str, int]]


@dataclass
class Ran:
    """What came of a recorded run, with placeholders: texts by the names of their files."""

    answers: dict[str, str]
    messages: str
    documents: dict[str, str]
    callbacks: str
    asked: Asked
    collections: set[str]
    """All that there are, empty ones too."""
    app: Flask


@dataclass
class Bench:
    """Makes products over one mongod and Redis."""

    mongod: Mongod
    redis: Redis

    @contextmanager
    def product(self, name: str, **changes: Any) -> Iterator[tuple[Product, Journal, Steady]]:
        """An empty product with a receiver of its own; `changes` are of its settings."""
        steady = Steady(SECRETS_KEY.encode(), first=changes.pop("first_placeholder", 1))
        with held_time() as time, closing(Journal()) as journal:
            settings = replace(
                Settings(
                    mongo_uri=self.mongod.uri,
                    mongo_database=f"golden_{name}_{os.getpid()}",
                    broker_url=self.redis.url,
                    callback_allowed_networks="127.0.0.0/8",
                    api_keys=(f"ann:{ADMIN}", f"rob:{READER}:read"),
                    secrets_key=SECRETS_KEY,
                    tasks_api=True,
                    allowed_commands=("MONTH= echo *", "echo *"),
                    celery_brokers=(("shop", f"redis://127.0.0.1:{self.redis.port}/1"),),
                    celery_tasks=("shop:shop.tasks.*@*", "shop:shop.tasks.*"),
                ),
                **changes,
            )
            steady.name(settings.mongo_database, "<database>")
            steady.name(journal.url("").removeprefix("http://"), "127.0.0.1:<receiver>")
            with closing(Product(settings, time)) as product:
                yield product, journal, steady


@pytest.fixture(scope="package")
def bench(mongod_server: Mongod, redis_server: Redis) -> Bench:
    return Bench(mongod_server, redis_server)


@pytest.fixture(scope="package")
def ran(bench: Bench) -> Iterator[Ran]:
    with bench.product("run") as (product, journal, steady):
        recording = Recording(product)
        run.record(recording, journal)
        yield _shown(recording, journal, steady)


@pytest.fixture(scope="package")
def over_documents(bench: Bench, ran: Ran) -> Iterator[Ran]:
    """What the product does with the documents of the golden files, in a database that has nothing else."""
    # New ones have numbers that no placeholder in the files has.
    with bench.product("documents", first_placeholder=1001) as (product, journal, steady):
        for path in sorted((FILES / "documents").iterdir()):
            product.database[path.stem].insert_many(documents.from_text(path.read_text("utf-8"), steady))
        recording = Recording(product)
        reading.record(recording)
        reworking.record(recording)
        yield _shown(recording, journal, steady)


@pytest.fixture(scope="package")
def over_older_documents(bench: Bench) -> Iterator[Ran]:
    """The same with documents as releases before this one wrote them."""
    with bench.product("older") as (product, journal, steady):
        for path in sorted(OLDER.glob("*.json")):
            product.database[path.stem].insert_many(documents.from_text(path.read_text("utf-8"), steady))
        recording = Recording(product)
        older.record(
            recording, [each["_id"] for each in product.database["schedules"].find(sort=[("_id", 1)])]
        )
        yield _shown(recording, journal, steady)


@pytest.fixture(scope="package")
def over_newer_documents(bench: Bench) -> Iterator[Ran]:
    """The same with documents of a release after this one: each `v` is greater than any that is kept."""
    with bench.product("newer", first_placeholder=1001) as (product, journal, steady):
        for path in sorted((FILES / "documents").iterdir()):
            kept = documents.from_text(path.read_text("utf-8"), steady)
            newer = max(each["v"] for each in kept) + 1
            product.database[path.stem].insert_many([each | {"v": newer} for each in kept])
        recording = Recording(product)
        reading.record(recording)
        yield _shown(recording, journal, steady)


@pytest.fixture(scope="package")
def opened(bench: Bench) -> Iterator[Ran]:
    """A product without keys: for requests and for secrets. It has no `/tasks`, and takes one message."""
    with bench.product("open", api_keys=(), secrets_key="", tasks_api=False, max_messages=1) as made:
        product, journal, steady = made
        recording = Recording(product)
        open_doors.record(recording, journal)
        yield _shown(recording, journal, steady)


def _shown(recording: Recording, journal: Journal, steady: Steady) -> Ran:
    for drawn, placeholder in recording.names.items():
        steady.name(drawn, placeholder)
    answers = {f"{topic}.txt": steady(recording.text(topic)) for topic in recording.pages if topic}
    database = recording.product.database
    there = database.list_collection_names(filter={"type": "collection"})
    kept = recording.product.documents()
    return Ran(
        answers,
        steady(recording.messages()),
        {f"{name}.json": documents.as_text(found, steady) for name, found in kept.items()},
        steady(recording.callbacks(journal)),
        recording.asked,
        {name for name in there if not name.startswith("system.")},
        recording.product.app,
    )
