"""What is looked at before anything is started, so that a wrong setting is one sentence and not a log."""

import errno
import re
from typing import Any

from kombu.connection import Connection
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from scheduler_app.cli.errors import CannotStart
from scheduler_app.embedded import is_free

_SECRET_OPTION = re.compile(r"([?&][^=&\s]*(?:pass|secret|token|propert)[^=&\s]*)=[^&;\s]*", re.IGNORECASE)
_PATIENCE = 5  # seconds
_HIGHEST_PORT = 65_535


def check_port(setting: str, host: str, port: int, remedy: str) -> None:
    """Raises `CannotStart` when a server of ours could not listen there."""
    if port > _HIGHEST_PORT:
        raise CannotStart(f"{setting}: there is no port {port}; {remedy}.")
    try:
        free = is_free(port, host)
    except OSError as error:
        if error.errno == errno.EACCES:
            raise CannotStart(f"{setting}: {port} is a port for root only; {remedy}.") from None
        raise CannotStart(
            f"API_HOST: nothing can listen on {host} ({error.strerror}); give an address of this machine."
        ) from None
    if not free:
        raise CannotStart(f"{setting}: port {port} of {host} is taken by another program; {remedy}.")


def check_mongo(uri: str) -> None:
    """Raises `CannotStart` when there is no replica set behind MONGO_URI within 5 s."""
    try:
        with MongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=_PATIENCE * 1000) as client:
            hello = client.admin.command("hello")
            client.admin.command("ping")
    except (PyMongoError, ValueError) as error:
        raise CannotStart(f"MONGO_URI: {without_password(uri)} does not answer: {_short(error)}.") from None
    if "setName" not in hello and hello.get("msg") != "isdbgrid":
        raise CannotStart(
            f"MONGO_URI: {without_password(uri)} is a mongod on its own, and a replica set is needed (of"
            " one will do): start it with --replSet rs0 and run rs.initiate() once."
        )


def check_broker(setting: str, url: str, sentinel_master: str) -> None:
    """Raises `CannotStart` when the broker does not answer; `setting` names who says where it is."""
    options: dict[str, Any] = {"socket_connect_timeout": 2, "socket_timeout": 2, "max_retries": 1}
    if url.startswith("sentinel:"):
        options["master_name"] = sentinel_master
    try:
        with Connection(url, connect_timeout=2, transport_options=options) as connection:  # type: ignore[no-untyped-call]
            connection.channel()
    except Exception as error:  # each transport has errors of its own
        raise CannotStart(f"{setting}: {without_password(url)} does not answer: {_short(error)}.") from None


def without_password(text: str) -> str:
    """The addresses in a text as they may be shown: without passwords, escaped or not, in options too."""
    text = re.sub(r"//([^/@:\s]*):\S*@", r"//\1:***@", text)
    return _SECRET_OPTION.sub(r"\1=***", text)


def _short(error: Exception) -> str:
    """An error's sentence without the driver's own state."""
    text = without_password(" ".join(str(error).split())) or type(error).__name__
    return re.split(r" \(configured timeouts|, Timeout: |, full error: ", text)[0].rstrip(".")
