"""The only door to the OpenID provider with which people sign in."""

from scheduler_app.oidc.provider import Provider, ProviderTokens

__all__ = ["Provider", "ProviderTokens"]
