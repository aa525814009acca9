"""When a schedule fires: the kinds of triggers, and the value that a schedule keeps.

A person writes a trigger in one of several ways (`registry.KINDS`). It is translated once, when it is given,
to a recurrence or to an instant; what was written is kept and shown beside it, and is translated again only
when an edit changes it or the choices that it is read with.
"""

from .registry import BY_NAME, FIELDS, KINDS, ONE_OF, Given, edited_trigger, names_a_trigger, new_trigger
from .translation import NotUnderstood, Translation, TriggerContext, Value, check_value, written_value
from .trigger import Trigger, TriggerKind
