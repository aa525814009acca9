"""`scheduler keys create --admin`: a key by the settings alone, where no API answers or no key is known."""

from datetime import datetime
from getpass import getuser
from typing import Any

import click

from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.clock import clock
from scheduler_app.config import InvalidSetting, load_settings
from scheduler_app.domain.act import Act, Actor, ActorKind
from scheduler_app.domain.api_key import ALL_SCOPES, Caller, KeyDraft, KeyScope, new_key
from scheduler_app.domain.errors import InvalidField, SchedulerError
from scheduler_app.domain.ids import TENANT, name_of
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.acting import acting
from scheduler_app.usecases.deeds.api_keys import KeyService


def create_first_key(name: str, expires_at: datetime | None) -> dict[str, Any]:
    """Makes a key of the installation with every scope in the MongoDB of the settings; returns it as the API
    answers."""
    draft = KeyDraft(name, ALL_SCOPES, TENANT, expires_at, is_installations=True)
    try:
        store = Store(load_settings())
    except (InvalidSetting, InvalidField) as error:
        raise CannotStart(str(error)) from None
    try:
        store.prepare()
        with acting(Act(Actor(ActorKind.COMMAND, getuser()))):
            caller = Caller("settings", "settings")
            key, text = KeyService(store, new_key).create(draft, caller, clock.now())
    except STORE_FAULTS as error:
        raise click.ClickException(f"MongoDB does not answer: {str(error)[:300]}") from None
    except SchedulerError as error:
        raise click.ClickException(str(error)) from None
    finally:
        store.close()
    return {"id": name_of(key.id), "name": key.name, "scopes": [each.value for each in KeyScope], "key": text}
