"""The manual as a site: every package of a release has it, and `make docs` builds it in a clone."""

from pathlib import Path

from flask import Flask, Response, send_from_directory

from scheduler_app.api.declared_parameters import accepting_anything
from scheduler_app.domain.errors import NotFound

FOLDER = Path(__file__).parents[1] / "manual"

#: The pages hold a few lines of inline script (the choice of light or dark) and load from this host only.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-inline'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


def register(app: Flask, folder: Path = FOLDER) -> None:
    """Serves the pages of `folder` under /docs/."""

    @app.get("/docs/", defaults={"name": "index.html"})
    @app.get("/docs/<path:name>")
    @accepting_anything
    def manual(name: str) -> Response:
        """A file of the manual. Its pages ask for others with `?v=`, and for what was found with `?q=`."""
        if not (folder / "index.html").is_file():
            raise NotFound("the manual is not built here; `make docs` builds it")
        page = send_from_directory(folder, name, max_age=3600)
        page.headers["Content-Security-Policy"] = POLICY
        return page
