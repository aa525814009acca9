"""The keys of the pages, which `?` lists: `static/page.js` and `data-keys` in templates answer to them."""

from dataclasses import dataclass

from flask import url_for

from scheduler_app.api.auth import PAGES
from scheduler_app.api.pages.places import PLACES


@dataclass(frozen=True, slots=True)
class Key:
    pressed: str
    """Keys with a space between them; with Ctrl and Shift at once, otherwise one after another."""
    does: str
    endpoint: str = ""
    """The page to which it leads."""

    def address(self) -> str:
        return url_for(f"{PAGES}.{self.endpoint}")


NEW_SCHEDULE = Key("n", "New schedule", "new_schedule")
#: What the browser does by itself: the focus is on the link of the row.
BY_THE_BROWSER = Key("Enter", "Open what is marked")

KEYS = {
    "Everywhere": (
        Key("Ctrl K", "Search"),
        Key("/", "Go to the filter of this list, or search"),
        *(Key(f"g {place.key}", place.name, place.pages[0].endpoint) for place in PLACES),
        NEW_SCHEDULE,
        Key("?", "Show these keys"),
    ),
    "In a list": (
        Key("j", "Next"),
        Key("k", "Previous"),
        BY_THE_BROWSER,
        Key("x", "Select"),
        Key("e", "Edit a destination"),
        Key("s", "Send the runs of a cause again"),
    ),
    "In a form": (
        Key("Ctrl Enter", "Save"),
        Key("Ctrl Shift Enter", "Make a test call"),
    ),
}
