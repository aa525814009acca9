"""A process's own port: metrics, and whether something hangs."""

import time
from urllib.parse import urlsplit

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from scheduler_app.embedded import free_port
from scheduler_app.telemetry import serve_metrics
from scheduler_app.telemetry.metrics import Role


@pytest.fixture(params=["127.0.0.1", "::1"])
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def serve(host: str, trouble: str | None = None, role: Role = Role.WORKER) -> str:
    """Its URL."""
    port = free_port()
    serve_metrics(port, host, lambda: trouble, role)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def test_metrics_parse_with_prometheus_own_parser(host: str) -> None:
    text = requests.get(f"{serve(host)}/metrics").text
    families = {family.name for family in text_string_to_metric_families(text)}
    assert {"scheduler_lag_seconds", "scheduler_attempts", "scheduler_unrecorded_outcomes"} <= families


def test_each_process_shows_only_what_it_counts_itself() -> None:
    shown = {}
    for role in Role:
        text = requests.get(f"{serve('127.0.0.1', role=role)}/metrics").text
        shown[role] = {family.name for family in text_string_to_metric_families(text)}
    own = {
        Role.API: {"scheduler_api_requests"},
        Role.BEAT: {"scheduler_tick_duration_seconds", "scheduler_tick_timestamp_seconds"},
        Role.WORKER: {"scheduler_lag_seconds", "scheduler_callback_duration_seconds", "scheduler_claims"},
        Role.WITNESS: {"scheduler_ledger_lines", "scheduler_ledger_alarms"},
    }
    for role, names in own.items():
        assert names <= shown[role]
        assert not any(names & shown[other] for other in Role if other is not role)
    assert all(
        "scheduler_clock_offset_seconds" in names for role, names in shown.items() if role is not Role.WITNESS
    )
    assert "scheduler_events_expanded" in shown[Role.API] & shown[Role.BEAT]


def test_health_says_what_hangs() -> None:
    answer = requests.get(f"{serve('127.0.0.1', 'no tick has ended for 99 s')}/healthz")
    assert (answer.status_code, answer.text) == (503, "no tick has ended for 99 s\n")
    assert requests.get(f"{serve('127.0.0.1')}/healthz").status_code == 200


def test_nothing_wakes_it_but_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[object] = []

    def turn(server: object) -> None:
        turns.append(server)

    monkeypatch.setattr("scheduler_app.telemetry.metrics._MetricsServer.service_actions", turn)
    assert requests.get(f"{serve('127.0.0.1')}/healthz").status_code == 200
    time.sleep(1.2)  # socketserver wakes every half a second by default
    assert len(turns) <= 1


def test_it_takes_no_commands() -> None:
    assert requests.post(f"{serve('127.0.0.1')}/metrics").status_code == 405


def test_a_taken_port_is_an_error_at_the_start() -> None:
    port = urlsplit(serve("127.0.0.1")).port
    assert port is not None
    with pytest.raises(OSError, match="in use"):
        serve_metrics(port, "127.0.0.1", lambda: None, Role.BEAT)


def test_port_0_listens_nowhere() -> None:
    serve_metrics(0, "not even an address", lambda: None, Role.BEAT)
