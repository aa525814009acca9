"""Secrets that are easily told from everything else, one for each place that a secret can be in."""

from base64 import b64encode
from typing import Any
from urllib.parse import quote

from cryptography.fernet import Fernet

HEADER = "canary-authorization-4b1d"
CUSTOM_HEADER = "canary-custom-header-77c0"
COOKIE = "canary-cookie-e2f9"
BASIC = "canary-basic-password-08aa"
BODY = "canary-json-body-51ce"
TEXT_BODY = "canary-text-body-9d3f"
METADATA = "canary-metadata-3e8a"
VARIABLE = "canary-variable-of-a-command-b7d3"
ARGUMENT = "canary-argument-of-a-task-2ce1"
KEYWORD_ARGUMENT = "canary-keyword-argument-of-a-task-61b0"
TASK_HEADER = "canary-header-of-a-task-9a40"
QUERY = "canary/query+value-c6e1"
API_KEY = "canary-api-key-0123456789abcdef"
SECRETS_KEY = Fernet.generate_key().decode()

#: By the place, as they are given.
CANARIES = {
    "header": HEADER,
    "custom header": CUSTOM_HEADER,
    "cookie": COOKIE,
    "basic": BASIC,
    "body": BODY,
    "text body": TEXT_BODY,
    "metadata": METADATA,
    "variable": VARIABLE,
    "argument": ARGUMENT,
    "keyword argument": KEYWORD_ARGUMENT,
    "task header": TASK_HEADER,
    "query": QUERY,
    "API key": API_KEY,
    "SECRETS_KEY": SECRETS_KEY,
}


def request_fields(url: str) -> dict[str, Any]:
    """A schedule with a canary in each place of its request; the body is JSON."""
    return {
        "callback_url": f"{url}?plain=1&signature={quote(QUERY, safe='')}",
        "method": "POST",
        "headers": {
            "Authorization": f"Bearer {HEADER}",
            "X-Whatever": CUSTOM_HEADER,
            "Cookie": f"theme=dark; sid={COOKIE}",
            "X-Basic": "Basic " + b64encode(f"user:{BASIC}".encode()).decode(),
        },
        "json": {"order": {"secret": BODY}},
    }


def message_fields(url: str) -> dict[str, Any]:
    """The same for a message, which has metadata, too."""
    fields = request_fields(url)
    body = fields.pop("json")
    return {**fields, "payload": body, "metadata": {"trace": METADATA}}


def command() -> dict[str, Any]:
    """An action that prints its environment, with a canary in it."""
    return {"type": "command", "command": ["/usr/bin/env"], "env": {"PASSWORD": VARIABLE}}


def celery_task() -> dict[str, Any]:
    """An action with a canary in each place of a task."""
    return {
        "type": "celery_task",
        "task": "shop.bill",
        "broker": "shop",
        "args": [{"to": ARGUMENT}],
        "kwargs": {"key": KEYWORD_ARGUMENT},
        "headers": {"x-auth": TASK_HEADER},
        "wait": True,
    }


def found_in(text: str, **more: str) -> list[str]:
    """The places whose canary stands in a text: as it is, percent-encoded, or in base64."""
    return [
        place for place, canary in (CANARIES | more).items() if any(form in text for form in _forms(canary))
    ]


def _forms(canary: str) -> list[str]:
    data = canary.encode()
    # Those characters in base64 that no neighbour changes, at each of the three places it may begin.
    encoded = [b64encode(bytes(offset) + data).decode()[4:-4] for offset in range(3)]
    return [canary, quote(canary, safe=""), *encoded]
