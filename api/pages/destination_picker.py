"""What a form of a schedule offers of destinations: those there are, with how they are, and a new one."""

from marshmallow import ValidationError

from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.problems import HttpProblem, problem_of
from scheduler_app.api.services import services, tenant
from scheduler_app.api.wire.destination import DestinationInput, destination_shown
from scheduler_app.api.wire.field_types import DestinationName
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import Conflict, InvalidField, StaleVersion
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.deeds.creation import Preconditions
from scheduler_app.usecases.questions.destinations import DestinationHealth, DestinationState

#: Names that a person can choose from while typing one.
MOST_NAMES = 100
#: Those that are shown with how they are.
MOST_SHOWN = 6
_HEALTH = {
    DestinationState.PAUSED: ("paused", "Paused"),
    DestinationState.STOPPED: ("held", "Held by a stop switch"),
    DestinationState.FAILING: ("failed", "Fails"),
    DestinationState.SLOWED: ("retry", "Slowed down"),
    DestinationState.WELL: ("ok", "Answers well"),
}
#: The form's fields of a new destination.
NEW_NAME, NEW_URL = "new_destination_name", "new_destination_url"
_INPUT, _NAME = DestinationInput(), DestinationName(required=True)


def destinations_offered() -> View:
    """The destinations by name: `names` of the first hundred, and `shown` with their health."""
    page = services().destinations.page(tenant(), PageRequest(limit=MOST_NAMES))
    found = [each for each in page.rows if isinstance(each, Destination)]
    shown = found[:MOST_SHOWN]
    health = services().destination_questions.health(tenant(), shown, services().now())
    return {
        "names": [name_of(each.id) for each in found],
        "shown": [
            {
                "name": name_of(each.id),
                "url": destination_shown(each)["url"],
                "health": health_words(health[each.id]),
            }
            for each in shown
        ],
        "more": len(found) > MOST_SHOWN or page.next is not None,
    }


def health_words(health: DestinationHealth) -> tuple[str, str]:
    """A class of the stylesheet, and the words."""
    if health.state is DestinationState.WELL and not health.last_runs:
        return "next", "Nothing sent lately"
    return _HEALTH[health.state]


def with_new_destination(form: Loaded) -> tuple[Loaded, HttpProblem | None]:
    """Makes the destination that the form describes. Returns the form that names it, with what was typed of
    it taken away; or the same form, and what is wrong."""
    texts = {name: form.get(name, "").strip() for name in (NEW_NAME, NEW_URL)}
    try:
        name = whole_id(tenant(), _name_of(texts[NEW_NAME]))
        draft = _INPUT.load({"url": texts[NEW_URL]})
        services().destinations.put(name, draft, services().now(), conditions=Preconditions(absent=True))
    except StaleVersion:
        return form, problem_of(InvalidField(NEW_NAME, "is taken: choose it above, or take another name"))
    except ValidationError as error:
        return form, problem_of(_renamed(error))
    except InvalidField as error:
        return form, problem_of(InvalidField(NEW_URL if error.field == "url" else NEW_NAME, error.message))
    except Conflict as error:
        return form, problem_of(error)
    kept = {key: text for key, text in form.items() if key not in (NEW_NAME, NEW_URL, "url")}
    return kept | {"destination": texts[NEW_NAME]}, None


def _name_of(text: str) -> str:
    """Raises ValidationError."""
    try:
        return str(_NAME.deserialize(text or None))
    except ValidationError as error:
        raise ValidationError({NEW_NAME: error.messages}) from None


def _renamed(error: ValidationError) -> ValidationError:
    """The same, said of the form's fields."""
    found = error.messages_dict
    return ValidationError({NEW_URL if name == "url" else name: text for name, text in found.items()})
