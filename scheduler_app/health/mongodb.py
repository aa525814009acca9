"""Checks MongoDB: its version, its replica set, a majority write, the indexes."""

from collections.abc import Iterator, Mapping
from typing import Any

import pymongo
from pymongo import IndexModel
from pymongo.errors import PyMongoError

from scheduler_app.config import Settings
from scheduler_app.health.check import (
    REPLICA_SET_REMEDY,
    Check,
    error_summary,
    fine,
    is_mongos,
    is_replica_set,
    note,
    unknown,
    unknown_without_mongodb,
    wrong,
)
from scheduler_app.store import Store
from scheduler_app.store.index_builds import index_builds
from scheduler_app.store.indexes import DAY_SECONDS, EVENTS, SCHEDULES

#: The oldest and the newest tested release, major and minor.
OLDEST, NEWEST = (6, 0), (8, 0)
#: How long the majority write may take, seconds.
WRITE_SECONDS = 5.0
RETENTION_INDEX = "retention_v2"
MESSAGE_RETENTION_INDEX = "message_retention_v1"
REPLICATION = "mongodb replica set"
WRITES = "mongodb writes"
INDEXES = "mongodb indexes"


def check_mongodb(store: Store, address: str, settings: Settings) -> list[Check]:
    """Checks `mongodb` and, if it answers, everything else; `address` is its URL without a password."""
    admin = store.mongo.client.admin
    try:
        version = str(admin.command("buildInfo")["version"])
        hello = admin.command("hello")
    except PyMongoError as error:
        return [
            wrong(
                "mongodb",
                f"{address} does not answer: {error_summary(error)}",
                "start it, or see that MONGO_URI is right (its name, its port, its password)",
            ),
            *unknown_without_mongodb(REPLICATION, WRITES, INDEXES),
        ]
    return [
        _version(version, address),
        _replication(hello),
        _writes(store),
        _indexes(store, settings),
    ]


def _version(version: str, address: str) -> Check:
    found = f"{version} at {address}"
    major_minor = tuple(int(part) for part in version.split(".")[:2])
    if major_minor < OLDEST:
        return wrong("mongodb", found, "upgrade it: 6.0 is the oldest supported release", version=version)
    if major_minor > NEWEST:
        return note("mongodb", found, "newer than 8.0, the last that this was tested with", version=version)
    return fine("mongodb", found, version=version)


def _replication(hello: Mapping[str, Any]) -> Check:
    if is_mongos(hello):
        return fine(REPLICATION, "a sharded cluster, through mongos")
    if not is_replica_set(hello):
        return wrong(
            REPLICATION,
            "a mongod that is no replica set: its writes cannot be retried, and a failover can lose them",
            REPLICA_SET_REMEDY,
        )
    members = len(hello.get("hosts", ()))
    return fine(
        REPLICATION,
        f"{hello['setName']}, {members} {'member' if members == 1 else 'members'},"
        f" primary {hello.get('primary', 'none at this moment')}",
        members=members,
    )


def _writes(store: Store) -> Check:
    try:
        # With the concern of all writes: majority, journaled. The report of this process is removed again.
        with pymongo.timeout(WRITE_SECONDS):
            store.processes.report("doctor")
            store.processes.leave()
    except PyMongoError as error:
        return wrong(
            WRITES,
            f"a write was not confirmed by a majority within {WRITE_SECONDS:g} s: {error_summary(error)}",
            "see rs.status() for members that are down, the disk for space, the user's role for readWrite",
        )
    return fine(WRITES, "a write was confirmed by a majority")


def _indexes(store: Store, settings: Settings) -> Check:
    collections = [store.mongo.collection(name) for name in ("events", "schedules")]
    try:
        building = [f"{each.name}.{index}" for each in collections for index in index_builds(each)]
        events, schedules = (each.index_information() for each in collections)
    except PyMongoError as error:
        return unknown(INDEXES, error_summary(error))
    if building:
        return wrong(
            INDEXES,
            f"MongoDB is still building {', '.join(building)}",
            "wait: a new process reports itself once they are complete, and until then its log says how far"
            " they are",
            building=building,
        )
    missing = [*_missing("events", EVENTS, events), *_missing("schedules", SCHEDULES, schedules)]
    missing += [f"events.{name}" for name in (RETENTION_INDEX, MESSAGE_RETENTION_INDEX) if name not in events]
    if missing:
        return wrong(
            INDEXES,
            f"missing: {', '.join(missing)}",
            "start any process, which creates them; its log says why if it cannot",
            missing=missing,
        )
    for index, setting, days, things in (
        (RETENTION_INDEX, "RETENTION_DAYS", settings.retention_days, "events"),
        (MESSAGE_RETENTION_INDEX, "MESSAGE_RETENTION_DAYS", settings.message_retention_days, "messages"),
    ):
        kept = events[index].get("expireAfterSeconds", 0) / DAY_SECONDS
        if kept != days:
            return wrong(
                INDEXES,
                f"finished {things} are kept for {kept:g} days, and {setting} is {days}",
                f"give every process the same {setting}; each sets the index when it starts",
                **{setting.lower(): kept},
            )
    return fine(INDEXES, f"all there; finished events are kept for {settings.retention_days} days")


def _missing(collection: str, models: list[IndexModel], found: Mapping[str, object]) -> Iterator[str]:
    for model in models:
        if model.document["name"] not in found:
            yield f"{collection}.{model.document['name']}"
