"""The five places of the pages with what is in each, and the keys that lead there and act on a page; the
navigation and the search for a page follow this."""

from dataclasses import dataclass
from typing import Literal

from flask import url_for

from scheduler_app.api.auth import PAGES


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page in the navigation; pages below its address belong to it."""

    name: str
    endpoint: str
    help: str
    """The part of the manual that explains it: a page, and a heading there."""
    also: str = ""
    """Other words by which it is found."""
    is_form: bool = False
    """Only a form: the navigation does not list it, and readers have no use for it."""
    shown_to: Literal["everybody", "admins", "operators"] = "everybody"
    """`admins` have the scope `admin`; `operators` have it with a key of the installation."""

    def is_called(self, wanted: str) -> bool:
        return wanted.lower() in f"{self.name} {self.also}".lower()

    def address(self) -> str:
        return url_for(f"{PAGES}.{self.endpoint}")


@dataclass(frozen=True, slots=True)
class Place:
    """One of the five, to which the frame of every page leads."""

    name: str
    icon: str
    """The path of a drawing of 16 by 16 units."""
    key: str
    """What is pressed after `g`."""
    pages: tuple[ListedPage, ...]


PLACES = (
    Place(
        "Overview",
        "M2 9.5h2.6L6.5 4l3 8.5 2-5.5 1 2.5H14",
        "o",
        (ListedPage("Overview", "overview", "operations#is-all-well"),),
    ),
    Place(
        "Schedules",
        "M6 4h8M6 8h8M6 12h8M2 4h1.5M2 8h1.5M2 12h1.5",
        "s",
        (
            ListedPage("Schedules", "schedules", "page#the-page"),
            ListedPage("New schedule", "new_schedule", "rules#rules-a-cookbook", is_form=True),
        ),
    ),
    Place(
        "Activity",
        "M2 3.5h12v10H2zM2 7h12M5 1.5v3M11 1.5v3",
        "a",
        (
            ListedPage("Runs", "events", "how-it-works#how-it-works", "events history"),
            ListedPage("Messages", "messages", "messages#messages"),
            ListedPage("Calendar", "calendar_view", "policies#past-and-future-in-one-the-calendar-of-runs"),
            ListedPage("Forecast", "forecast", "policies#the-wave-before-it-comes-the-forecast"),
            ListedPage("New message", "new_message", "messages#when-what-how", is_form=True),
        ),
    ),
    Place(
        "Failures",
        "M2.5 2.5h11v11h-11zM5.5 5.5l5 5M10.5 5.5l-5 5",
        "f",
        (
            ListedPage("Failures", "failures", "operations#is-all-well", "causes"),
            ListedPage("Runs that gave up", "dead_letters", "tutorial#dead-letters", "dead letters"),
        ),
    ),
    Place(
        "Settings",
        "M2 4.5h6M11.5 4.5H14M2 11.5h2.5M8 11.5h6M11.5 4.5a1.8 1.8 0 1 1-3.6 0 1.8 1.8 0 0 1 3.6 0"
        "M8 11.5a1.8 1.8 0 1 1-3.6 0 1.8 1.8 0 0 1 3.6 0",
        "t",
        (
            ListedPage("Destinations", "destinations", "destinations#destinations"),
            ListedPage("Closed days", "calendars", "rules#holidays-and-business-days", "calendars holidays"),
            ListedPage(
                "Calendar feeds",
                "calendar_feeds",
                "policies#past-and-future-in-one-the-calendar-of-runs",
                "ics",
            ),
            ListedPage("Stop switches and blackouts", "stops", "policies#kill-switch", "kill switches"),
            ListedPage(
                "Who is told", "notifications", "operations#who-is-told", "notifications silences alarms"
            ),
            ListedPage("Heartbeats", "heartbeats", "heartbeats#heartbeats", "pings"),
            ListedPage("Changes", "changes", "access#the-audit", "audit edits"),
            ListedPage("Ledger", "ledger", "operations#the-ledger", "witness"),
            ListedPage("Machinery", "processes", "production#what-to-watch", "processes workers queues"),
            ListedPage("API keys", "keys", "access#make-a-key", "", shown_to="admins"),
            ListedPage("People", "people", "access#people", "accounts sign-ins sessions", shown_to="admins"),
            ListedPage("Tenants", "tenants", "access#tenants", "customers teams", shown_to="operators"),
            ListedPage("You", "you", "page#who-may-open-it", "time zone sign out"),
            ListedPage(
                "New list of closed days", "new_calendar", "rules#holidays-and-business-days", is_form=True
            ),
            ListedPage("New destination", "new_destination", "destinations#limits", is_form=True),
        ),
    ),
)

#: The part of the manual for pages that are not listed. Others have that of the page above them, or `FRONT`.
_HELP = {
    "schedule": "rules#why-or-why-not",
    "edit_schedule": "rules#rules-a-cookbook",
    "event": "receivers#what-your-answer-means",
    "go": "questions#search",
    "sign_in": "page#who-may-open-it",
    "begin_session": "page#who-may-open-it",
    "tag_page": "questions#tags",
    "delete_tag": "access#delete-a-customer-by-tag",
    "delete_tag_on_page": "access#delete-a-customer-by-tag",
}
FRONT = "page#the-page"


def help_of(endpoint: str, page: ListedPage | None) -> str:
    return _HELP.get(endpoint.removeprefix(f"{PAGES}.")) or (page.help if page else FRONT)


def manual_address(part: str) -> str:
    """Where the manual, as it is built, has a part of it."""
    page, _, heading = part.partition("#")
    return f"/docs/{page}.html#{heading}"


def place_at(path: str) -> tuple[Place | None, ListedPage | None]:
    """The place and the page to which an address belongs, by its first part."""
    first = path.split("/")[1]
    for place in PLACES:
        for page in place.pages:
            if page.address().split("/")[1] == first:
                return place, page
    return None, None


@dataclass(frozen=True, slots=True)
class Key:
    """One that `?` lists: `static/page.js` and `data-keys` in templates answer to them."""

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
