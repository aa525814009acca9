"""Brokers that are spoken to by TLS, and ask for a certificate of ours."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scheduler_app.embedded import RabbitMQ, Redis, free_port
from tests.authority import Authority
from tests.processes import wait_until
from tests.tls_link import TlsLink

KINDS = ("redis", "rabbitmq")
#: The name in the brokers' certificate. `127.0.0.1` is another one.
HOST = "localhost"


@dataclass(frozen=True)
class TlsBroker:
    url: str
    ca_bundle: str
    client_certificate: str

    @property
    def by_another_name(self) -> str:
        return self.url.replace(HOST, "127.0.0.1")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "BROKER_URL": self.url,
            "BROKER_CA_BUNDLE": self.ca_bundle,
            "BROKER_CLIENT_CERTIFICATE": self.client_certificate,
        }


class TlsRabbitMQ(RabbitMQ):
    """It listens for TLS beside what it listens for anyway."""

    def __init__(self, folder: Path, certificate: Path, bundle: Path) -> None:
        super().__init__(folder, free_port(), password="only-for-tests")
        self.tls_port = free_port()
        self._certificate, self._bundle = certificate, bundle

    def prepare(self) -> None:
        super().prepare()
        with (self.directory / "rabbitmq.conf").open("a") as settings:
            settings.write(
                f"listeners.ssl.default = 127.0.0.1:{self.tls_port}\n"
                f"ssl_options.cacertfile = {self._bundle}\n"
                f"ssl_options.certfile = {self._certificate}\n"
                f"ssl_options.keyfile = {self._certificate}\n"
                "ssl_options.verify = verify_peer\n"
                "ssl_options.fail_if_no_peer_cert = true\n"
            )


@contextmanager
def tls_broker(kind: str, folder: Path) -> Iterator[TlsBroker]:
    """Starts one of KINDS."""
    authority = Authority(folder, "brokers")
    client = str(authority.certificate("scheduler"))
    if kind == "redis":
        context = authority.server(HOST)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.bundle)
        with Redis(folder / kind) as redis, TlsLink(redis.port, context) as link:
            yield TlsBroker(f"rediss://{HOST}:{link.port}/0", str(authority.bundle), client)
        return
    with TlsRabbitMQ(folder / kind, authority.certificate(HOST), authority.bundle) as rabbitmq:
        plain = rabbitmq.url.replace("amqp://", "amqps://").replace("127.0.0.1", HOST)
        url = plain.replace(f":{rabbitmq.port}/", f":{rabbitmq.tls_port}/")
        # It listens for TLS last of all, when it answers without TLS already.
        wait_until(lambda: _listens(rabbitmq.tls_port), "RabbitMQ to listen for TLS")
        yield TlsBroker(url, str(authority.bundle), client)


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
