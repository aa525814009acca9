"""The kinds of actions that there are. A new kind is a folder beside `http/` and a row here."""

from collections.abc import Mapping
from typing import Any

from scheduler_app.actions.celery_task.kind import CeleryTaskKind
from scheduler_app.actions.command.kind import CommandKind
from scheduler_app.actions.http.kind import HttpKind
from scheduler_app.actions.kind import ActionKind
from scheduler_app.actions.notice.kind import NoticeKind
from scheduler_app.domain.action import Action

#: By name, which is `action.type` in MongoDB. Workers wait in the executor of the first one that they serve.
KINDS: Mapping[str, ActionKind[Any]] = {
    kind.name: kind for kind in (HttpKind(), CommandKind(), CeleryTaskKind(), NoticeKind())
}


def kind_of(action: Action) -> ActionKind[Any]:
    """Returns the kind of an action, which is in the registry."""
    return KINDS[action.kind]
