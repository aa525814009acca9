"""The row of HTTP callbacks in the registry of actions."""

import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from scheduler_app.actions.executor import Executor
from scheduler_app.actions.http import document
from scheduler_app.actions.http.guard import Guard, guard_of
from scheduler_app.actions.http.reachable import check_reachable
from scheduler_app.actions.kind import ActionKind, Document
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.http_action import HTTP, HttpAction


class HttpKind(ActionKind[HttpAction]):
    """A request to a URL. Its isolation key is the receiver's origin; a status says how it went."""

    name = HTTP
    without_secrets = document.WITHOUT_SECRETS
    not_for_beats = ("headers", "body", "query")
    in_their_place: ClassVar[Document] = {"headers": [], "body": None}

    def fields(self) -> None:
        return None

    def to_document(self, action: HttpAction) -> Document:
        return document.to_document(action)

    def from_document(self, stored: Mapping[str, Any]) -> HttpAction:
        return document.from_document(stored)

    def split(self, stored: Document) -> tuple[Document, Document]:
        return document.split(stored)

    def join(self, stored: Document, secrets: Mapping[str, Any]) -> Document:
        return document.join(stored, secrets)

    def checker(self, settings: Settings) -> Callable[[HttpAction], None]:
        """What is returned raises InvalidField("callback_url") for an address that the guard refuses."""
        return partial(_check, guard=guard_of(settings))

    def executor(self, settings: Settings, ready: Callable[[], None]) -> Executor:
        """`ready` is not used: requests make progress in the courier's thread alone."""
        from scheduler_app.actions.http.executor import HttpExecutor
        from scheduler_app.actions.http.sender import Sender

        check_ca_bundle(settings.callback_ca_bundle)
        sender = Sender(guard_of(settings), ca_bundle=settings.callback_ca_bundle or None)
        return HttpExecutor(sender, concurrency=settings.callback_origin_concurrency)


def _check(action: HttpAction, guard: Guard) -> None:
    if action.destination is None:
        check_reachable(action.url, guard)


def check_ca_bundle(path: str) -> None:
    """Raises InvalidSetting if CALLBACK_CA_BUNDLE is set and is no file of certificates."""
    if not path:
        return
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # ssl.SSLError is one, too
        raise InvalidSetting(
            f"CALLBACK_CA_BUNDLE {path} cannot be read as certificates ({error.strerror or error});"
            " give a PEM file that this user may read, or none for certifi's"
        ) from None
