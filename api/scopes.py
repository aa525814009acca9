"""Which scope each route needs, and whether the key of the request at hand has it.

A route of the API declares its scope where it is declared itself (`ApiBlueprint.route`); what pages and forms
need is a table in `pages/access.py`. Both are refused at the start where one is missing.
"""

from typing import Final, Literal

from flask import current_app, request

from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import caller
from scheduler_app.domain.api_key import KeyScope

#: Methods that change nothing: what they ask for needs the scope `read`, if the route names none.
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
#: An attribute of the function of a route.
SCOPE = "needed_scope"
#: Of a route of the API that needs no key.
NO_SCOPE: Final = "none"


def may(scope: KeyScope) -> bool:
    """Whether the key of this request has the scope. Without API keys, everybody has every scope."""
    return scope in caller().scopes


def require(scope: KeyScope) -> None:
    """Raises Problem unless the key of this request has the scope."""
    if not may(scope):
        has = ", ".join(each for each in KeyScope if may(each))
        raise HttpProblem(
            403, f"this needs a key with the scope {scope}, and this API key has {has}: use another key"
        )


def require_scope_of_route() -> None:
    """Raises Problem unless the key of this request has the scope that its route needs."""
    needed = scope_of_route()
    if isinstance(needed, KeyScope):
        require(needed)


def scope_of_route() -> KeyScope | Literal["none"] | None:
    """What the route of this request needs; None where no route has this path and method."""
    if request.endpoint is None:
        return None
    view = current_app.view_functions[request.endpoint]
    default = KeyScope.READ if request.method in SAFE_METHODS else KeyScope.ADMIN
    found: KeyScope | Literal["none"] = getattr(view, SCOPE, default)
    return found
