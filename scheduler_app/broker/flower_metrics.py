"""Makes Flower's `/metrics` ask for the login that its other pages ask for: Flower shows it to everybody."""

import sys


def ask_for_login() -> None:
    """Does nothing in a process that is not Flower's."""
    pages = sys.modules.get("flower.views.monitor")
    if pages is None:
        return
    from tornado.web import authenticated

    pages.Metrics.get = authenticated(pages.Metrics.get)
