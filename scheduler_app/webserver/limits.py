"""What the web server allows its clients, and the two names of the API. Sizes are in bytes, times in seconds,
for each process.

`/api/v1` is the name that the specification lists; `/api` means the same. Whatever compares paths compares
canonical ones. The application sees no others (`api.versions`); the web server, which judges requests before
the application does, calls `canonical`.
"""

import re

#: Of each process, for requests that wait for MongoDB.
THREADS = 16
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


#: All header fields together. gunicorn's own settings bound the request line and each field to 8,190 bytes,
#: and the fields to 100.
MAX_HEADER_BYTES = 64 * 1024
#: A name has 253 at most; with a port.
MAX_HOST_BYTES = 260

MAX_BODY_BYTES = 1024 * 1024
#: By path: a bulk request holds up to a thousand schedules, an import a calendar of as many events; a sign-in
#: comes from a person who has shown no key yet.
_OTHER_BODIES = {
    f"{PREFIX}/schedules/bulk": 16 * 1024 * 1024,
    f"{PREFIX}/schedules/import": 8 * 1024 * 1024,
    "/sign-in": 8 * 1024,
    "/sign-in/provider": 8 * 1024,
    "/sign-in/back-channel": 8 * 1024,
}
#: One such request keeps a core busy for a good part of a second, or some seconds.
_LONG = frozenset((f"{PREFIX}/schedules/bulk", f"{PREFIX}/schedules/import"))

#: Each chunk costs time, however small it is.
MAX_CHUNKS = 100_000
MAX_CHUNK_LINE_BYTES = 256
MAX_TRAILER_BYTES = 8 * 1024

#: A body, and an answer, must progress at this pace, measured over API_SLOW_CLIENT_SECONDS.
MIN_BYTES_PER_SECOND = 8 * 1024
#: A body must be complete by then, at whatever pace.
MAX_BODY_SECONDS = 120.0

#: An application that writes its answer piece by piece pauses while the client has this much of it to read.
PENDING_ANSWER_BYTES = 64 * 1024
#: Bodies and answers in memory, of all connections together; a single one may be larger.
MAX_BUFFERED_BYTES = 64 * 1024 * 1024
#: A connection that holds less is not closed to free memory.
SLOW_BYTES = 64 * 1024

#: After the last answer, what the client still sends is read and dropped for this long: a closed connection
#: would reset, and the client would not see the answer.
LINGER_SECONDS = 2.0
#: A stopping process waits this long for requests that clients may already be sending on kept connections.
STOPPING_IDLE_SECONDS = 1.0


def max_body_bytes(path: str) -> int:
    """How large the body of a request for `path` may be."""
    return _OTHER_BODIES.get(canonical(path), MAX_BODY_BYTES)


def ends_connection(path: str) -> bool:
    """Whether the connection ends with a request for `path`. A connection stays with the process that
    accepted it, so all of an importer's could belong to one process while the others are idle; a new one goes
    to a process that is free."""
    return canonical(path) in _LONG
