"""kombu's transport over py-amqp, with connections that know which deployment they are of."""

from typing import Any

from kombu.transport import pyamqp

from scheduler_app.broker.rabbitmq.channel import LaneChannel

#: What kombu reads of the transport's options, and hands to the connection all the same.
_KOMBUS_OWN = ("max_retries", "interval_start", "interval_step", "interval_max")


class LaneConnection(pyamqp.Connection):
    """`name_prefix` begins each name; a message is confirmed within `confirm_seconds`, or not at all."""

    Channel = LaneChannel

    def __init__(self, *args: Any, name_prefix: str, confirm_seconds: float, **kwargs: Any) -> None:
        self.name_prefix = name_prefix
        self.confirm_seconds = confirm_seconds
        self.in_lanes: set[str] = set()
        for option in _KOMBUS_OWN:
            kwargs.pop(option, None)
        super().__init__(*args, confirm_publish=True, **kwargs)


def _connection(**options: Any) -> pyamqp.Connection:
    """One of ours, or kombu's own to a broker of somebody else's application (CELERY_BROKERS), whose queues
    have other names and forms."""
    return LaneConnection(**options) if "name_prefix" in options else pyamqp.Connection(**options)


class LaneTransport(pyamqp.Transport):
    Connection = staticmethod(_connection)  # type: ignore[assignment]  # kombu only calls it


class LaneSSLTransport(pyamqp.SSLTransport):
    """The same by TLS, where the certificate has to be that of the host in the URL."""

    Connection = staticmethod(_connection)  # type: ignore[assignment]  # kombu only calls it

    def establish_connection(self) -> Any:
        client: Any = self.client
        host, given = client.hostname, client.ssl
        client.ssl = {"server_hostname": host, **(given if isinstance(given, dict) else {})}
        try:
            return super().establish_connection()
        finally:
            # kombu makes an address of `localhost`, which no certificate is for, and keeps that.
            client.hostname, client.ssl = host, given
