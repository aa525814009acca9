"""The setting API_KEYS: keys, their names and their roles."""

import pytest

from scheduler_app.config.api_keys import matching, read_key
from scheduler_app.config.parsers import api_keys
from scheduler_app.domain.api_key import ALL_SCOPES, KeyScope

KEY = "0123456789abcdef"


@pytest.mark.parametrize(
    ("entry", "name", "scopes"),
    [
        (KEY, "", ALL_SCOPES),
        (f"ann:{KEY}", "ann", ALL_SCOPES),
        (f"ann@example.com:{KEY}:read", "ann@example.com", {KeyScope.READ}),
        (f"ci.deploy:{KEY}:write", "ci.deploy", ALL_SCOPES),
    ],
)
def test_an_entry_names_a_key_and_what_it_may_do(entry: str, name: str, scopes: frozenset[KeyScope]) -> None:
    found = read_key(entry)
    assert (found.name, found.scopes, found.key) == (name, scopes, KEY)
    assert KEY not in repr(found)


@pytest.mark.parametrize(
    "value",
    [
        "short",
        "ann:short",
        f"ann:{KEY}:admin",
        f":{KEY}",
        f"a b:{KEY}",
        f"a:{KEY}:read:x",
        f"a:{KEY},a:{KEY}x",
    ],
)
def test_a_wrong_entry_is_refused_without_showing_the_key(value: str) -> None:
    with pytest.raises(ValueError) as refused:
        api_keys(value)
    assert KEY not in str(refused.value)


def test_a_key_is_known_among_others() -> None:
    keys = [read_key(f"a:{KEY}"), read_key(f"b:{KEY}2")]
    found = matching(f"{KEY}2".encode(), keys)
    assert found
    assert found.name == "b"
    assert matching(b"b", keys) is None
