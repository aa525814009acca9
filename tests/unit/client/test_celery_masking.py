"""A task's arguments are masked alike by the server and by the client, which may import nothing of it."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_app.actions.celery_task.broker_thread import MAX_SECRETS, redacted
from scheduler_app.client.celery import without_arguments
from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.masking import MASK

#: Few letters, so that texts overlap and stand in each other.
_TEXTS = st.text("abé ", max_size=12)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), _TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_TEXTS, inner, max_size=4)),
    max_leaves=12,
)


def masked_by_both(text: str, args: list[Any], kwargs: dict[str, Any]) -> str:
    action = CeleryTaskAction("shop.bill", "shop", args=json.dumps(args), kwargs=json.dumps(kwargs))
    by_server, by_client = redacted(text, action), without_arguments(text, args, kwargs)
    assert by_client == by_server
    return by_client


_EVERY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
_GIVEN = given(
    args=st.lists(_VALUES, max_size=4),
    kwargs=st.dictionaries(_TEXTS, _VALUES, max_size=4),
    text=st.lists(_TEXTS, min_size=1, max_size=8).map("".join),
)


@settings(_EVERY, max_examples=50, derandomize=True, database=None)
@_GIVEN
def test_both_mask_the_same(args: list[Any], kwargs: dict[str, Any], text: str) -> None:
    masked_by_both(text, args, kwargs)


@pytest.mark.long
@settings(_EVERY, max_examples=500)
@_GIVEN
def test_both_mask_the_same_in_hundreds(args: list[Any], kwargs: dict[str, Any], text: str) -> None:
    masked_by_both(text, args, kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (["s3cret-of-mine"], {}),
        ([], {"password": {"is": ["in", "here", "s3cret-of-mine"]}}),
        (["said-again"] * (MAX_SECRETS + 1), {"password": "s3cret-of-mine"}),
        ([f"secret {number}" for number in range(MAX_SECRETS - 1)], {"password": "s3cret-of-mine"}),
    ],
    ids=["args", "deep", "repeated", "as many as there may be"],
)
def test_a_secret_is_masked(args: list[Any], kwargs: dict[str, Any]) -> None:
    assert masked_by_both("no s3cret-of-mine here", args, kwargs) == f"no {MASK} here"


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([f"secret {number}" for number in range(MAX_SECRETS + 1)], {}),
        ([f"secret {number}" for number in range(MAX_SECRETS)], {"password": "s3cret-of-mine"}),
    ],
    ids=["args", "together"],
)
def test_nothing_is_shown_where_secrets_are_too_many(args: list[Any], kwargs: dict[str, Any]) -> None:
    assert masked_by_both("any text", args, kwargs) == MASK


def test_texts_that_overlap_are_masked_in_one_order() -> None:
    for _ in range(20):
        assert masked_by_both("abcdefgh", ["cdefgh", "abcdef"], {}) == f"{MASK}gh"


def test_nothing_is_shown_where_arguments_are_too_deep() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert without_arguments("any text", deep, {}) == MASK
