"""The manual's settings are the code's."""

import re
from pathlib import Path

from scheduler_app.config import load_settings, names

TABLE = (
    (Path(__file__).parents[3] / "docs" / "configuration.md")
    .read_text()
    .split("\nTo start the processes by hand")[0]
)


def test_every_setting_is_in_the_manual_and_no_other() -> None:
    rows = [line for line in TABLE.splitlines() if line.startswith("| `")]
    written = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row.split("|")[1])}
    assert written == set(names())


def test_the_manual_s_file_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(TABLE.split("```yaml\n")[1].split("```")[0])
    assert load_settings(str(path), environ={}).worker_count == 2
