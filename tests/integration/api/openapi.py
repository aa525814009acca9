"""The OpenAPI document, as the API serves it."""

from functools import lru_cache
from typing import Any

import yaml
from flask.testing import FlaskClient


def specification_of(client: FlaskClient) -> dict[str, Any]:
    """Do not change it: tests whose applications serve the same one share it."""
    return _read(client.get("/docs/openapi.yml").text)


@lru_cache(maxsize=2)
def _read(text: str) -> dict[str, Any]:
    # By libyaml: the parser in Python takes a second and a half of CPU, and this one a third of a second.
    found: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return found
