"""Times in seconds, on which all processes must agree: they are no settings."""

#: A beat that died holds the schedules it was expanding for this long.
EXPAND_LEASE_SECONDS = 30
#: A dispatcher that died holds the events it was publishing for this long.
DISPATCH_LEASE_SECONDS = 2
#: Redis delivers a message again that no worker has acknowledged for this long.
VISIBILITY_TIMEOUT_SECONDS = 420
#: The longest timeout of a callback.
MAX_TIMEOUT_SECONDS = 300
