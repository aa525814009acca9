"""The files of others that browsers load are the published ones, and nothing else lies beside them."""

import hashlib
from pathlib import Path

VENDOR = Path(__file__).parents[3] / "api" / "pages" / "static" / "vendor"


def test_every_vendored_file_is_listed_with_its_hash_version_and_licence() -> None:
    rows = [line.split() for line in (VENDOR / "VENDORED").read_text().splitlines()[1:]]
    listed = {name: digest for digest, name, package, licence in rows if package.count("@") and licence}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.name != "VENDORED"
    }
    assert listed == found
