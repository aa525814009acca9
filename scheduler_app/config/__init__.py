"""Settings: typed, read once, and refused at the start with their own name when they are wrong."""

from scheduler_app.config.settings import (
    DISPATCH_LEASE_SECONDS,
    EXPAND_LEASE_SECONDS,
    VISIBILITY_TIMEOUT_SECONDS,
    InvalidSetting,
    Settings,
    is_loopback,
    names,
)
from scheduler_app.config.sources import (
    CONFIG_VARIABLE,
    RUN_FILE,
    conceal_secrets,
    is_private,
    load_settings,
    secret_names,
    secret_values,
)
