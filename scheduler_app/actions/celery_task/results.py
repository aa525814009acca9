"""The tasks that are waited for: their results, looked for together."""

from collections.abc import Mapping
from typing import Any

from scheduler_app.actions.celery_task.application import Application
from scheduler_app.actions.celery_task.asked import Asked, Told
from scheduler_app.actions.celery_task.redaction import redacted
from scheduler_app.actions.executor import Outcome
from scheduler_app.domain.text import one_line

#: Results that one call asks for.
RESULTS_AT_ONCE = 500
SNIPPET_CHARACTERS = 1024
_ENDED = {
    "SUCCESS": Outcome.SUCCESS,
    "FAILURE": Outcome.RETRY,
    "REVOKED": Outcome.PERMANENT,
    "REJECTED": Outcome.PERMANENT,
    "IGNORED": Outcome.SUCCESS,
}


class Results:
    """By task: who waits for it. Bounded by the attempts that the executor has in flight."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._waiting: dict[str, Asked] = {}

    @property
    def waited_for(self) -> int:
        return len(self._waiting)

    def wait_for(self, asked: Asked) -> None:
        self._waiting[asked.event.id] = asked

    def of_earlier(self, asked: Asked) -> Told | None:
        """How a task of an earlier attempt has ended, if well: it need not be sent again. Any other result is
        removed, or it would be taken for that of the task that is sent now."""
        (meta,) = self._found([asked.event.id])
        if meta is None:
            return None
        if meta.get("status") == "SUCCESS":
            return _told(asked, meta)
        self._application.forget(asked.event.id)
        return None

    def look(self, now: float) -> list[Told]:
        """The tasks that have ended. Those whose time is over at `now` are forgotten: the executor has ended
        them."""
        for task_id in [task_id for task_id, asked in self._waiting.items() if asked.until <= now]:
            del self._waiting[task_id]
        told: list[Told] = []
        ids = list(self._waiting)
        for first in range(0, len(ids), RESULTS_AT_ONCE):
            page = ids[first : first + RESULTS_AT_ONCE]
            for task_id, meta in zip(page, self._found(page), strict=True):
                if meta is not None and meta.get("status") in _ENDED:
                    told.append(_told(self._waiting.pop(task_id), meta))
        return told

    def _found(self, ids: list[str]) -> list[dict[str, Any] | None]:
        try:
            return self._application.results(ids)
        except self._application.faults:
            raise
        except Exception as error:
            # One of them cannot be read: a result that is no JSON, most likely. The others can.
            if len(ids) > 1:
                middle = len(ids) // 2
                return self._found(ids[:middle]) + self._found(ids[middle:])
            return [{"status": "REJECTED", "result": f"the result cannot be read: {type(error).__name__}"}]


def _told(asked: Asked, meta: Mapping[str, Any]) -> Told:
    outcome = _ENDED[meta["status"]]
    text = redacted(one_line(_shown(meta.get("result"))), asked.action)[:SNIPPET_CHARACTERS]
    if outcome is Outcome.SUCCESS:
        return Told(asked.serial, asked.event.id, outcome, "", text)
    return Told(asked.serial, asked.event.id, outcome, f"the task ended as {meta['status']}: {text}", text)


def _shown(result: Any) -> str:
    """A result, or an exception as Celery writes it: `{exc_type, exc_message, exc_module}`."""
    if not isinstance(result, Mapping) or "exc_type" not in result:
        return "" if result is None else str(result)
    message = result.get("exc_message")
    words = [str(part) for part in message] if isinstance(message, list | tuple) else [str(message)]
    return f"{result['exc_type']}: {', '.join(words)}"
