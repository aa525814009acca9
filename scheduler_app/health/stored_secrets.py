"""Says whether what is stored can be read: a database restored without its SECRETS_KEY cannot."""

from collections.abc import Mapping

from scheduler_app.health.check import Check, fine, unknown, wrong

#: How many of the newest schedules, and of the newest destinations, are read.
READ = 500


def check_stored_secrets(unreadable: Mapping[str, str] | None) -> Check:
    """`unreadable` are the reasons by what cannot be read; None: MongoDB did not answer."""
    if unreadable is None:
        return unknown("stored secrets", "MongoDB does not answer")
    if not unreadable:
        return fine("stored secrets", f"the newest {READ} schedules and destinations can be read")
    name, reason = next(iter(unreadable.items()))
    return wrong(
        "stored secrets",
        f"{len(unreadable)} of the newest schedules and destinations cannot be read, {name} among them:"
        f" {reason}",
        "run every process with the SECRETS_KEY with which they were stored (`scheduler up` keeps it in the"
        " file secrets-key of its data folder); what no key opens has to be given again",
        unreadable=len(unreadable),
    )
