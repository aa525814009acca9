"""What an operator is shown of a driver's error."""

import pytest

from scheduler_app.health.check import error_summary


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (OSError("refused (configured timeouts: socketTimeoutMS: 5.0ms), Timeout: 5s"), "refused"),
        (ValueError("mongodb://app:s3cret@db/ is\n  not valid."), "mongodb://app:***@db/ is not valid"),
        (TimeoutError(), "TimeoutError"),
    ],
    ids=["the driver's state", "a password, several lines", "no text"],
)
def test_an_error_is_one_line_without_passwords_and_the_driver_s_state(error: Exception, shown: str) -> None:
    assert error_summary(error) == shown
