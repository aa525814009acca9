"""`Idempotency-Key`: a POST that is sent again is executed once, and gets the first answer again.

An answer is kept for a day. Answers after which a retry makes sense are not kept: server errors (5xx),
conflicts (409) and limits (403, 429). After a server error the next try finds what the first one has written:
the answer of MongoDB may be all that was lost.
"""

import hashlib
import re

from flask import Flask, Response, g, request

from scheduler_app.api.problems import HttpProblem
from scheduler_app.api.services import NOBODY, caller, is_dry_run, real_services, tenant
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.masking import MASK
from scheduler_app.store.faults import STORE_FAULTS
from scheduler_app.store.idempotency import Answered, Begun, KeyReused
from scheduler_app.telemetry import get_logger
from scheduler_app.webserver.limits import aliased

log = get_logger(__name__)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
RETRY_AFTER_SECONDS = 1
_KEY = re.compile(r"[\x21-\x7e]{1,255}\Z")
#: Endpoints that write nothing: executing them again is harmless.
CHANGE_NOTHING = frozenset(("previews.preview_rule", "echo"))
_KEPT_HEADERS = ("Content-Type", "ETag", "Location")


def register(app: Flask) -> None:
    """Must follow authentication: an idempotency key belongs to the API key that sent it."""
    app.before_request(_begin)
    app.after_request(_finish)


def request_seed() -> str | None:
    """What ids are derived from in a request with an Idempotency-Key, so that executing it again after
    a crash or a server error finds what the first execution made; None without a key."""
    begun: Begun | None = g.get("begun")
    return begun.request_seed if begun else None


def shown_once(secret: str) -> str:
    """`secret`, which this answer shows and the kept copy of the answer masks."""
    g.setdefault("shown_once", []).append(secret)
    return secret


def renewed(secret: str) -> str:
    """`secret`, which this answer shows. The answer is not kept: the same request is executed again, finds
    what it has made by the same seed, and gives it another secret."""
    g.renews = True
    return secret


def _begin() -> Response | None:
    key = request.headers.get(HEADER)
    if key is None or request.method != "POST" or request.routing_exception is not None:
        return None
    if not _KEY.match(key):
        raise InvalidField(HEADER, "must be 1 to 255 printable ASCII characters, no spaces")
    if request.endpoint in CHANGE_NOTHING or is_dry_run() or caller() == NOBODY:
        # Answers to requests without a key are not kept: anyone who reaches the API could fill MongoDB.
        return None
    found = real_services().idempotency.begin(tenant(), caller().owner, key, _digest())
    if isinstance(found, Begun):
        g.begun = found
        return None
    if isinstance(found, Answered):
        answer = Response(found.body, status=found.status, headers=found.headers)
        answer.headers[REPLAYED] = "true"
        return answer
    if isinstance(found, KeyReused):
        raise InvalidField(HEADER, "was used for another request; take a new key")
    raise HttpProblem(
        409,
        f"the first request with this {HEADER} is still being answered; ask again",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def _digest() -> str:
    """SHA-256 of path, query, If-Match and raw body. The path is the one without a version: releases before
    1.0 know no other, and a client may send a request again after an upgrade."""
    path, query = aliased(request.path), request.query_string.decode("latin-1")
    parts = (path, query, request.headers.get("If-Match", ""))
    digest = hashlib.sha256("\n".join(parts).encode())
    digest.update(b"\n" + request.get_data(cache=True))
    return digest.hexdigest()


def _finish(response: Response) -> Response:
    begun: Begun | None = g.get("begun")
    if begun is None:
        return response
    records = real_services().idempotency
    try:
        if response.status_code >= 500 or g.get("renews"):
            records.release(begun)
        elif response.status_code in (403, 409, 429) or is_dry_run():
            records.give_up(begun)
        else:
            headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
            records.finish(begun, response.status_code, headers, _without_secrets(response.get_data()))
    except STORE_FAULTS as error:
        # The work is done and its answer goes out. A retry after the lease finds the result by its seed.
        log.warning("idempotency.unwritten", message="An answer could not be kept", error=str(error)[:300])
    return response


def _without_secrets(body: bytes) -> bytes:
    for secret in g.get("shown_once", ()):
        body = body.replace(secret.encode(), MASK.encode())
    return body
