"""Forms of the pages, as a browser sends them."""

import re

from flask.testing import FlaskClient


def form_token(client: FlaskClient, path: str) -> str:
    """The token of the forms on a page."""
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', client.get(path).text)
    assert found
    return found[1]
