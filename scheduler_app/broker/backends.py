"""The brokers that there are, by the scheme of BROKER_URL. A new one is a module or folder and a row here."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from kombu.transport import resolve_transport

from scheduler_app.broker.backend import Backend
from scheduler_app.broker.rabbitmq.backend import RabbitmqBackend
from scheduler_app.broker.redis.backend import RedisBackend
from scheduler_app.config import InvalidSetting

BACKENDS: tuple[Backend, ...] = (RedisBackend(), RabbitmqBackend())

_BY_SCHEME: Mapping[str, Backend] = {scheme: backend for backend in BACKENDS for scheme in backend.transports}


def backend_of(url: str) -> Backend:
    """Returns the backend of a broker URL, ready to be used: its transport is installed.

    A scheme without a row is left to kombu. Raises InvalidSetting where no installed transport opens it.
    """
    scheme = urlsplit(url).scheme
    if "+cluster" in scheme:
        raise InvalidSetting(
            "BROKER_URL cannot be used (Redis Cluster is not supported: name one Redis by redis://, or"
            " several behind Sentinel by sentinel://)"
        )
    backend = _BY_SCHEME.get(scheme, _KOMBU)
    backend.install()
    try:
        resolve_transport(scheme)
    except (KeyError, ValueError, ImportError) as error:
        schemes = " or ".join(f"{each}://" for each in _BY_SCHEME)
        raise InvalidSetting(
            f"BROKER_URL cannot be used ({str(error).strip(chr(39))}); it begins with {schemes}"
        ) from None
    return backend


_KOMBU = Backend()
