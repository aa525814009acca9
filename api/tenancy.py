"""Whose data a request is about: the one place that the routes have it from."""

from scheduler_app.domain.tenants import TENANT


def tenant() -> str:
    """The tenant of the request at hand; there is only one as yet."""
    return TENANT
