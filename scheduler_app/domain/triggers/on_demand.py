"""`on_demand`: no occurrence; the schedule runs only when a person or a program triggers it."""

from collections.abc import Mapping
from typing import Final

from scheduler_app.domain.resource_fields import Flag
from scheduler_app.domain.triggers.translation import Translation, TriggerContext, Value, trigger_field
from scheduler_app.domain.triggers.trigger import TriggerKind

_ON_DEMAND: Final = trigger_field(
    "on_demand",
    # The kind refuses `false`: generators of clients do not understand an enumeration of booleans.
    Flag(only_true=True),
    "No time at all: it runs only when it is triggered by request, and stays active",
    example=True,
)


class OnDemand(TriggerKind):
    """A schedule that never runs by itself, is never finished, and can be triggered."""

    fields = (_ON_DEMAND,)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """Neither a recurrence nor an instant."""
        return Translation()

    def uses_timezone(self, written: Mapping[str, Value]) -> bool:
        """Never: it has no times."""
        return False
