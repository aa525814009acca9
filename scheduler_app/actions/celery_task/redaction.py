"""Masks a task's secrets in what its broker, its application or our own code says of it."""

import json
from collections.abc import Iterator

from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.masking import MASK

#: Shorter texts are parts of ordinary words, and no secrets.
MIN_SECRET = 6
#: Values looked for: what is deeper or later is not masked one by one, but then nothing is shown.
MAX_SECRETS = 500


def redacted(text: str, action: CeleryTaskAction, completion_token: str | None = None) -> str:
    """Returns `text` with a mask for each text among the arguments and headers of the task, and for the token
    that it was sent."""
    if not text:
        return text
    secrets = {value for _, value in action.headers if len(value) >= MIN_SECRET}
    if completion_token is not None:
        secrets.add(completion_token)
    for arguments in (action.args, action.kwargs):
        try:
            secrets.update(_texts(json.loads(arguments)))
        except (ValueError, RecursionError):
            return MASK
        if len(secrets) > MAX_SECRETS:
            return MASK
    for secret in sorted(secrets, key=lambda each: (-len(each), each)):
        text = text.replace(secret, MASK)
    return text


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= MIN_SECRET:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
