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
    assert set(settings.given) == {"WORKER_COUNT", "WORKER_MAX_RETRIES", "WORKER_CONCURRENCY"}


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
        ("TRUSTED_PROXIES", "10.0.0.7/24", "CIDR"),
        ("TRUSTED_PROXIES", "*", "CIDR"),
        ("PUBLIC_URL", "scheduler.example.com", "http:// or https:// URL"),
        ("PUBLIC_URL", "https://scheduler.example.com/x", "without a path"),
        ("PUBLIC_URL", "https://", "http:// or https:// URL"),
        ("SMTP_URL", "smtps://u:p@mail.example.com", "from whom mail comes"),
        ("SMTP_URL", "mail.example.com", "smtps://user:password@host"),
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
        ("SESSION_HOURS", "0", "0.1 to 720"),
        ("OIDC_ISSUER", "http://login.example.com", "https:// URL"),
        ("OIDC_ISSUER", "https://login.example.com/?a=b", "https:// URL"),
        ("OIDC_ISSUER", "https://login.example.com", "OIDC_CLIENT_ID must be set"),
        ("OIDC_CLIENT_SECRET", "s3cret", "OIDC_ISSUER must be set"),
        ("OIDC_SCOPES", "profile", "openid among its scopes"),
        ("OIDC_ROLES", "ops", "claim=value=scopes@tenant"),
        ("OIDC_ROLES", "groups=ops=", "write admin+read+trigger+write"),
        ("OIDC_ROLES", "groups=ops=delete", "'delete'"),
        ("OIDC_ROLES", "groups=ops=read@A_B", "names no tenant"),
        ("OIDC_ROLES", '["groups=ops=read", 1]', "texts alone"),
        ("OIDC_ROLES", "groups=ops=read", "OIDC_ISSUER must be set"),
        ("ALLOWED_COMMANDS", "*", "ALLOW_ANY_COMMAND=true"),
        ("ALLOWED_COMMANDS", "echo *, shell:*", "must not have 'shell:*'"),
        ("ALLOWED_COMMANDS", '["echo a,b", "* *"]', "must not have '* *'"),
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
            "SMTP_URL": "smtps://u:pass@h?from=a@b.c",
            "PUBLIC_URL": "https://scheduler.example.com",
            "OIDC_ISSUER": "https://login.example.com",
            "OIDC_CLIENT_ID": "scheduler",
            "OIDC_CLIENT_SECRET": "pass",
            "OIDC_ROLES": "groups=ops=read",
        }
    )
    for secret in ("key-key", "sesame", "pass"):
        assert secret not in repr(settings)


def test_a_sign_in_needs_an_address_to_come_back_to_and_leaves_nothing_open() -> None:
    given = {
        "OIDC_ISSUER": "https://login.example.com",
        "OIDC_CLIENT_ID": "scheduler",
        "OIDC_CLIENT_SECRET": "s3cret",
        "OIDC_ROLES": '["dn=cn=ops,o=example=read+write@acme", "groups=all=all@*"]',
    }
    with pytest.raises(InvalidSetting, match="PUBLIC_URL must be set"):
        load_settings(environ=given)
    given["PUBLIC_URL"] = "https://scheduler.example.com"
    settings = load_settings(environ=given)
    assert settings.needs_key
    first, second = settings.roles
    assert (first.claim, first.value, first.grant.tenant) == ("dn", "cn=ops,o=example", "acme")
    assert second.grant.tenant is None


def test_a_second_setting_allows_any_program() -> None:
    given = {"ALLOWED_COMMANDS": "*,shell:*", "ALLOW_ANY_COMMAND": "true"}
    assert load_settings(environ=given).allowed_commands == ("*", "shell:*")


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "running.yaml"
    path.parent.mkdir()
    path.write_text(
        "mongo: {uri: 'mongodb://run:1/'}\nbroker: {url: 'redis://run:2/0'}\nretention: {days: '7'}\n"
    )
    path.chmod(0o600)
    return path


def test_the_settings_of_a_run_in_this_folder_go_before_the_file_and_after_the_environment(
    run_file: Path,
) -> None:
    (run_file.parents[1] / "config.yaml").write_text("retention: {days: 5}\nworker: {count: 3}\n")
    settings = load_settings(environ={"WORKER_CONCURRENCY": "4"})
    assert (settings.mongo_uri, settings.broker) == ("mongodb://run:1/", "redis://run:2/0")
    assert (settings.retention_days, settings.worker_count, settings.worker_concurrency) == (7, 3, 4)
    assert load_settings(environ={"RETENTION_DAYS": "9"}).retention_days == 9


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"MONGO_URI": "mongodb://other:1/"},
        {"BROKER_URL": "redis://other:2/0"},
        {"REDIS_HOST": "other"},
        {"SCHEDULER_CONFIG": "/dev/null"},
    ],
)
def test_who_names_a_server_or_a_file_has_nothing_to_do_with_that_run(
    run_file: Path, elsewhere: dict[str, str]
) -> None:
    settings = load_settings(environ=elsewhere)
    assert "run" not in settings.mongo_uri + settings.broker
    assert settings.retention_days == 30


def test_a_run_s_file_that_others_could_have_written_is_not_believed(run_file: Path) -> None:
    run_file.chmod(0o644)
    assert load_settings(environ={}).retention_days == 30


def test_a_new_run_does_not_take_the_servers_of_the_last_one_for_its_own(run_file: Path) -> None:
    assert "MONGO_URI" not in load_settings(environ={}, run_file=None).given
