"""Runs the checks of `scheduler doctor`, in the order in which things depend on each other."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar

import requests
from kombu.connection import Connection

from scheduler_app.broker.backends import backend_of
from scheduler_app.clock import WARN_OFFSET_SECONDS, Clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.domain.celery_task_action import CELERY_TASK
from scheduler_app.domain.command_action import COMMAND
from scheduler_app.health import Check
from scheduler_app.health.check import (
    error_summary,
    fine,
    note,
    unknown,
    unknown_without_mongodb,
    without_passwords,
    wrong,
)
from scheduler_app.health.configuration import (
    ACTIONS,
    MOST_READ,
    check_keys,
    check_refused_actions,
    check_stored_secrets,
    refused_actions,
)
from scheduler_app.health.mongodb import check_mongodb
from scheduler_app.health.processes import check_fleet, check_receivers, check_releases, check_settings
from scheduler_app.health.stops import check_blackouts, check_destinations, check_kill_switches
from scheduler_app.health.work import check_queue, check_queues, named_queues
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.usecases.duties.dispatch_selection import MESSAGES_IN_QUEUE
from scheduler_app.version import POLICY_LEVEL, __version__

T = TypeVar("T")

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
        answers = mongodb[0].ok
        return [
            *mongodb,
            *_broker(settings),
            *_brokers_of_others(settings),
            *_asked(answers, lambda: _processes(store), PROCESS_CHECKS),
            *_asked(answers, lambda: _actions(store, settings), (ACTIONS,)),
            *_asked(answers, lambda: _stored(store, settings), ("stored secrets", "destinations")),
            *check_keys(settings),
            _flower(flower_url),
        ]
    finally:
        store.close()


def _asked(answers: bool, ask: Callable[[], list[Check]], names: Sequence[str]) -> list[Check]:
    """The checks of these names: what MongoDB says to `ask`, or that it does not answer."""
    with suppress(*STORE_FAULTS), within(STORE_SECONDS):
        if answers:
            return ask()
    return unknown_without_mongodb(*names)


def _stored(store: Store, settings: Settings) -> list[Check]:
    """What is stored, and stops callbacks."""
    unreadable = store.schedules.unreadable(limit=MOST_READ) | store.destinations.unreadable(limit=MOST_READ)
    found = store.destinations.stoppable(limit=MOST_READ)
    limiter = backend_of(settings.broker).limiter(settings, seconds=STEP_SECONDS) if found else None
    try:
        return [check_stored_secrets(unreadable), check_destinations(found, limiter)]
    finally:
        if limiter is not None:
            limiter.close()


def _brokers_of_others(settings: Settings) -> list[Check]:
    """The brokers and result backends of other applications, to which tasks are sent: all at once."""
    asked = [("CELERY_BROKERS", *each) for each in settings.celery_brokers]
    asked += [("CELERY_RESULT_BACKENDS", *each) for each in settings.celery_result_backends]
    found = [_in_thread(partial(_reach, url, settings)) for *_, url in asked]
    until = monotonic() + BROKER_SECONDS
    checks = []
    for future, (setting, name, url) in zip(found, asked, strict=True):
        address = without_passwords(url)
        try:
            future.result(max(0.0, until - monotonic()))
        except Exception as error:  # each transport raises errors of its own
            said = f"{name} at {address} does not answer: {error_summary(error)}"
            remedy = f"start it, or see that {setting} is right: tasks wait for it"
            checks.append(wrong(setting, said, remedy))
        else:
            checks.append(fine(setting, f"{name} at {address} answers"))
    return checks


def _in_thread(ask: Callable[[], T]) -> "Future[T]":
    """Asks a broker: its drivers only bound each step and each try."""
    asked: Future[T] = Future()

    def run() -> None:
        try:
            asked.set_result(ask())
        except Exception as error:  # each transport raises errors of its own
            asked.set_exception(error)

    Thread(target=run, name="broker", daemon=True).start()
    return asked


def _reach(url: str, settings: Settings) -> None:
    # kombu's own transports: queues of others have no form of ours.
    patience = {"socket_timeout": STEP_SECONDS, "socket_connect_timeout": STEP_SECONDS}
    with Connection(  # type: ignore[no-untyped-call]
        url,
        ssl=settings.broker_tls.options(url),
        connect_timeout=STEP_SECONDS,
        transport_options={"max_retries": 1} | ({} if url.startswith("amqp") else patience),
    ) as connection:
        connection.default_channel.close()


PROCESS_CHECKS = (
    *("beat", "worker", "clocks", "queues", "this clock", "settings", "releases", "receivers"),
    *("kill switches", "blackouts"),
)


def _processes(store: Store) -> list[Check]:
    """`PROCESS_CHECKS`."""
    nodes = store.processes.alive()
    named = named_queues(store)
    here = Clock()
    offset = here.synchronize(store.mongo.server_time)
    switches = sorted(store.kill_switches.everybodys().targets, key=str)
    return [
        *check_fleet(nodes),
        check_queues(nodes, named),
        _own_clock(offset),
        check_settings(nodes, store.processes.settings, __version__),
        check_releases(nodes, POLICY_LEVEL),
        check_receivers(nodes),
        check_kill_switches(switches, store.kill_switches.corrupt()),
        check_blackouts(store.blackouts.corrupt(here.now())),
    ]


def _actions(store: Store, settings: Settings) -> list[Check]:
    return [check_refused_actions(refused_actions(store, settings, (COMMAND, CELERY_TASK)))]


def _own_clock(offset: float) -> Check:
    found = f"this host is {abs(offset):.3f} s off mongod's clock"
    if abs(offset) > WARN_OFFSET_SECONDS:
        return wrong("this clock", found, "set it by NTP", offset_seconds=offset)
    return fine("this clock", found, offset_seconds=offset)


def _broker(settings: Settings) -> list[Check]:
    try:
        return _in_thread(partial(_ask_broker, settings)).result(BROKER_SECONDS)
    except Exception as error:
        address = without_passwords(settings.broker)
        backend = backend_of(settings.broker)
        return [
            wrong(
                backend.check_name,
                f"{address} does not answer: {error_summary(error)}",
                backend.remedy,
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
        # First: a broker with an alarm reads nothing more once something was published.
        length = backend.queue_length(channel)
        checks = backend.checks(channel, without_passwords(settings.broker))
        return [*checks, check_queue(length, most=MESSAGES_IN_QUEUE)]


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
