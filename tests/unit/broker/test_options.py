"""What Celery and kombu are set to, beside the manual."""

import json
from typing import Any, Literal

import pytest
from kombu.connection import Connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from scheduler_app.broker.app import celery_settings, make_app
from scheduler_app.broker.backends import backend_of
from scheduler_app.broker.publisher import impatient_connection
from scheduler_app.broker.redis.flow_control import RedisLimiter
from scheduler_app.broker.task import delivery_queue, route_task
from scheduler_app.broker.worker_steps import FastTimers, ReturnUnstarted
from scheduler_app.config import Settings
from scheduler_app.domain.action import QueueLengths
from tests.unit.docs.manual import Table, table

OURS = Settings(
    broker_url="rediss://broker/3",
    broker_ca_bundle="/etc/ssl/certs/ca-certificates.crt",
    mongo_database="ours",
    worker_concurrency=7,
    prequeuer_ticker_interval_seconds=3.0,
)
#: By the setting of ours that the manual names.
FROM = {
    "BROKER_URL": OURS.broker_url,
    "BROKER_CA_BUNDLE": OURS.broker_tls.options(OURS.broker),
    "MONGO_DATABASE": "ours:",
    "WORKER_CONCURRENCY": 7,
    "PREQUEUER_TICKER_INTERVAL_SECONDS": 3.0,
}
#: By what the manual says of them in words.
WORDS = {
    "see below": backend_of(OURS.broker).transport_options(OURS),
    "by name": (route_task,),
}


def told(one: Table, column: int) -> dict[str, Any]:
    """The values of a column of the manual, by the names of the first; without a value there is none."""
    cells = zip(one.names(), one.column(column), strict=True)
    return {name: value(cell) for name, cell in cells if cell}


def value(cell: str) -> Any:
    if cell in WORDS:
        return WORDS[cell]
    if cell.startswith("from "):
        return FROM[cell.removeprefix("from ").strip("`")]
    text = cell.strip("`")
    return json.loads(text) if text[0] in '"[0123456789' or text in ("true", "false", "null") else text


def test_the_manual_has_every_setting_of_celery_with_its_value() -> None:
    said = told(table("operations", "| setting of Celery | value | why |"), 1)
    found = celery_settings(OURS)
    assert said.pop("task_queues") == "callbacks"
    (queue,) = found.pop("task_queues")
    assert queue == delivery_queue("callbacks")
    assert found == said


def test_the_manual_has_every_transport_option_with_its_value() -> None:
    one = table("operations", "| transport option | Redis | RabbitMQ | why |")
    for column, url in ((1, "redis://broker/3"), (2, "amqp://broker//")):
        settings = Settings(broker_url=url, mongo_database="ours")
        assert backend_of(url).transport_options(settings) == told(one, column)


def test_each_sentinel_is_asked_once_and_not_for_long() -> None:
    url = "sentinel://one:26379;sentinel://two:26379"
    settings = Settings(broker_url=url, broker_sentinel_master="main", mongo_database="ours")
    without = Settings(broker_url="redis://broker/3", mongo_database="ours")
    more = backend_of(url).transport_options(settings)
    usual = backend_of(without.broker).transport_options(without)
    assert {name: more[name] for name in more.keys() - usual.keys()} == {
        "master_name": "main",
        "sentinel_kwargs": {
            "socket_timeout": 2,
            "socket_connect_timeout": 2,
            "retry": Retry(NoBackoff(), 0),
        },
    }


def test_a_question_that_may_not_wait_has_a_limit_for_connecting_too() -> None:
    in_redis = backend_of("redis://broker/3").impatient_options(1.5)
    assert in_redis == {"socket_timeout": 1.5, "socket_connect_timeout": 1.5}
    in_rabbitmq = backend_of("amqp://broker//").impatient_options(1.5)
    assert in_rabbitmq == {"read_timeout": 1.5, "write_timeout": 1.5, "confirm_seconds": 1.5}
    app = make_app(Settings(broker_url="redis://broker/3"))
    usual = app.conf.broker_connection_timeout
    with impatient_connection(app, 1.5) as connection:
        assert connection.connect_timeout == 1.5
        assert connection.transport_options.items() >= in_redis.items()
    hurried = make_app(Settings(broker_url="redis://broker/3"), answer_seconds=1.5)
    assert hurried.conf.broker_connection_timeout == 1.5 != usual
    assert hurried.conf.broker_transport_options.items() >= in_redis.items()
    assert app.conf.broker_transport_options == celery_settings(app.settings)["broker_transport_options"]


def test_a_worker_gets_our_steps_and_those_of_its_broker() -> None:
    assert make_app(Settings(broker_url="redis://broker/3")).steps["worker"] >= {FastTimers, ReturnUnstarted}
    assert ReturnUnstarted not in make_app(Settings(broker_url="memory://")).steps["worker"]


@pytest.mark.parametrize(
    ("log_format", "asked", "quiet"), [("json", False, True), ("text", False, False), ("text", True, True)]
)
def test_a_beat_shows_no_banner_where_logs_are_json_or_it_is_told_to(
    log_format: Literal["json", "text"], asked: bool, quiet: bool
) -> None:
    app = make_app(Settings(broker_url="memory://", log_format=log_format))
    beat = app.Beat(quiet=asked, max_interval=3)
    assert (beat.quiet, beat.max_interval) == (quiet, 3)


def test_a_broker_of_kombus_alone_tells_no_lanes_apart_and_makes_no_queue_by_a_question() -> None:
    backend = backend_of("memory://")
    assert backend.transport_options(Settings()) == {}
    with Connection("memory://") as connection:  # type: ignore[no-untyped-call]
        channel = connection.channel()
        assert backend.queue_length(channel, "asked-for") == 0
        assert not channel._has_queue("asked-for")
        with connection.SimpleQueue("filled") as queue:
            queue.put({})
            queue.put({})
            assert backend.queue_lengths(channel, "filled") == QueueLengths(fresh=2)
            queue.clear()
        (check,) = backend.checks(channel, "the address")
    assert (check.name, check.found) == ("broker", "answers at the address")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(broker_url="redis://broker/3"),
        Settings(broker_url="amqp://broker//", flow_control_url="redis://limits/0"),
        Settings(broker_url="sentinel://one:26379;sentinel://two:26379", broker_sentinel_master="main"),
    ],
    ids=lambda settings: settings.broker_url.partition(":")[0],
)
def test_the_limiter_waits_no_longer_than_its_caller_allows(settings: Settings) -> None:
    limiter = backend_of(settings.broker).limiter(settings, seconds=1.5)
    assert isinstance(limiter, RedisLimiter)
    given = limiter._client.connection_pool.connection_kwargs
    assert (given["socket_timeout"], given["socket_connect_timeout"]) == (1.5, 1.5)
    assert given["retry"] == Retry(NoBackoff(), 0)


def test_the_limiter_asks_each_sentinel_at_its_own_place_and_not_for_long() -> None:
    url = "sentinel://one:26380;sentinel://:a%20secret@two;sentinel://:26381"
    client = RedisLimiter.behind_sentinel(url, "main", "x:", seconds=1.5)._client
    pool: Any = client.connection_pool
    asked = [each.connection_pool.connection_kwargs for each in pool.sentinel_manager.sentinels]
    places = [("one", 26380), ("two", 26379), ("localhost", 26381)]
    assert [(each["host"], each["port"]) for each in asked] == places
    assert {each["socket_timeout"] for each in asked} == {1.5}
    assert pool.connection_kwargs["password"] == "a secret"
