"""The manual's settings are the code's."""

import re
from pathlib import Path

from scheduler_app.config import load_settings, names
from scheduler_app.domain.person import parse_roles

DOCS = Path(__file__).parents[3] / "docs"
TABLE = (DOCS / "configuration.md").read_text().split("\nTo start the processes by hand")[0]
ACCESS = (DOCS / "access.md").read_text()


def test_every_setting_is_in_the_manual_and_no_other() -> None:
    rows = [line for line in TABLE.splitlines() if line.startswith("| `")]
    written = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row.split("|")[1])}
    assert written == set(names())


def test_the_manual_s_file_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(TABLE.split("```yaml\n")[1].split("```")[0])
    assert load_settings(str(path), environ={}).worker_count == 2


def test_the_settings_of_a_sign_in_with_an_account_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(ACCESS.split("```yaml\n")[1].split("```")[0])
    operator, admin = load_settings(str(path), environ={}).roles
    assert (operator.grant.tenant, admin.grant.tenant) == ("default", None)


def test_the_roles_that_are_shown_for_each_provider_are_read() -> None:
    shown = re.findall(r"OIDC_ROLES=([^`]+)`", ACCESS)
    assert len(shown) == 5
    assert [role.claim for each in shown for role in parse_roles(each)] == [
        *("realm_access.roles", "groups", "hd", "email", "roles", "groups")
    ]
