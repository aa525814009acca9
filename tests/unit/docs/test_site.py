"""The manual: it builds without a warning, says what the code says, and its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FETCHED = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"')
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_it_builds_strictly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    done = subprocess.run([*command, "docs", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    built = {page.stem for page in tmp_path.glob("*.html")}
    assert {page.stem for page in PAGES[1:]} <= built
    fetched = [address for page in tmp_path.glob("*.html") for address in FETCHED.findall(page.read_text())]
    assert fetched == [], "a page of the manual needs a network"


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
