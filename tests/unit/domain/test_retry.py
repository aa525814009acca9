"""Which failures are tried again, and when."""

import pytest

from scheduler_app.config import Settings
from scheduler_app.domain.retry import MAX_RETRY_AFTER_SECONDS, RETRY_CODES, SUCCESS_CODES, Codes, RetryPolicy


def test_delays_double_up_to_their_cap_and_are_drawn_from_the_upper_half() -> None:
    policy = RetryPolicy(backoff_seconds=1, backoff_max_seconds=10)
    lowest = [policy.delay(attempt, draw=lambda: 0.0) for attempt in range(1, 7)]
    highest = [policy.delay(attempt, draw=lambda: 1.0) for attempt in range(1, 7)]
    assert lowest == [0.5, 1, 2, 4, 5, 5]
    assert highest == [1, 2, 4, 8, 10, 10]


def test_a_receiver_may_ask_for_more_patience_but_not_for_less_nor_for_ever() -> None:
    policy = RetryPolicy(backoff_seconds=4)
    assert policy.delay(1, retry_after=30, draw=lambda: 0.0) == 30
    assert policy.delay(1, retry_after=1, draw=lambda: 0.0) == 2
    assert policy.delay(1, retry_after=1e12, draw=lambda: 0.0) == MAX_RETRY_AFTER_SECONDS


def test_the_fiftieth_attempt_of_a_long_policy_has_a_delay() -> None:
    assert RetryPolicy(max_retries=50).delay(5000, draw=lambda: 1.0) == 3_600


def test_retries_are_spent_after_the_first_attempt_and_all_retries() -> None:
    policy = RetryPolicy(max_retries=2)
    assert [policy.spent(attempt) for attempt in (1, 2, 3)] == [False, False, True]


@pytest.mark.parametrize(
    ("codes", "inside", "outside"),
    [
        (SUCCESS_CODES, (200, 204, 299), (199, 300, 404)),
        (RETRY_CODES, (408, 425, 429, 500, 599), (404, 410, 200)),
        (Codes((304, "500-502")), (304, 500, 502), (503, 305)),
    ],
)
def test_status_sets_mean_what_they_say(
    codes: Codes, inside: tuple[int, ...], outside: tuple[int, ...]
) -> None:
    assert all(status in codes for status in inside)
    assert not any(status in codes for status in outside)


@pytest.mark.parametrize("item", ["6xx", 99, 600, "500-", "-500", "504-500", "xx", "", "２００", "5xxx"])
def test_what_is_no_status_is_refused(item: int | str) -> None:
    with pytest.raises(ValueError, match="no HTTP status"):
        Codes((item,))


def test_the_default_policy_outlasts_a_receiver_s_repair() -> None:
    policy = RetryPolicy()
    ceilings = [policy.ceiling(attempt) for attempt in range(1, policy.max_retries + 1)]
    assert ceilings == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
    assert Settings().worker_max_retries == policy.max_retries
