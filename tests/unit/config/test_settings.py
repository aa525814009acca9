"""Settings: where each comes from, and how a wrong one is refused."""

from pathlib import Path

import pytest

from scheduler_app.config import InvalidSetting, load_settings

SEED_FILE = """
mongo:
  uri: "mongodb://localhost:27017"
  database: "schedulerdb"

redis:
  host: "localhost"
  port: 6379

prequeuer:
  ticker_interval_seconds: 20
  event_timeframe_minutes: 10

worker:
  count: 5
  max_retries: 3

log:
  level: "info"
"""


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_seed_s_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text(SEED_FILE)
    settings = load_settings(environ={})
    assert settings.prequeuer_ticker_interval_seconds == 20
    assert settings.worker_count == 5
    assert settings.horizon_seconds == 24


def test_flags_win_over_the_environment_and_that_over_the_file_and_that_over_the_default(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.yaml").write_text("worker: {count: 2, max_retries: 2, concurrency: 2}\n")
    settings = load_settings(
        overrides={"WORKER_COUNT": "4"}, environ={"WORKER_COUNT": "3", "WORKER_MAX_RETRIES": "3"}
    )
    assert settings.worker_count == 4
    assert settings.worker_max_retries == 3
    assert settings.worker_concurrency == 2
    assert settings.redis_port == 6379
    assert settings.given == {"WORKER_COUNT", "WORKER_MAX_RETRIES", "WORKER_CONCURRENCY"}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("WORKER_COUNT", "abc", "whole number"),
        ("WORKER_MAX_RETRIES", "51", "0 to 50"),
        ("REDIS_PORT", "70000", "1 to 65535"),
        ("PREQUEUER_TICKER_INTERVAL_SECONDS", "0", "0.1 to 60"),
        ("PREQUEUER_TICKER_INTERVAL_SECONDS", "nan", "0.1 to 60"),
        ("MONGO_URI", "localhost:27017", "mongodb://"),
        ("MONGO_DATABASE", "a/b", "none of"),
        ("LOG_LEVEL", "loud", "debug, info"),
        ("API_KEYS", "short", "16 characters"),
        ("CALLBACK_ALLOWED_NETWORKS", "10.0.0.0/33", "CIDR"),
        ("BROKER_URL", "redis://:pass/word@host:6379/0", "write / as %2F"),
        ("BROKER_URL", "redis://host:6379/0?password=s3cret", "in front of the host"),
        ("BROKER_URL", "sentinel://a:1;sentinel://b:x", "must have a number as its port"),
        ("FLOW_CONTROL_URL", "amqp://host", "redis:// or rediss://"),
        ("FLOW_CONTROL_URL", "redis://host", "unless BROKER_URL is a RabbitMQ's"),
        ("CALLBACK_DENIED_PORTS", "22,http", "separated by commas"),
        ("CALLBACK_DENIED_PORTS", "6063-6000", "the lower port first"),
        ("CALLBACK_DENIED_PORTS", "0", "1 to 65535"),
        ("RETENTION_DAYS", "0", "1 to 3650"),
        ("DISPATCH_HORIZON_SECONDS", "2", "PREQUEUER_TICKER_INTERVAL_SECONDS + 2"),
        ("API_HOST", "0.0.0.0", "API_KEYS"),
    ],
)
def test_a_wrong_value_is_refused_under_the_names_that_mend_it(name: str, value: str, says: str) -> None:
    with pytest.raises(InvalidSetting, match=name) as refusal:
        load_settings(environ={name: value})
    assert says in str(refusal.value)


def test_a_horizon_that_the_timeframe_cannot_feed_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="DISPATCH_HORIZON_SECONDS"):
        load_settings(environ={"PREQUEUER_EVENT_TIMEFRAME_MINUTES": "1", "DISPATCH_HORIZON_SECONDS": "31"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mongo: {url: x}", "mongo.url is not a setting"),
        ("just text", "sections"),
        ("a: [", "not YAML"),
        ("api: {keys: s3cret\nmongo: [", "is not YAML: [^3]* in line 2, column [0-9]+$"),
    ],
)
def test_a_file_that_is_no_configuration_says_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InvalidSetting, match=says):
        load_settings(environ={})


def test_secrets_are_in_no_representation() -> None:
    settings = load_settings(
        environ={
            "API_KEYS": "key-key-key-key-key",
            "SECRETS_KEY": "sesame",
            "MONGO_URI": "mongodb://u:pass@h/",
            "BROKER_URL": "amqp://:pass@h/",
            "FLOW_CONTROL_URL": "redis://:pass@h/",
        }
    )
    for secret in ("key-key", "sesame", "pass"):
        assert secret not in repr(settings)
