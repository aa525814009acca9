"""The fields of a `celery_task` in JSON."""

import json
from typing import Any, Final

from marshmallow import ValidationError, validate

from scheduler_app import json_fields as fields
from scheduler_app.actions.fields import ActionFields
from scheduler_app.domain.celery_task_action import (
    MAX_ARGUMENTS_BYTES,
    MAX_EXPIRES,
    MAX_HEADERS,
    MAX_PRIORITY,
    CeleryTaskAction,
)
from scheduler_app.domain.masking import MASK

_KEPT = f"; answers mask them, and `{MASK}` leaves them as they are while task and broker stay the same"


class _JsonOrMask(fields.DescribedField):
    """A list, or an object, or the mask that stands for the old one."""

    def __init__(self, kind: type[list[object]] | type[dict[str, object]], description: str) -> None:
        shape: dict[str, object] = {"type": self._name(kind)} | ({"items": {}} if kind is list else {})
        shapes = [{"type": "string"}, shape]
        super().__init__(description, metadata={"oneOf": shapes})
        self._kind = kind

    def _deserialize(self, value: object, attr: object, data: object, **_: object) -> object:
        if value == MASK or isinstance(value, self._kind):
            return value
        raise ValidationError(f"must be a JSON {self._name(self._kind)}")

    @staticmethod
    def _name(kind: type) -> str:
        return "array" if kind is list else "object"


def _read(given: dict[str, Any]) -> CeleryTaskAction:
    own = {name: value for name, value in given.items() if name != "type"}
    texts = {name: _text(own[name]) for name in ("args", "kwargs") if name in own}
    return CeleryTaskAction(**own | texts | {"headers": tuple(given.get("headers", {}).items())})


def _shown(action: CeleryTaskAction) -> dict[str, object]:
    view: dict[str, object] = {"task": action.task, "broker": action.broker}
    if action.args != "[]":
        view["args"] = MASK
    if action.kwargs != "{}":
        view["kwargs"] = MASK
    if action.headers:
        view["headers"] = {name: MASK for name, _ in action.headers}
    for name in ("event_kwarg", "queue", "priority", "expires", "wait"):
        if (value := getattr(action, name)) not in (None, False):
            view[name] = value
    return view


def _text(value: object) -> str:
    return MASK if value == MASK else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


CELERY_TASK_FIELDS: Final = ActionFields(
    meaning="a task of another Celery application",
    input={
        "task": fields.String(
            "Of a `celery_task`: the task's name", required=True, example="shop.tasks.bill"
        ),
        "broker": fields.String("Its broker, as CELERY_BROKERS names it", required=True, example="shop"),
        "args": _JsonOrMask(
            list, f"Its arguments, up to {MAX_ARGUMENTS_BYTES // 1024} KiB with `kwargs`{_KEPT}"
        ),
        "kwargs": _JsonOrMask(dict, f"Of a `celery_task`: its keyword arguments{_KEPT}"),
        "event_kwarg": fields.String(
            "Of a `celery_task`: the keyword argument by which the task gets `event_id`,"
            " `schedule_id`, `run_time` and `attempt`; its headers have them in any case, as"
            " `scheduler_event_id` and so on"
        ),
        "queue": fields.String("Of a `celery_task`: the queue of its application"),
        "priority": fields.Integer(
            "Of a `celery_task`: its priority, as its broker understands it",
            strict=True,
            validate=validate.Range(0, MAX_PRIORITY),
        ),
        "expires": fields.Integer(
            "Of a `celery_task`: seconds after which workers drop it",
            strict=True,
            validate=validate.Range(1, MAX_EXPIRES),
        ),
        "headers": fields.Dict(
            f"Of a `celery_task`: up to {MAX_HEADERS} headers{_KEPT}",
            keys=fields.String(),
            values=fields.String(),
        ),
        "wait": fields.JsonBoolean(
            "Of a `celery_task`: whether the event completes, is tried again or fails with"
            " the task, by its result in CELERY_RESULT_BACKENDS, within `timeout_seconds`; without it, it"
            " is completed when the broker has the task"
        ),
    },
    output={
        "task": fields.String("The task's name"),
        "broker": fields.String("Its broker, as CELERY_BROKERS names it"),
        "args": fields.String("Its arguments, masked"),
        "kwargs": fields.String("Its keyword arguments, masked"),
        "event_kwarg": fields.String("The keyword argument that gets the event"),
        "queue": fields.String("Its queue"),
        "priority": fields.Integer("Its priority"),
        "expires": fields.Integer("Seconds after which workers drop it"),
        "headers": fields.Dict("Its headers, masked", keys=fields.String(), values=fields.String()),
        "wait": fields.Boolean("Whether the event ends with the task"),
    },
    read=_read,
    shown=_shown,
)
