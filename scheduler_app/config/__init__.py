"""Settings: typed, read once, and refused at the start with their own name when they are wrong."""

from scheduler_app.config.concealment import conceal_secrets, secret_names, secret_values
from scheduler_app.config.constants import (
    DISPATCH_LEASE_SECONDS,
    EXPAND_LEASE_SECONDS,
    MAX_TIMEOUT_SECONDS,
    VISIBILITY_TIMEOUT_SECONDS,
)
from scheduler_app.config.settings import InvalidSetting, Settings, is_loopback, names
from scheduler_app.config.sources import CONFIG_VARIABLE, RUN_FILE, is_private, load_settings

__all__ = [
    "CONFIG_VARIABLE",
    "DISPATCH_LEASE_SECONDS",
    "EXPAND_LEASE_SECONDS",
    "MAX_TIMEOUT_SECONDS",
    "RUN_FILE",
    "VISIBILITY_TIMEOUT_SECONDS",
    "InvalidSetting",
    "Settings",
    "conceal_secrets",
    "is_loopback",
    "is_private",
    "load_settings",
    "names",
    "secret_names",
    "secret_values",
]
