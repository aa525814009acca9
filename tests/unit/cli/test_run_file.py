"""How remote commands find the API of a run in ./data."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from scheduler_app.cli import main
from scheduler_app.cli.run_file import FILE_NAME, kept_run_file, running_api
from scheduler_app.embedded import free_port


def test_the_api_of_a_run_is_found_while_it_lasts(tmp_path: Path) -> None:
    assert running_api(tmp_path) is None
    with kept_run_file(tmp_path, {"API_HOST": "127.0.0.1", "API_PORT": "9000"}) as path:
        assert path.stat().st_mode & 0o777 == 0o600
        assert running_api(tmp_path) == "http://127.0.0.1:9000"
    assert running_api(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        ("api: {host: 127.0.0.1, port: '9000'}", 0o644),
        ("api: {host: collector.example.com, port: '9000', keys: 0123456789abcdef}", 0o600),
        ("mongo: {database: schedulerdb}", 0o600),
        ("no settings", 0o600),
    ],
    ids=["others could have written it", "not this machine", "of an older release", "damaged"],
)
def test_a_file_that_could_lead_a_key_elsewhere_is_not_believed(
    content: str, mode: int, tmp_path: Path
) -> None:
    path = tmp_path / FILE_NAME
    path.write_text(content)
    path.chmod(mode)
    assert running_api(tmp_path) is None


def test_a_command_asks_that_api_and_says_where_it_had_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCHEDULER_URL", raising=False)
    (tmp_path / "data").mkdir()
    port = str(free_port())
    with kept_run_file(tmp_path / "data", {"API_HOST": "127.0.0.1", "API_PORT": port}):
        said = CliRunner().invoke(main, ["list"]).output
        assert f"http://127.0.0.1:{port} cannot be reached" in said
        assert "`scheduler up` in ./data" in said
        given = CliRunner().invoke(main, ["list", "--url", "http://127.0.0.1:1"]).output
        assert "http://127.0.0.1:1 cannot be reached" in given
        assert "scheduler up" not in given
