"""Settings that give names to URLs: `billing=redis://…,reports=amqp://…`."""

import re
from urllib.parse import urlsplit

NAME = re.compile(r"[a-zA-Z0-9-]{1,64}\Z")
MAX_URLS = 20
BROKERS = ("redis", "rediss", "sentinel", "amqp", "amqps")
#: Those whose results can be asked for many tasks at once.
RESULT_BACKENDS = ("redis", "rediss")

NamedUrls = tuple[tuple[str, str], ...]


def parse_brokers(value: str) -> NamedUrls:
    """Reads CELERY_BROKERS. Raises ValueError, whose text shows no URL: they have passwords."""
    return _parse(value, BROKERS)


def parse_result_backends(value: str) -> NamedUrls:
    """Reads CELERY_RESULT_BACKENDS. Raises ValueError as `parse_brokers`."""
    return _parse(value, RESULT_BACKENDS)


def _parse(value: str, schemes: tuple[str, ...]) -> NamedUrls:
    named: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in value.split(","))):
        name, equals, url = (part.strip() for part in item.partition("="))
        if not equals or not NAME.match(name):
            raise ValueError(
                "must be names and URLs, such as billing=redis://host:6379/0, separated by commas; a name has"
                " 1 to 64 letters, digits and hyphens, and a comma in a password is written %2C"
            )
        if name in named:
            raise ValueError(f"must not have the name {name} twice")
        try:
            parts = urlsplit(url.split(";")[0])
            usable = parts.scheme in schemes and bool(parts.hostname) and (parts.port or True)
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(
                f"must have a URL for {name} that begins with {', '.join(f'{each}://' for each in schemes)}"
                " and has a host"
            )
        named[name] = url
    if len(named) > MAX_URLS:
        raise ValueError(f"must not have more than {MAX_URLS} URLs")
    return tuple(named.items())
