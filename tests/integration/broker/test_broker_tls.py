"""Brokers by TLS: their certificates are verified, by authority and by name, and ours is shown."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_app.actions.celery_task import application
from scheduler_app.actions.celery_task.application import RemoteApplication
from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher, impatient_connection
from scheduler_app.broker.redis import flow_control
from scheduler_app.broker.redis.flow_control import RedisLimiter
from scheduler_app.config import Settings
from scheduler_app.config.settings import BrokerTls
from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.ids import WholeId
from scheduler_app.usecases.duties.dispatch_selection import Batch
from tests.processes import PATIENCE_SECONDS
from tests.tls_brokers import KINDS, TlsBroker, tls_broker

#: RabbitMQ takes its time to start on a machine that is busy with other things.
pytestmark = pytest.mark.timeout(900)
#: How OpenSSL, Erlang and kombu call it.
REFUSED = r"(?i)certificate|handshake|ssl|closed|reset|broken pipe"


@pytest.fixture(scope="module", params=KINDS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    with tls_broker(request.param, tmp_path_factory.mktemp("tls")) as started:
        yield started


@pytest.fixture
def settings(broker: TlsBroker) -> Settings:
    return Settings(
        broker_url=broker.url,
        broker_ca_bundle=broker.ca_bundle,
        broker_client_certificate=broker.client_certificate,
    )


def connect(settings: Settings) -> None:
    """As every process does it; raises what the connection raises."""
    with impatient_connection(make_app(settings), PATIENCE_SECONDS) as connection:
        connection.connect()
        connection.channel()


def test_messages_go_by_tls(settings: Settings) -> None:
    publisher = CeleryPublisher(make_app(settings))
    publisher.publish([Batch(ids=("s1-1-20260105T120000Z",), eta=None)])
    assert publisher.queue_length() == 1


def test_an_authority_that_nobody_named_is_refused(settings: Settings) -> None:
    with pytest.raises(Exception, match="certificate verify failed"):
        connect(replace(settings, broker_ca_bundle=""))


def test_a_certificate_of_another_name_is_refused(settings: Settings, broker: TlsBroker) -> None:
    with pytest.raises(Exception, match="certificate verify failed"):
        connect(replace(settings, broker_url=broker.by_another_name))


def test_a_broker_that_asks_for_our_certificate_gets_none_but_the_one_that_is_set(settings: Settings) -> None:
    with pytest.raises(Exception, match=REFUSED):
        connect(replace(settings, broker_client_certificate=""))


def test_tasks_of_others_go_by_tls_to_those_who_are_known(
    broker: TlsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "PATIENCE_SECONDS", PATIENCE_SECONDS)
    tls = BrokerTls(broker.ca_bundle, broker.client_certificate)
    results = broker.url if broker.url.startswith("rediss:") else None
    known = RemoteApplication(broker.url, results, tls)
    action = CeleryTaskAction("shop.bill", "shop", queue="bills")
    known.send("a task", action, [], {}, {})
    if results:
        assert known.results(["a task"]) == [None]
    known.close()
    stranger = RemoteApplication(broker.by_another_name, None, tls)
    with pytest.raises(stranger.faults, match="certificate verify failed"):
        stranger.send("a task", action, [], {}, {})
    stranger.close()


def test_limits_are_counted_by_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_control, "TIMEOUT_SECONDS", PATIENCE_SECONDS)
    now = datetime(2026, 1, 5, tzinfo=UTC)
    limited = Destination(
        id=WholeId("d"), url="http://127.0.0.1:9/", created_at=now, updated_at=now, concurrency=1
    )
    with tls_broker("redis", tmp_path) as broker:
        tls = BrokerTls(broker.ca_bundle, broker.client_certificate)
        limiter = RedisLimiter.of_url(broker.url, "test:", tls)
        assert limiter.look(limited).in_flight == 0
        limiter.close()
        stranger = RedisLimiter.of_url(broker.by_another_name, "test:", tls)
        with pytest.raises(limiter.unavailable, match="certificate verify failed"):
            stranger.look(limited)
        stranger.close()
