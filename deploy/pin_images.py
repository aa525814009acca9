"""`make pin-images`: writes the digest of each deployed image next to its tag.

The owner of a repository can move a tag; a digest names the image itself. Run this again to use what was
published under the tags since. Docker asks the registry, so this needs docker, and the tests do not run it.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Files, and the text in front of an image in each.
_PLACES = {
    ROOT / "docker-compose.yml": r"^ +image: ",
    ROOT / "deploy" / "Dockerfile": r"^ARG PYTHON=",
}
#: Built by us.
_OURS = "rrule-scheduler"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def images() -> list[tuple[Path, str, str]]:
    """Each place where an image of others is named: the file, the image with its tag, its digest or ""."""
    found = []
    for path, before in _PLACES.items():
        for name in re.findall(f"{before}(\\S+)$", path.read_text(), re.MULTILINE):
            image, _, digest = name.partition("@")
            if image.partition(":")[0] != _OURS:
                found.append((path, image, digest))
    return found


def main() -> None:
    for path, image, old in images():
        command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", image]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=120)  # noqa: S603
        except FileNotFoundError:
            sys.exit("docker is not installed: run this where it is")
        digest = answer.stdout.strip()
        if answer.returncode != 0 or not _DIGEST.fullmatch(digest):
            sys.exit(f"{image}: docker does not tell its digest: {(answer.stderr or digest).strip()}")
        before = f"{image}@{old}" if old else image
        text = re.sub(rf"{re.escape(before)}$", f"{image}@{digest}", path.read_text(), flags=re.MULTILINE)
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {image}@{digest}")


if __name__ == "__main__":
    main()
