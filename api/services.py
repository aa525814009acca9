"""What the routes call: the use cases of this process."""

from flask import current_app, g

from scheduler_app.api.dry_run import asked
from scheduler_app.assembly import Assembly as Services

__all__ = ["Services", "real_services", "services"]


def services() -> Services:
    """The services of the application at hand; for a dry run, ones that change nothing."""
    if asked():
        if "dry_services" not in g:
            g.dry_services = real_services().dry_run()
        made: Services = g.dry_services
        return made
    return real_services()


def real_services() -> Services:
    """Also in a dry run: for what belongs to the request itself, and not to what it asks for."""
    found: Services = current_app.extensions["scheduler"]
    return found
