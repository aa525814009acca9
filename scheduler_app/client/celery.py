"""A base class for tasks of your own Celery application that are sent by schedules with
`completion="callback"`: it tells the scheduler how each of them ended.

>>> from celery import Celery
>>> from scheduler_app.client.celery import ScheduledTask
>>> app = Celery("shop", task_cls=ScheduledTask)
>>> app.conf.scheduler_url = "http://scheduler:8080"

It needs Celery, which the application has, and nothing of the scheduler but this client.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from celery import Task

from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.scheduler import Scheduler

#: Of an exception's text, as much as the API takes as a reason.
MAX_REASON = 500
#: The seconds of each try, and the tries beyond the first: they bound how long a worker waits for them.
TIMEOUT_SECONDS = 5.0
RETRIES = 3

_HEADERS = "scheduler_"
#: Arguments are secret: what a history shows has this in their place. Shorter texts are parts of words.
_MASK = "********"
_LEAST_SECRET = 6
_MOST_SECRETS = 500
_log = logging.getLogger(__name__)


class ScheduledTask(Task):  # type: ignore[misc]
    """Completes its event when the task succeeds, and fails it, with the exception (without the texts among
    the arguments), when the task fails for good; Celery's own retries lie in between. A task that no schedule
    sent is an ordinary one.

    The API's address is the setting `scheduler_url` of the application, or SCHEDULER_URL in the environment;
    an API key is not needed. A task never fails because the scheduler cannot be told: that is logged, and the
    event's `completion_timeout_seconds` decides. A class of your own that overrides `on_success` or
    `on_failure` calls them here too.
    """

    abstract = True

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        super().on_success(retval, task_id, args, kwargs)
        self._tell(lambda scheduler, event, token: scheduler.complete(event, token))

    def on_failure(self, exc: BaseException, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        super().on_failure(exc, task_id, args, kwargs, einfo)
        reason = without_arguments(f"{type(exc).__name__}: {exc}", args, kwargs)[:MAX_REASON]
        self._tell(lambda scheduler, event, token: scheduler.fail(event, token, reason))

    def signature_from_request(self, request: Any = None, *args: Any, **kwargs: Any) -> Any:
        """What `retry` sends: Celery leaves the headers of a message out of it."""
        signature = super().signature_from_request(request, *args, **kwargs)
        told = _headers_of(self.request if request is None else request)
        if told:
            signature.options["headers"] = {**(signature.options.get("headers") or {}), **told}
        return signature

    def _tell(self, what: Callable[[Scheduler, str, str], object]) -> None:
        headers = _headers_of(self.request)
        event, token = headers.get("scheduler_event_id"), headers.get("scheduler_completion_token")
        if not event or not token:
            return
        url = self.app.conf.get("scheduler_url") or os.environ.get("SCHEDULER_URL")
        if not url:
            _log.error(
                "The scheduler is not told how event %s ended: set scheduler_url, or SCHEDULER_URL", event
            )
            return
        try:
            with Scheduler(url, timeout=TIMEOUT_SECONDS, retries=RETRIES) as scheduler:
                what(scheduler, event, token)
        except SchedulerError as error:
            _log.warning("The scheduler was not told how event %s ended: %s", event, error)


def _headers_of(request: Any) -> Mapping[str, Any]:
    """Those of the scheduler, which Celery makes attributes of the request."""
    return {name: value for name, value in vars(request).items() if name.startswith(_HEADERS)}


def without_arguments(text: str, args: object, kwargs: object) -> str:
    """Returns `text` with a mask for each text among the arguments of a task, and nothing but the mask where
    they are too many or too deep. The server masks its own texts in the same way."""
    secrets: set[str] = set()
    try:
        for secret in _texts((args, kwargs)):
            secrets.add(secret)
            if len(secrets) > _MOST_SECRETS:
                return _MASK
    except RecursionError:
        return _MASK
    for secret in sorted(secrets, key=lambda each: (-len(each), each)):
        text = text.replace(secret, _MASK)
    return text


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= _LEAST_SECRET:
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)
