"""Forms of the pages, as a browser sends them."""

import html
import re

from flask.testing import FlaskClient


def form_token(client: FlaskClient, path: str) -> str:
    """The token of the forms on a page."""
    answer = client.get(path)
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', answer.text)
    assert found, f"{answer.status}\n{answer.text}"
    return found[1]


def fields_of(page: str) -> dict[str, str]:
    """What a browser would send of the editor on a page, were nothing changed in it."""
    form = page.partition('id="editor"')[2].partition("</form>")[0]
    found = {}
    for tag in re.findall(r"<input [^>]*>", form):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r' value="([^"]*)"', tag)
        if name and 'type="checkbox"' not in tag:
            found[name[1]] = html.unescape(value[1]) if value else ""
    for name, text in re.findall(r'<textarea name="([^"]*)"[^>]*>([^<]*)</textarea>', form):
        found[name] = html.unescape(text)
    for name, options in re.findall(r'<select name="([^"]*)"[^>]*>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)<', options)
        words = (chosen[2] if chosen[1] is None else chosen[1]) if chosen else ""
        found[name] = "" if name.startswith("pick_") else html.unescape(words)
    return found
