"""Every trigger kind that there is. A new kind is one file in this package and one row here."""

from typing import Final

from scheduler_app.domain.triggers.delay_seconds import DelaySeconds
from scheduler_app.domain.triggers.every_seconds import EverySeconds
from scheduler_app.domain.triggers.kind import TriggerField, TriggerKind
from scheduler_app.domain.triggers.on_demand import OnDemand
from scheduler_app.domain.triggers.rrule import RRule
from scheduler_app.domain.triggers.run_at import RunAt

#: In the order in which errors and documentation name them.
KINDS: Final[tuple[TriggerKind, ...]] = (
    RRule(),
    EverySeconds(),
    RunAt(),
    DelaySeconds(),
    OnDemand(),
)

#: Each kind by its name, which is the name of its main field.
BY_NAME: Final = {kind.name: kind for kind in KINDS}

#: Every wire field of every kind, by name. A field that several kinds share is the same in all of them.
FIELDS: Final[dict[str, TriggerField]] = {field.name: field for kind in KINDS for field in kind.fields}

#: "rrule, run_at, …": the main fields, of which a schedule has exactly one.
ONE_OF: Final = ", ".join(BY_NAME)
