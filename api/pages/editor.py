"""What the forms that make and edit a schedule have in common."""

from flask import render_template, request

from scheduler_app.api.json_types import Loaded
from scheduler_app.api.pages.form_values import choices
from scheduler_app.api.pages.schedule_form import HINTS, POLICIES, default_of, errors_of
from scheduler_app.api.problems import Problem
from scheduler_app.api.routes import echo
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.http_action import METHODS, HttpAction
from scheduler_app.domain.schedule import Schedule

REQUEST = ("destination", "path", "method", "headers", "body")
_SHOWN = {"name", "when", "timezone", "url", "tags", "calendar", *REQUEST, *POLICIES}


def editor(template: str, values: Loaded, problem: Problem | None, **more: object) -> str:
    """The form, with what is wrong beside the fields that it is about."""
    errors = errors_of(problem, values)
    others = [
        f"{name}: {text}" if name else text
        for name in sorted(errors.keys() - _SHOWN)
        for text in errors[name]
    ]
    given: dict[str, object] = {
        "values": values,
        "errors": errors,
        "others": others,
        "methods": METHODS,
        "problem": problem,
        "own_receiver": own_receiver(),
        "has_request": True,
        "request_given": any(values.get(name) or name in errors for name in REQUEST),
        "policies": {
            name: {"choices": choices(field), "meaning": HINTS[name][0], "default": default_of(name)}
            for name, field in POLICIES.items()
        },
        "policy_given": any(name in errors for name in POLICIES),
    }
    return render_template(template, **(given | more))


def own_receiver() -> str | None:
    """A URL of this very process for a first schedule, where callbacks may reach this machine."""
    return f"{request.host_url.rstrip('/')}{echo.PATH}" if echo.is_there() else None


def test_called(schedule: Schedule) -> str:
    """Calls the receiver of a schedule once, now, as a worker would; what came back, as a part of a page."""
    if not isinstance(schedule.action, HttpAction):
        return render_template("tested.html", refusal="Only HTTP requests can be tried from here.")
    try:
        verdict = services().destinations.try_out(schedule, services().now(), tenant=tenant()).verdict
    except (Conflict, InvalidField, NotFound) as error:
        return render_template("tested.html", refusal=str(error))
    if verdict is None:
        return render_template("tested.html", refusal="Nothing was sent: this is a dry run.")
    return render_template("tested.html", verdict=verdict, ok=verdict.outcome.name == "SUCCESS")
