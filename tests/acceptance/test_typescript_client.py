"""The client in TypeScript that the manual shows is generated, compiled strictly and run, word for word."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack

ROOT = Path(__file__).parents[2]
NODE_MODULES = ROOT / ".venv" / "node" / "node_modules"
MARK = "<!-- run by tests/acceptance/test_typescript_client.py -->\n```bash\n"


def test_a_generated_client_runs_the_first_schedule_of_the_readme(
    stack: Stack, journal: Journal, tmp_path: Path
) -> None:
    assert shutil.which("npx"), "npx is missing: run `make packages` as root"
    assert NODE_MODULES.is_dir(), "the generator is missing: run `make .venv/node/installed`"
    page = (ROOT / "docs" / "clients.md").read_text()
    commands = page.split(MARK)[1].split("```")[0].replace("http://localhost:8080", stack.url)
    program = page.split("```typescript\n")[1].split("```")[0]
    first = json.loads((ROOT / "README.md").read_text().split("  -d '")[1].split("'")[0])
    for name, value in first.items():
        assert f"{name}: {json.dumps(value)},\n" in program
    for shown, here in (
        ("http://localhost:8080", stack.url),
        ("http://127.0.0.1:9000/", journal.url("/typescript")),
    ):
        assert shown in program
        program = program.replace(shown, here)
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    (tmp_path / "first-schedule.mts").write_text(program)
    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=tmp_path,
        env={**os.environ, "npm_config_offline": "true", "npm_config_update_notifier": "false"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    due, ran, called, edited, deleted = done.stdout.splitlines()[-5:]
    assert due.startswith("my-first is due next at 20")
    assert ran.startswith("my-first-1-20")
    assert ran.endswith("Z is completed")
    assert called.startswith("my-first-manual-")
    # A pause and a resumption are edits, too.
    assert edited == "version 4 is in Europe/Zurich"
    assert deleted == "Schedule and associated events deleted."
    assert len(journal.calls["/typescript"]) >= 2
