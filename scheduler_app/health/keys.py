"""Checks whether the keys are set, and says what is unprotected without them."""

from scheduler_app.config import Settings
from scheduler_app.health.check import Check, fine, note


def check_keys(settings: Settings) -> list[Check]:
    return [_api_keys(settings), _secrets_key(settings)]


def _api_keys(settings: Settings) -> Check:
    if settings.api_keys:
        return fine("API_KEYS", f"{len(settings.api_keys)} set")
    # No warning: an API without a key starts on loopback alone.
    return fine("API_KEYS", "not set: every program on the API's host may use it, and nothing from elsewhere")


def _secrets_key(settings: Settings) -> Check:
    if settings.secrets_key:
        return fine("SECRETS_KEY", "set: stored secrets are encrypted")
    return note(
        "SECRETS_KEY",
        "not set: header values, bodies, URL queries and signing secrets are stored in MongoDB as plain text",
        "set one, and then run `scheduler reseal`: python -c"
        ' "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"',
    )
