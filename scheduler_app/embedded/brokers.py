"""The brokers for one machine: Redis and RabbitMQ.

Redis never evicts a message, and keeps all of them over a restart. RabbitMQ has an epmd (Erlang's
directory of nodes) of its own: the system's would be shared with other programs, and one that RabbitMQ
starts by itself outlives it.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import amqp
from amqp.exceptions import AMQPError

from scheduler_app.embedded.binaries import NoBinary, find_rabbitmq_server, find_redis_server
from scheduler_app.embedded.parent_death import with_parent_death_signal
from scheduler_app.embedded.server import LOOPBACK, Server, free_port, write_private

_ERROR = re.compile(r"(?i)\b(fatal|error|bad|failed|can't|could not|out of memory|already in use)\b")


class Redis(Server):
    """With the settings of deploy/redis.conf."""

    name = "redis"
    title = "Redis"

    @property
    def url(self) -> str:
        login = f":{self._password}@" if self._password else ""
        return f"redis://{login}{LOOPBACK}:{self.port}/0"

    def prepare(self) -> None:
        super().prepare()
        if self._password:
            # In a file: every user of the machine can see command lines.
            write_private(self._config, f"requirepass {self._password}\n")

    def command(self) -> list[str]:
        return [
            str(find_redis_server()),
            *([str(self._config)] if self._password else []),
            *("--bind", LOOPBACK),
            *("--port", str(self.port)),
            *("--dir", str(self.directory)),
            *("--appendonly", "yes"),
            *("--appendfsync", "everysec"),
            *("--save", ""),
            *("--maxmemory-policy", "noeviction"),
        ]

    def ready(self) -> bool:
        """Whether it answers and works in this folder: on a taken port another server would answer."""
        # The server starts while this loads.
        from redis import Redis as Client
        from redis.exceptions import RedisError

        with Client.from_url(self.url, socket_timeout=2, socket_connect_timeout=2) as client:
            try:
                return self._works_here(client.config_get("dir")["dir"])
            except RedisError:
                return False  # not up yet, or still reading its file

    @property
    def _config(self) -> Path:
        return self.directory / "redis.conf"

    def error_line(self, line: str) -> str | None:
        # Redis's levels do not help: its greeting is a warning, too, and errors at the start have no level.
        return line.strip() if _ERROR.search(line) else None


_USER = "scheduler"
#: Names the data's folder; the epmd of its own keeps it apart from others of the same name.
_NODE = "scheduler@localhost"


class RabbitMQ(Server):
    """With a password of its own or, without one, the one that RabbitMQ has by default for this machine."""

    name = "rabbitmq"
    title = "RabbitMQ"
    _epmd: "subprocess.Popen[bytes] | None" = None
    _epmd_port = _between_nodes = 0

    @property
    def url(self) -> str:
        return f"amqp://{_USER}:{self._login}@{LOOPBACK}:{self.port}//"

    def prepare(self) -> None:
        super().prepare()
        write_private(self._file("definitions.json"), json.dumps(self._definitions()))
        write_private(
            self._file("rabbitmq.conf"),
            f"listeners.tcp.default = {LOOPBACK}:{self.port}\n"
            f"load_definitions = {self._file('definitions.json')}\n"
            "log.file = false\n"
            "log.console = true\n"
            "log.console.level = info\n"
            # By default 512 MB, which a small machine may not have.
            "raft.wal_max_size_bytes = 67108864\n",
        )
        self._end_epmd()
        self._epmd_port, self._between_nodes = free_port(), free_port()
        self._epmd = subprocess.Popen(  # noqa: S603
            with_parent_death_signal([_found("epmd"), "-port", str(self._epmd_port), "-address", LOOPBACK]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def command(self) -> list[str]:
        settings = (f"{name}={value}" for name, value in self.environment().items())
        return ["env", *settings, str(find_rabbitmq_server())]

    def environment(self) -> dict[str, str]:
        """The variables that tell RabbitMQ, and its own commands such as rabbitmqctl, of this server."""
        folder = self.directory.resolve()
        found = {
            # Where Erlang keeps its cookie.
            "HOME": folder,
            "RABBITMQ_NODENAME": _NODE,
            "RABBITMQ_DIST_PORT": self._between_nodes,
            "ERL_EPMD_PORT": self._epmd_port,
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "RABBITMQ_MNESIA_BASE": folder / "data",
            "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_CONFIG_FILE": self._file("rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": self._file("enabled_plugins"),
            # A file that is not there: the machine's own RabbitMQ has its settings in /etc.
            "RABBITMQ_CONF_ENV_FILE": self._file("rabbitmq-env.conf"),
            # Without a shell of Erlang's, the script becomes the server instead of waiting for it: a signal
            # to this process is one to the server.
            "RABBITMQ_ALLOW_INPUT": "1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput -kernel inet_dist_use_interface {127,0,0,1}",
        }
        return {name: str(value) for name, value in found.items()}

    def ready(self) -> bool:
        """Whether it answers and works in this folder: on a taken port another server would answer."""
        connection = amqp.Connection(
            f"{LOOPBACK}:{self.port}", _USER, self._login, connect_timeout=2, read_timeout=2
        )
        try:
            connection.connect()
            works_here = self._works_here(str(connection.server_properties.get("cluster_name")))
            connection.close()
        except (AMQPError, OSError):
            return False  # not up yet, or still reading its definitions
        return works_here

    def error_line(self, line: str) -> str | None:
        return line.strip() if "[error]" in line or "ERROR" in line or "BOOT FAILED" in line else None

    def stop(self, *, timeout: float = 10) -> None:
        super().stop(timeout=timeout)
        self._end_epmd()

    def kill(self) -> None:
        super().kill()
        self._end_epmd()

    @property
    def _login(self) -> str:
        return self._password or "guest"

    def _definitions(self) -> dict[str, object]:
        """What RabbitMQ reads at each start, and makes so, whatever it had before."""
        return {
            "vhosts": [{"name": "/"}],
            "users": [{"name": _USER, "password": self._login, "tags": "administrator"}],
            "permissions": [{"user": _USER, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
            "global_parameters": [{"name": "cluster_name", "value": str(self.directory.resolve())}],
        }

    def _file(self, name: str) -> Path:
        return self.directory.resolve() / name

    def _end_epmd(self) -> None:
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()
            self._epmd = None


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NoBinary(f"No {name} is on PATH: install Erlang, which RabbitMQ needs.")
    return path
