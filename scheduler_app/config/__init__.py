"""Settings: typed, read once, and refused at the start with their own name when they are wrong."""

from scheduler_app.config.constants import (
    DISPATCH_LEASE_SECONDS,
    EXPAND_LEASE_SECONDS,
    MAX_TIMEOUT_SECONDS,
    VISIBILITY_TIMEOUT_SECONDS,
)
from scheduler_app.config.settings import InvalidSetting, Settings, is_loopback, names
from scheduler_app.config.sources import load_settings

__all__ = [
    "DISPATCH_LEASE_SECONDS",
    "EXPAND_LEASE_SECONDS",
    "MAX_TIMEOUT_SECONDS",
    "VISIBILITY_TIMEOUT_SECONDS",
    "InvalidSetting",
    "Settings",
    "is_loopback",
    "load_settings",
    "names",
]
