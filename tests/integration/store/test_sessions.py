"""Sessions of browsers: how long they last, and how many there may be."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.store import Store, access_tokens

KEY, OTHER = "a" * 64, "b" * 64


def test_a_session_belongs_to_its_key(store: Store) -> None:
    token = store.sessions.open(KEY)
    assert store.sessions.key_of(token) == (KEY, None)
    assert store.sessions.key_of("guessed") is None
    assert store.sessions.key_of(store.sessions.open("4k2m9x0p7q1z", OTHER)) == ("4k2m9x0p7q1z", OTHER)


def test_a_session_that_is_over_counts_no_more(store: Store) -> None:
    token = store.sessions.open(KEY)
    past = datetime.now(UTC) - timedelta(minutes=1)
    store.mongo.collection("sessions").update_many({}, {"$set": {"expires_at": past}})
    assert store.sessions.key_of(token) is None


def test_one_session_ends_or_all_of_a_key(store: Store) -> None:
    first, second, other = store.sessions.open(KEY), store.sessions.open(KEY), store.sessions.open(OTHER)
    store.sessions.close(first)
    assert [store.sessions.key_of(each) for each in (first, second, other)] == [
        None,
        (KEY, None),
        (OTHER, None),
    ]
    assert store.sessions.close_all(KEY) == 1
    assert store.sessions.key_of(other) == (OTHER, None)


def test_a_key_has_a_bounded_number_of_sessions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_tokens, "MAX_SESSIONS", 3)
    for _ in range(5):
        store.sessions.open(KEY)
    other = store.sessions.open(OTHER)
    assert store.mongo.collection("sessions").count_documents({"key": KEY}) == 3
    assert store.sessions.key_of(other) == (OTHER, None)
