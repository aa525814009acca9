"""What every store of a receiver's keys must do."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from scheduler_app.receiver import Keys, LookupKeys, MemoryKeys, RedisKeys, Seen


class Looked(LookupKeys):
    """A handler writes the key itself: so does this when the work is finished."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        super().__init__(self.done.__contains__)

    def finish(self, key: str, token: str) -> None:
        self.done.add(key)
        super().finish(key, token)


@pytest.fixture(params=["memory", "redis", "redis as text", "lookup"])
def keys(request: pytest.FixtureRequest) -> Iterator[Keys]:
    if request.param == "memory":
        yield MemoryKeys()
    elif request.param == "lookup":
        yield Looked()
    else:
        url = request.getfixturevalue("redis_url")
        with Redis.from_url(url, decode_responses=request.param == "redis as text") as client:
            yield RedisKeys(client)


def test_a_key_is_new_once_and_then_done(keys: Keys) -> None:
    assert keys.claim("a", "first") is Seen.NEW
    assert keys.claim("a", "second") is Seen.RUNNING
    assert keys.claim("b", "third") is Seen.NEW
    keys.finish("a", "first")
    assert keys.claim("a", "fourth") is Seen.DONE
    assert keys.claim("b", "fifth") is Seen.RUNNING


def test_a_key_that_is_forgotten_is_new_again(keys: Keys) -> None:
    keys.claim("a", "first")
    keys.forget("a", "first")
    assert keys.claim("a", "second") is Seen.NEW


def test_only_who_has_claimed_a_key_forgets_it(keys: Keys) -> None:
    keys.claim("a", "first")
    keys.forget("a", "another")
    assert keys.claim("a", "second") is Seen.RUNNING
    keys.finish("a", "first")
    keys.forget("a", "first")
    assert keys.claim("a", "third") is Seen.DONE


def test_of_many_claims_at_once_one_is_new(keys: Keys) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: keys.claim("a", str(number)), range(64)))
    assert (found.count(Seen.NEW), found.count(Seen.RUNNING)) == (1, 63)


def test_memory_is_bounded_by_the_oldest_finished_key() -> None:
    keys = MemoryKeys(max_keys=3)
    for key in "abcd":
        assert keys.claim(key, "token") is Seen.NEW
        keys.finish(key, "token")
        assert len(keys) <= 3
    assert keys.claim("b", "token") is Seen.DONE
    assert keys.claim("a", "token") is Seen.NEW


def test_memory_keeps_what_is_running_and_refuses_more() -> None:
    keys = MemoryKeys(max_keys=2)
    assert [keys.claim(key, "token") for key in "abc"] == [Seen.NEW, Seen.NEW, Seen.NO_ROOM]
    keys.finish("a", "token")
    assert keys.claim("c", "token") is Seen.NEW
    assert len(keys) == 2
    with pytest.raises(ValueError, match="max_keys"):
        MemoryKeys(max_keys=0)


def test_lookups_bound_what_is_running() -> None:
    keys = LookupKeys(lambda key: False, max_running=1)
    assert [keys.claim(key, "token") for key in "ab"] == [Seen.NEW, Seen.NO_ROOM]


def test_a_lookup_that_fails_leaves_nothing_claimed() -> None:
    answers: list[Callable[[], bool]] = [lambda: 1 // 0 > 0, lambda: False]
    keys = LookupKeys(lambda key: answers.pop(0)())
    with pytest.raises(ZeroDivisionError):
        keys.claim("a", "token")
    assert keys.claim("a", "token") is Seen.NEW


def test_memory_forgets_when_it_is_time() -> None:
    now = [0.0]
    keys = MemoryKeys(ttl_seconds=100, claim_seconds=10, clock=lambda: now[0])
    keys.claim("done", "token")
    keys.finish("done", "token")
    keys.claim("stuck", "first")
    now[0] = 9.9
    assert keys.claim("stuck", "second") is Seen.RUNNING
    now[0] = 10.0
    assert keys.claim("stuck", "second") is Seen.NEW
    keys.forget("stuck", "first")
    assert keys.claim("stuck", "third") is Seen.RUNNING
    now[0] = 99.9
    assert keys.claim("done", "token") is Seen.DONE
    now[0] = 100.0
    assert keys.claim("done", "token") is Seen.NEW


def test_redis_forgets_when_it_is_time(redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        keys = RedisKeys(client, prefix="p:", ttl_seconds=1_000, claim_seconds=100)
        keys.claim("a", "token")
        assert 50_000 < int(client.pttl("p:a")) <= 100_000
        keys.claim("a", "another")
        keys.finish("a", "token")
        assert 950_000 < int(client.pttl("p:a")) <= 1_000_000
        assert client.keys() == [b"p:a"]
