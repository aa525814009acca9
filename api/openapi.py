"""The specification: its settings, and what every operation shares."""

from typing import Any

from scheduler_app.version import __version__


def spec_options() -> dict[str, Any]:
    """flask-smorest's configuration."""
    return {
        "API_TITLE": "RRule Scheduler",
        "API_VERSION": __version__,
        "OPENAPI_VERSION": "3.1.0",
        "API_SPEC_OPTIONS": {
            "info": {
                "description": "HTTP callbacks at every occurrence of an RFC 5545 rule.",
                "license": {"name": "MIT", "identifier": "MIT"},
            },
            "components": {
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer"},
                    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                }
            },
            "security": [{"bearer": []}, {"key": []}, {}],
        },
    }
