"""Which lines of a server's log are shown to people."""

from pathlib import Path

import pytest

from scheduler_app.embedded import Mongod, Redis


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            '{"s":"F","c":"STORAGE","msg":"WiredTiger error","attr":{"error":28}}',
            'WiredTiger error {"error": 28}',
        ),
        ('{"s":"E","c":"CONTROL","msg":"Error setting up listener"}', "Error setting up listener"),
        ('{"s":"I","c":"NETWORK","msg":"Connection accepted","attr":{}}', None),
        ('{"s":"W","c":"CONTROL","msg":"Access control is not enabled"}', None),
        ('{"s":"E","c":"COMMAND","msg":"Failed to handle request","attr":{}}', None),
        ("mongod: libcrypto.so.3: cannot open", "mongod: libcrypto.so.3: cannot open"),
        ("", None),
    ],
)
def test_of_mongods_json_only_its_own_errors(line: str, shown: str | None, tmp_path: Path) -> None:
    assert Mongod(tmp_path).error_line(line) == shown


@pytest.mark.parametrize(
    ("line", "is_shown"),
    [
        ("1:M 21 Nov 2026 # Can't open the append-only file: Permission denied", True),
        (
            "1:M 21 Nov 2026 # Could not create server TCP listening socket: bind: Address already in use",
            True,
        ),
        ("1:M 21 Nov 2026 # Bad file format reading the append only file", True),
        ("1:M 21 Nov 2026 # WARNING overcommit_memory is set to 0! Background save may fail", False),
        ("1:C 21 Nov 2026 # oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo", False),
        ("1:M 21 Nov 2026 * Ready to accept connections", False),
    ],
)
def test_of_redis_only_what_went_wrong(line: str, is_shown: bool, tmp_path: Path) -> None:
    assert (Redis(tmp_path).error_line(line) is not None) == is_shown
