"""The manual's pictures of pages: made by the command, few, small, and each of them shown."""

from tests.acceptance.pages.pictures import FOLDER, MOST_BYTES, PICTURES


def test_the_pictures_of_pages_are_those_that_the_command_makes() -> None:
    found = {each.name: each.stat().st_size for each in FOLDER.glob("page-*.png")}
    assert found.keys() == {f"page-{each}.png" for each in PICTURES}
    assert {name: size for name, size in found.items() if size > MOST_BYTES} == {}
    manual = (FOLDER.parent / "page.md").read_text()
    assert [name for name in sorted(found) if f"(_static/{name})" not in manual] == []
