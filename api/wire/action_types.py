"""The kinds of actions that have fields of their own in JSON, by the `type` that names them."""

from collections.abc import Mapping
from typing import Any

from scheduler_app.actions.fields import ActionFields
from scheduler_app.actions.registry import KINDS

#: In the order of the registry. An HTTP request is no row: its fields are those of a schedule.
ACTION_TYPES: Mapping[str, ActionFields[Any]] = {
    name: action_fields for name, kind in KINDS.items() if (action_fields := kind.fields()) is not None
}
