"""Secrets at rest: an envelope, encrypted when there is a key."""

from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from scheduler_app.domain.errors import InvalidField, SchedulerError


class UnreadableSecret(SchedulerError):
    """A stored secret was encrypted with a key that SECRETS_KEY no longer holds."""


class Envelope:
    """Seals with the newest key, opens with any of them: `{"enc": 1, "value": …}`, or 0 without a key."""

    def __init__(self, keys: str = "") -> None:
        """`keys`: Fernet keys separated by commas, newest first. Raises InvalidField("SECRETS_KEY")."""
        try:
            fernets = [Fernet(key.strip()) for key in keys.split(",") if key.strip()]
        except ValueError:
            raise InvalidField(
                "SECRETS_KEY",
                "SECRETS_KEY must be Fernet keys (32 bytes, URL-safe base64), one or several; one is made by:"
                ' python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"',
            ) from None
        self._fernet = MultiFernet(fernets) if fernets else None

    @property
    def encrypts(self) -> bool:
        return self._fernet is not None

    def seal(self, value: str) -> dict[str, Any]:
        if self._fernet is None:
            return {"enc": 0, "value": value}
        return {"enc": 1, "value": self._fernet.encrypt(value.encode()).decode()}

    def open(self, sealed: dict[str, Any]) -> str:
        """Raises UnreadableSecret."""
        if not sealed["enc"]:
            return str(sealed["value"])
        if self._fernet is None:
            raise UnreadableSecret("a stored secret is encrypted, and SECRETS_KEY is not set")
        try:
            return self._fernet.decrypt(sealed["value"].encode()).decode()
        except InvalidToken:
            raise UnreadableSecret(
                "a stored secret was encrypted with a key that SECRETS_KEY lacks"
            ) from None
