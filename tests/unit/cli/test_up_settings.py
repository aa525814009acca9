"""What `scheduler up` makes of its settings, before it starts anything."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from scheduler_app.cli.commands.up import up
from scheduler_app.cli.up.local_run import banner, program
from scheduler_app.cli.up.services import (
    api_service,
    flower_service,
    service_environment,
    up_defaults,
    worker_service,
)
from scheduler_app.config import load_settings
from scheduler_app.health.check import without_passwords

_KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _nothing_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALLBACK_ALLOWED_NETWORKS", raising=False)
    monkeypatch.delenv("WORKER_SOFT_SHUTDOWN_SECONDS", raising=False)


def test_callbacks_may_reach_this_machine_unless_that_is_set_even_to_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert up_defaults(load_settings())["CALLBACK_ALLOWED_NETWORKS"] == "127.0.0.0/8,::1/128"
    monkeypatch.setenv("CALLBACK_ALLOWED_NETWORKS", "")
    assert "CALLBACK_ALLOWED_NETWORKS" not in up_defaults(load_settings())


def test_what_a_file_or_a_flag_says_reaches_the_services_by_their_environment(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"api: {{keys: [{_KEY}, {_KEY}x]}}\nretention: {{days: 7}}\n")
    settings = load_settings(None, {"LOG_LEVEL": "debug"})
    told = service_environment(settings, {"MONGO_URI": "mongodb://127.0.0.1:1"})
    assert told["API_KEYS"] == f"{_KEY},{_KEY}x"
    assert told["RETENTION_DAYS"] == "7"
    assert told["LOG_LEVEL"] == "debug"
    assert told["MONGO_URI"] == "mongodb://127.0.0.1:1"
    assert load_settings(environ=told).api_keys == settings.api_keys


@pytest.mark.parametrize(
    ("flag", "wrong", "named"),
    [
        ("--worker-count", "x", "WORKER_COUNT"),
        ("--worker-max-retries", "51", "WORKER_MAX_RETRIES"),
        ("--prequeuer-ticker-seconds", "0", "PREQUEUER_TICKER_INTERVAL_SECONDS"),
        ("--prequeuer-timeframe-minutes", "0", "PREQUEUER_EVENT_TIMEFRAME_MINUTES"),
        ("--log-level", "loud", "LOG_LEVEL"),
    ],
)
def test_the_seed_s_flags_set_what_their_names_say(
    monkeypatch: pytest.MonkeyPatch, flag: str, wrong: str, named: str
) -> None:
    monkeypatch.delenv(named, raising=False)
    refused = CliRunner().invoke(up, [flag, wrong])
    assert refused.exit_code != 0
    assert named in refused.output
    assert not Path("data").exists(), "nothing was started"


def test_a_worker_has_its_soft_shutdown_and_a_margin_before_it_is_killed() -> None:
    settings = load_settings(None, {"WORKER_SOFT_SHUTDOWN_SECONDS": "8"})
    service = worker_service(2, settings, {})
    assert 10 <= service.grace < 11
    assert service.command[:3] == (sys.executable, "-P", "-m")
    assert "worker2@%h" in service.command


def test_everything_ends_within_fifteen_seconds_at_the_worst() -> None:
    settings = load_settings(None, up_defaults(load_settings()))
    api, worker, flower = (
        api_service(settings, {}),
        worker_service(1, settings, {}),
        flower_service(5555, "user:password", {}),
    )
    assert api.tier == flower.tier > worker.tier > 0
    graceful = float(api.command[api.command.index("--graceful-timeout") + 1])
    assert api.grace >= graceful + 1.5, "gunicorn needs some time for its own end"
    server_grace = 2.0
    assert max(api.grace, flower.grace) + worker.grace + server_grace < 15


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("mongodb://app:s3cret@db.example:27017/x", "mongodb://app:***@db.example:27017/x"),
        ("redis://:s3cret@cache:6379/0", "redis://:***@cache:6379/0"),
        ("redis://:a/b@c?d#e@cache:6379/0", "redis://:***@cache:6379/0"),
        ("redis://h:1/0?ssl=1&password=s3cret gone", "redis://h:1/0?ssl=1&password=*** gone"),
        (
            "mongodb://h/?tlsCertificateKeyFilePassword=a&authMechanismProperties=AWS_SESSION_TOKEN:b&w=1",
            "mongodb://h/?tlsCertificateKeyFilePassword=***&authMechanismProperties=***&w=1",
        ),
        ("mongodb://127.0.0.1:27017/?replicaSet=rs0", "mongodb://127.0.0.1:27017/?replicaSet=rs0"),
    ],
)
def test_a_password_is_not_shown(given: str, shown: str) -> None:
    assert without_passwords(given) == shown


def test_the_greeting_ends_with_a_line_to_paste() -> None:
    settings = load_settings(None, {"API_PORT": "9001"})
    text = banner({"API": "http://127.0.0.1:9001"}, settings)
    words = shlex.split(text.splitlines()[-1])
    assert words[:2] == ["curl", "http://127.0.0.1:9001/api/v1/schedules"]
    assert json.loads(words[-1])["callback_url"] == "http://127.0.0.1:9001/health"
    assert "Authorization" not in text


def test_with_keys_the_line_to_paste_asks_for_one_and_shows_none() -> None:
    settings = load_settings(None, {"API_KEYS": _KEY, "API_HOST": "0.0.0.0"})
    text = banner({"API": "here"}, settings)
    assert '-H "Authorization: Bearer $API_KEY"' in text
    assert _KEY not in text
    assert "0.0.0.0" not in text, "that is an address to listen on, not to connect to"


def test_flower_s_login_is_not_on_its_command_line() -> None:
    service = flower_service(5555, "scheduler:s3cret", {})
    assert service.environment["FLOWER_BASIC_AUTH"] == "scheduler:s3cret"
    assert "s3cret" not in " ".join(service.command)


def test_the_commands_that_are_printed_are_found_from_the_reader_s_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "bin" / "scheduler"
    script.parent.mkdir()
    script.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == str(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "scheduler"
    script.unlink()
    assert program() == f"{script.with_name('python')} -m scheduler_app.cli"
