"""Runs the checks of `scheduler doctor`, in the order in which things depend on each other."""

from concurrent.futures import Future
from threading import Thread

import requests
from kombu.connection import Connection

from scheduler_app.broker.backends import backend_of
from scheduler_app.clock import WARN_OFFSET_SECONDS, Clock
from scheduler_app.config import Settings
from scheduler_app.health import Check
from scheduler_app.health.agreement import check_settings
from scheduler_app.health.blackouts import check_blackouts
from scheduler_app.health.check import fine, note, unknown, wrong
from scheduler_app.health.driver_errors import error_summary, without_passwords
from scheduler_app.health.fleet import check_fleet
from scheduler_app.health.keys import check_keys
from scheduler_app.health.kill_switches import check_kill_switches
from scheduler_app.health.mongodb import check_mongodb
from scheduler_app.health.queue import check_queue
from scheduler_app.health.queues import check_queues, named_queues
from scheduler_app.health.receivers import check_receivers
from scheduler_app.health.releases import check_releases
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.usecases.dispatch import MESSAGES_IN_QUEUE
from scheduler_app.version import POLICY_LEVEL, __version__

#: For one step of a connection.
STEP_SECONDS = 3.0
#: For everything that is asked of MongoDB, and for everything that is asked of the broker.
STORE_SECONDS = 5.0
BROKER_SECONDS = 5.0


def diagnose(settings: Settings, flower_url: str) -> list[Check]:
    """Returns all checks; takes about 10 s when nothing answers. Raises InvalidField for an unusable
    SECRETS_KEY."""
    store = Store(settings)
    try:
        address = without_passwords(settings.mongo_uri)
        with within(STORE_SECONDS):
            mongodb = check_mongodb(store, address, settings)
        # A MongoDB that has just not answered is not asked again: that would take 5 s more.
        processes = _processes(store) if mongodb[0].ok else _unknown_processes()
        return [
            *mongodb,
            *_broker(settings),
            *processes,
            *check_keys(settings),
            _flower(flower_url),
        ]
    finally:
        store.close()


def _processes(store: Store) -> list[Check]:
    try:
        with within(STORE_SECONDS):
            nodes = store.processes.alive()
            named = named_queues(store)
            here = Clock()
            offset = here.synchronize(store.mongo.server_time)
            switches = sorted(store.kill_switches.everybodys().targets, key=str)
            bent = store.kill_switches.corrupt()
            blackouts = store.blackouts.corrupt(here.now())
    except STORE_FAULTS:
        return _unknown_processes()
    agree = check_settings(nodes, store.processes.settings, __version__)
    return [
        *check_fleet(nodes),
        check_queues(nodes, named),
        _own_clock(offset),
        agree,
        check_releases(nodes, POLICY_LEVEL),
        check_receivers(nodes),
        check_kill_switches(switches, bent),
        check_blackouts(blackouts),
    ]


def _unknown_processes() -> list[Check]:
    clock = unknown("this clock", "MongoDB does not answer")
    return [
        *check_fleet(None),
        check_queues(None),
        clock,
        check_settings(None, {}, __version__),
        check_releases(None, POLICY_LEVEL),
        check_receivers(None),
        check_kill_switches(None),
        check_blackouts(None),
    ]


def _own_clock(offset: float) -> Check:
    found = f"this host is {abs(offset):.3f} s off mongod's clock"
    if abs(offset) > WARN_OFFSET_SECONDS:
        return wrong("this clock", found, "set it by NTP", offset_seconds=offset)
    return fine("this clock", found, offset_seconds=offset)


def _broker(settings: Settings) -> list[Check]:
    """Asks the broker within BROKER_SECONDS: its drivers only bound each step and each try."""
    asked: Future[list[Check]] = Future()

    def ask() -> None:
        try:
            asked.set_result(_ask_broker(settings))
        except Exception as error:  # each transport raises errors of its own
            asked.set_exception(error)

    Thread(target=ask, name="broker", daemon=True).start()
    try:
        return asked.result(BROKER_SECONDS)
    except Exception as error:
        address = without_passwords(settings.broker)
        remedy = "start it, or see that REDIS_HOST and REDIS_PORT, or BROKER_URL, are right"
        return [
            wrong(
                backend_of(settings.broker).check_name,
                f"{address} does not answer: {error_summary(error)}",
                remedy,
            ),
            unknown("queue", "the broker does not answer"),
        ]


def _ask_broker(settings: Settings) -> list[Check]:
    backend = backend_of(settings.broker)
    options = backend.transport_options(settings) | backend.impatient_options(STEP_SECONDS)
    with Connection(  # type: ignore[no-untyped-call]
        settings.broker,
        ssl=settings.broker_tls.options(settings.broker),
        connect_timeout=STEP_SECONDS,
        transport_options=options,
    ) as connection:
        channel = connection.channel()
        checks = backend.checks(channel, without_passwords(settings.broker))
        return [*checks, _queue(backend.queue_length(channel))]


def _queue(length: int) -> Check:
    return check_queue(length, most=MESSAGES_IN_QUEUE)


def _flower(url: str) -> Check:
    try:
        requests.get(f"{url}/healthcheck", timeout=STEP_SECONDS).raise_for_status()
    except requests.RequestException:
        return note(
            "flower",
            f"not found at {url}",
            "nothing depends on it; start it by: celery -A scheduler_app flower",
        )
    return fine("flower", f"answers at {url}")
