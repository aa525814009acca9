"""The data folder: for its owner alone, with keys of its own, also when an older release has made it."""

import os
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.cli.up.data_directory import (
    data_directory,
    flower_password,
    secrets_keys,
    temporary_directory,
)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """As a release made it that left everything open to readers."""
    folder = tmp_path / "data"
    for name in ("mongod", "redis"):
        (folder / name).mkdir(parents=True)
    for name in ("lock", "mongod.log", "running.yaml", ".running.yaml.new"):
        (folder / name).touch()
        (folder / name).chmod(0o644)
    for path in (folder, folder / "mongod", folder / "redis"):
        path.chmod(0o755)
    return folder


def test_a_new_folder_and_one_of_an_older_release_are_closed_to_others(tmp_path: Path, plain: Path) -> None:
    for folder in (tmp_path / "new" / "data", plain):
        with data_directory(folder):
            readable = [path for path in (folder, *folder.iterdir()) if path.suffix != ".new"]
            assert [path for path in readable if path.name != "lock" and mode(path) & 0o077] == []
    assert mode(plain) == mode(plain / "mongod") == 0o700
    assert mode(plain / "mongod.log") == 0o600


def test_a_folder_that_holds_other_things_stays_open_but_for_ours(plain: Path) -> None:
    (plain / "somebody's").touch()
    with data_directory(plain):
        assert mode(plain) == 0o755
        assert mode(plain / "mongod") == mode(plain / "redis") == 0o700


def test_a_folder_of_another_user_is_refused_in_one_sentence(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(CannotStart, match=r"belongs to another user.*--data-dir"), data_directory(plain):
        pass


def test_the_key_of_a_folder_is_made_once_and_stays_when_another_one_is_given_later(tmp_path: Path) -> None:
    made = secrets_keys(tmp_path, "")
    Fernet(made)
    assert secrets_keys(tmp_path, "") == made
    assert mode(tmp_path / "secrets-key") == 0o600
    given = Fernet.generate_key().decode()
    assert secrets_keys(tmp_path, given) == f"{given},{made}"


def test_a_key_that_was_given_from_the_beginning_stays_alone(tmp_path: Path) -> None:
    assert secrets_keys(tmp_path, "given") == "given"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "no key\n"])
def test_a_damaged_key_is_not_replaced_but_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "secrets-key").write_text(content)
    with pytest.raises(CannotStart, match="secrets-key holds no Fernet key: put it back from a backup"):
        secrets_keys(tmp_path, "")
    assert (tmp_path / "secrets-key").read_text() == content


def test_flower_keeps_its_password_between_runs(tmp_path: Path) -> None:
    first = flower_password(tmp_path)
    assert len(first) >= 32
    assert flower_password(tmp_path) == first
    assert mode(tmp_path / "flower-password") == 0o600
    (tmp_path / "flower-password").write_text("\n")
    with pytest.raises(CannotStart, match="flower-password is empty: remove it"):
        flower_password(tmp_path)


def test_what_a_killed_run_left_in_its_temporary_folder_is_removed_by_the_next(tmp_path: Path) -> None:
    (temporary_directory(tmp_path) / "scheduler-metrics-left").mkdir()
    assert list(temporary_directory(tmp_path).iterdir()) == []
