"""The settings on which processes must agree, as each reports them; nothing in them is secret."""

import hashlib
from collections.abc import Iterator
from typing import Any

from scheduler_app.config import Settings


def shared_settings(settings: Settings) -> dict[str, Any]:
    """By the setting's name, as JSON values."""
    return {
        "CALLBACK_ALLOWED_NETWORKS": ",".join(_items(settings.callback_allowed_networks)),
        "CALLBACK_DENIED_PORTS": ",".join(_items(settings.callback_denied_ports)),
        "DISPATCH_HORIZON_SECONDS": settings.horizon_seconds,
        "PREQUEUER_EVENT_TIMEFRAME_MINUTES": settings.prequeuer_event_timeframe_minutes,
        "RETENTION_DAYS": settings.retention_days,
        "MESSAGE_RETENTION_DAYS": settings.message_retention_days,
        "SECRETS_KEY": fingerprint(settings.secrets_key),
    }


def fingerprint(keys: str) -> str:
    """Shows whether two processes seal with the same key, and nothing of the key: that is 256 random bits."""
    newest = next(_items(keys), "")
    if not newest:
        return "not set"
    return f"key {hashlib.sha256(f'rrule-scheduler:{newest}'.encode()).hexdigest()[:8]}"


def _items(text: str) -> Iterator[str]:
    return (item.strip() for item in text.split(",") if item.strip())
