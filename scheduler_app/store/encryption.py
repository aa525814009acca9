"""Encryption of secrets at rest, where there is a key."""

from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from scheduler_app.domain.errors import InvalidField, SchedulerError


class UnreadableSecret(SchedulerError):
    """A stored secret was encrypted with a key that SECRETS_KEY no longer holds."""


class SecretBox:
    """Encrypts with the newest key, decrypts with any of them."""

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
        self._newest = fernets[0] if fernets else None

    @property
    def encrypts(self) -> bool:
        return self._fernet is not None

    def seal(self, data: bytes) -> bytes:
        """A Fernet token, in base64. Only where `encrypts`."""
        if self._newest is None:
            raise ValueError("without a key nothing is sealed")
        return self._newest.encrypt(data)

    def open(self, token: bytes) -> bytes:
        """Raises UnreadableSecret."""
        if self._fernet is None:
            raise UnreadableSecret("a stored secret is encrypted, and SECRETS_KEY is not set")
        try:
            return self._fernet.decrypt(token)
        except InvalidToken:
            raise UnreadableSecret(
                "a stored secret was encrypted with a key that SECRETS_KEY lacks"
            ) from None

    def is_newest(self, token: bytes) -> bool:
        """Whether the newest key decrypts the token, so that it need not be encrypted again."""
        try:
            return self._newest is not None and bool(self._newest.decrypt(token))
        except InvalidToken:
            return False

    def open_single(self, sealed: dict[str, Any]) -> str:
        """One value as releases before 0.2 kept it, `{"enc": 1, "value": …}`, or 0 where there was no key.
        Raises UnreadableSecret."""
        value = str(sealed["value"])
        return self.open(value.encode()).decode() if sealed["enc"] else value
