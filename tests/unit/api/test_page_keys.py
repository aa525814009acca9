"""The list of keys names what the script and the templates answer to, and the manual what is in the list."""

import re
from pathlib import Path

from scheduler_app.api.pages.places import BY_THE_BROWSER, KEYS, PLACES

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "api" / "pages"
LISTED = [key for keys in KEYS.values() for key in keys]


def of_the_script() -> set[str]:
    script = (PAGES / "static" / "page.js").read_text()
    (table,) = re.findall(r"^const KEYS = \{\n(.*?)^\};", script, re.DOTALL | re.MULTILINE)
    return set(re.findall(r'^  "([^"]+)": ', table, re.MULTILINE))


def of_the_templates() -> set[str]:
    texts = [page.read_text() for page in (PAGES / "templates").glob("*.html")]
    named = {pressed for text in texts for pressed in re.findall(r'data-keys="([^"{]+)"', text)}
    return named | {key.pressed for key in LISTED if key.endpoint}


def test_each_key_of_the_list_does_something_and_each_other_one_nothing() -> None:
    pressed = [key.pressed for key in LISTED if key is not BY_THE_BROWSER]
    assert len(set(pressed)) == len(pressed)
    assert of_the_script() & of_the_templates() == set()
    assert of_the_script() | of_the_templates() == set(pressed)


def test_each_place_has_a_key_of_its_own() -> None:
    assert len({place.key for place in PLACES}) == len(PLACES) == 5


def test_the_manual_names_each_key() -> None:
    manual = (ROOT / "docs" / "page.md").read_text()
    (said,) = re.findall(r"^\*\*Keys\*\*.*?\n\n", manual, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", said)) - {"g", "/go"} == {key.pressed for key in LISTED}
