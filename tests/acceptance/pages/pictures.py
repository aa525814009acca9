"""`python -m tests.acceptance.pages.pictures`: makes the manual's pictures of the pages."""

import base64
import struct
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from scheduler_app.embedded import Mongod, Redis
from tests.acceptance.pages.browser import launched, watched_page
from tests.acceptance.pages.every_page import filled
from tests.acceptance.stack import CODE, Stack

FOLDER: Final = CODE / "docs" / "_static"
#: What one picture may have: the manual is in every package of a release.
MOST_BYTES: Final = 100 * 1024
#: The colours of a picture, of which pages have few: one of each byte, it is a third as large.
MOST_COLOURS: Final = 256
#: The points of a picture, in so few shades that most colours are alike.
POINTS: Final = """async (png) => {
  const drawn = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob());
  const pen = new OffscreenCanvas(drawn.width, drawn.height).getContext("2d");
  pen.drawImage(drawn, 0, 0);
  const points = pen.getImageData(0, 0, drawn.width, drawn.height).data;
  const text = [];
  for (let at = 0; at < points.length; at += 4) {
    for (let of = at; of < at + 3; of++) text.push(String.fromCharCode(Math.round(points[of] / 5) * 5));
  }
  return btoa(text.join(""));
}"""


class Picture(NamedTuple):
    """A part of a page, from its top."""

    address: str
    """With the names of `every_page.filled`."""
    width: int = 1_200
    height: int = 780
    colours: Literal["light", "dark"] = "light"


PICTURES: Final = {
    "overview": Picture("/", height=900),
    "schedules": Picture("/schedules", colours="dark"),
    "calendar": Picture("/calendar"),
    "week": Picture("/calendar?view=week"),
    "history": Picture("/schedules/{schedule_id}"),
    "failure": Picture("/failures/{failure_id}"),
    "run": Picture("/events/{event_id}"),
    "stops": Picture("/stops"),
    "failures-phone": Picture("/failures", width=390),
}


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="pictures-") as name,
        Mongod(Path(name) / "mongod") as mongod,
        Redis(Path(name) / "redis") as redis,
    ):
        environment = {
            "MONGO_URI": mongod.uri,
            "MONGO_DATABASE": "pictures",
            "BROKER_URL": redis.url,
            "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8",
        }
        stack = Stack(Path(name), environment)
        try:
            stack.all()
            values = filled(stack)
            with sync_playwright() as playwright:
                playwright.selectors.set_test_id_attribute("data-test")
                browser = launched(playwright)
                for each, picture in PICTURES.items():
                    taken = _taken(browser, stack, picture, values)
                    assert len(taken) <= MOST_BYTES, f"{each}: {len(taken)} bytes"
                    (FOLDER / f"page-{each}.png").write_bytes(taken)
                browser.close()
        finally:
            stack.close()


def _taken(browser: Browser, stack: Stack, picture: Picture, values: dict[str, str]) -> bytes:
    window: ViewportSize = {"width": picture.width, "height": picture.height}
    options: dict[str, Any] = {"viewport": window, "color_scheme": picture.colours}
    with watched_page(browser, stack.url, timezone_id="Europe/Zurich", **options) as page:
        page.goto(picture.address.format(**values))
        page.wait_for_load_state("networkidle")
        return _smaller(page, page.screenshot())


def _smaller(page: Page, png: bytes) -> bytes:
    """The points are read in a page without a policy: that of ours takes no pictures from elsewhere."""
    width, height = struct.unpack(">II", png[16:24])
    with page.context.browser.new_context() as own:  # type: ignore[union-attr]
        read = base64.b64decode(own.new_page().evaluate(POINTS, base64.b64encode(png).decode()))
    points = [read[at : at + 3] for at in range(0, len(read), 3)]
    counted = Counter(points).most_common()
    palette = [colour for colour, _ in counted[:MOST_COLOURS]]
    place = {
        colour: min(range(len(palette)), key=lambda at: _apart(palette[at], colour)) for colour, _ in counted
    }
    row = bytes(map(place.__getitem__, points))
    lines = b"".join(b"\0" + row[at : at + width] for at in range(0, len(row), width))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", b"".join(palette)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return png[:8] + b"".join(
        struct.pack(">I", len(of)) + kind + of + struct.pack(">I", zlib.crc32(kind + of))
        for kind, of in parts
    )


def _apart(one: bytes, other: bytes) -> int:
    return sum((mine - its) ** 2 for mine, its in zip(one, other, strict=True))


if __name__ == "__main__":
    main()
