"""Reading the `Retry-After` header."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def parse_retry_after(value: str, now: datetime) -> float | None:
    """Seconds (≥ 0) from `now` (aware) that a receiver asks us to wait, or None if `value` is unusable.

    RFC 9110 §10.2.3: a whole number of seconds, or an HTTP-date in any of its three forms (§5.6.7). A date in
    the past is 0. How long a wait is worth obeying is the caller's to judge: the number may be huge.
    """
    value = value.strip()
    if value.isascii() and value.isdigit():
        # Enough for 300,000 years; more digits are an attack on int(), not a wish.
        return float(value) if len(value) <= 13 else None
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())
