"""What this side asks of a broker that is spoken to by TLS (`amqps://`, `rediss://`), and shows to it."""

import ssl
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BrokerTls:
    """The server's certificate is always verified, by authority and by name: kombu does neither for Redis,
    and not the second for RabbitMQ, unless it is told to."""

    ca_bundle: str = ""
    """A file of certificate authorities; empty: the system's."""
    client_certificate: str = ""
    """A PEM file with this side's certificate and its key; empty: none is shown."""

    def options(self, url: str) -> dict[str, Any] | None:
        """What kombu and redis-py take for the broker at `url`; None if it is spoken to without TLS."""
        scheme = url.partition(":")[0]
        if scheme == "amqps":
            # The name to verify is the transport's to add: it knows which of several hosts it connects to.
            return {"cert_reqs": ssl.CERT_REQUIRED, **self._files("")}
        if scheme == "rediss":
            return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, **self._files("ssl_")}
        return None

    def _files(self, prefix: str) -> dict[str, str]:
        named = {"ca_certs": self.ca_bundle, "certfile": self.client_certificate}
        return {f"{prefix}{name}": path for name, path in named.items() if path}


#: The system's authorities, and no certificate of our own.
PLAIN_TLS = BrokerTls()
