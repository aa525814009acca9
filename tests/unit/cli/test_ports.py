"""Two runs that start at the same moment, before any of their services listens."""

import pytest

from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.cli.up.preflight import ReservedPorts
from scheduler_app.config import Settings, load_settings
from scheduler_app.embedded import free_port, is_free


def settings(**given: int | str) -> Settings:
    return load_settings(environ={name: str(value) for name, value in given.items()})


def first_of_free_ports(count: int) -> int:
    """So many that follow each other; one of them may be another test's server's."""
    while True:
        first = free_port()
        if all(is_free(port) for port in range(first, first + count)):
            return first


def test_flower_s_usual_port_goes_to_the_first_and_any_other_to_the_second() -> None:
    usual = Settings(flower_port=free_port())
    with ReservedPorts() as first, ReservedPorts() as second:
        assert first.flower(usual) == usual.flower_port
        assert second.flower(usual) not in (0, usual.flower_port)
    with ReservedPorts() as third:
        assert third.flower(usual) == usual.flower_port


def test_a_port_that_was_asked_for_is_refused_with_its_name_when_another_run_has_it() -> None:
    port = free_port()
    with ReservedPorts() as first, ReservedPorts() as second:
        first.flower(settings(FLOWER_PORT=port))
        with pytest.raises(CannotStart, match=f"FLOWER_PORT: port {port} .*--flower-port"):
            second.flower(settings(FLOWER_PORT=port))
        with pytest.raises(CannotStart, match=f"API_PORT: port {port} .*--port"):
            second.reserve("API_PORT", "127.0.0.1", port, "choose another with --port")


def test_all_ports_of_the_metrics_are_looked_at_before_anything_starts() -> None:
    asked = settings(METRICS_PORT=first_of_free_ports(4), WORKER_COUNT=3)
    with ReservedPorts() as first, ReservedPorts() as second:
        first.reserve("API_PORT", "127.0.0.1", asked.metrics_port + 3, "choose another with --port")
        with pytest.raises(
            CannotStart, match=rf"METRICS_PORT: port {asked.metrics_port + 3} .* take 4 ports"
        ):
            second.metrics(asked)
    with ReservedPorts() as alone, pytest.raises(CannotStart, match="METRICS_PORT: there is no port 65536"):
        alone.metrics(settings(METRICS_PORT=65_535, WORKER_COUNT=1))
    with_commands = settings(METRICS_PORT=65_534, WORKER_COUNT=1, ALLOWED_COMMANDS="date")
    with ReservedPorts() as alone, pytest.raises(CannotStart, match="METRICS_PORT: there is no port 65536"):
        alone.metrics(with_commands)
    with ReservedPorts() as none:
        none.metrics(settings(WORKER_COUNT=3))
