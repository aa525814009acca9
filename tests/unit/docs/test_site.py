"""The manual: it builds without a warning, says what the code says, and its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_app.api.factory import routed
from scheduler_app.api.pages.places import PLACES, help_of, manual_address
from scheduler_app.config import Settings

ROOT = Path(__file__).parents[3]
FETCHED = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"')
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manual as a site, without a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    done = subprocess.run([*command, "docs", str(folder)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_needs_no_network(site: Path) -> None:
    built = {page.stem for page in site.glob("*.html")}
    assert {page.stem for page in PAGES[1:]} <= built
    fetched = [address for page in site.glob("*.html") for address in FETCHED.findall(page.read_text())]
    assert fetched == [], "a page of the manual needs a network"


def test_the_help_of_each_page_for_browsers_is_a_heading(site: Path) -> None:
    listed = [page for place in PLACES for page in place.pages]
    app = routed(Settings())
    for rule in app.url_map.iter_rules():
        if not rule.endpoint.startswith("pages."):
            continue
        page = next((each for each in listed if rule.endpoint == f"pages.{each.endpoint}"), None)
        path, _, heading = manual_address(help_of(rule.endpoint, page)).removeprefix("/docs/").partition("#")
        assert f'id="{heading}"' in (site / path).read_text(), f"{rule.endpoint}: {path}#{heading}"


def test_generated_files_say_what_the_code_says() -> None:
    """The pages of the command line and of the API, and the client's fields."""
    code = "from docs import reference; [print(path) for path, text in reference.stale()]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "", "`python -m docs.reference` writes these files anew"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = target.partition("#")
        if path.startswith("https://"):
            continue
        found = page.parent / path if path else page
        assert found.is_file(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", found.read_text(), flags=re.MULTILINE)
            assert heading in {
                re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles
            }
