"""The two names of the API: `/api/v1`, which the specification lists, and `/api`, which means the same.

Whatever compares paths compares canonical ones. The application sees no others (`api.versions`); the web
server, which judges requests before the application does, calls `canonical`.
"""

import re

PREFIX = "/api/v1"
ALIAS = "/api"

#: `/api`, unless a version follows: no collection may be named like one. Slashes may be doubled: the
#: application answers such a path by a redirect.
_ALIASED = re.compile(r"/+api(?=/|\Z)(?!/+[vV][0-9]+(?:/|\Z))")


def canonical(path: str) -> str:
    """`/api/v1/schedules` for `/api/schedules`. Any other path is returned as it is, also that of a version
    which does not exist."""
    found = _ALIASED.match(path)
    return path if found is None else f"{path[: found.end()]}/v1{path[found.end() :]}"


def aliased(path: str) -> str:
    """`/api/schedules` for `/api/v1/schedules`. Any other path is returned as it is."""
    return ALIAS + path.removeprefix(PREFIX) if path.startswith(f"{PREFIX}/") else path
