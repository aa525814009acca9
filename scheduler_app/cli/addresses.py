"""The address at which this machine reaches the API."""

from scheduler_app.config import Settings

_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def api_host(settings: Settings) -> str:
    """Returns the host to connect to: the one the API listens on, or loopback when it listens on all."""
    return _LOOPBACK_OF.get(settings.api_host, settings.api_host)


def api_url(settings: Settings) -> str:
    host = api_host(settings)
    return f"http://[{host}]:{settings.api_port}" if ":" in host else f"http://{host}:{settings.api_port}"
