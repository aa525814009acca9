"""What an edit may keep of a request's secrets: they stay with the origin that they were given for.

Otherwise whoever may edit a schedule, and is shown nothing but masks, would have its secrets sent to a
receiver of his own.
"""

from collections.abc import Collection
from dataclasses import replace

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import Body, HttpAction
from scheduler_app.domain.masking import (
    MASKED_BODY,
    has_masked_query,
    is_secret,
    masked_names,
    unmasked,
    unmasked_url,
)
from scheduler_app.domain.origin import UNKNOWN_ORIGIN, origin_of


def resolved(asked: HttpAction, kept: Collection[str], old: HttpAction, known: HttpAction) -> HttpAction:
    """The request that is asked for, with the values that its masks stand for.

    `kept` names what of it ("headers", "body") was not given and is `old`'s own; masks stand for values of
    `known`. Raises InvalidField where a value would go to another origin than it was given for, naming all
    that must be given again, and where a mask stands for nothing.
    """
    moved, elsewhere = _differ(asked.url, old.url), _differ(asked.url, known.url)
    again = _kept_secrets(old, kept) if moved else []
    again += _masks(asked, kept) if elsewhere and known.url else []
    if again:
        raise InvalidField(
            "callback_url",
            f"is another origin than {origin_of(known.url if elsewhere else old.url)}, and secrets that were"
            f" given for one origin are not sent to another: give {', '.join(dict.fromkeys(again))} again, or"
            " leave them out (headers: {}, body: null)",
        )
    return replace(
        asked, url=_url(asked, known), headers=_headers(asked, kept, known), body=_body(asked, known)
    )


def _differ(url: str, other: str) -> bool:
    origin = origin_of(url)
    return url != other and (origin == UNKNOWN_ORIGIN or origin != origin_of(other))


def _kept_secrets(old: HttpAction, kept: Collection[str]) -> list[str]:
    names = [f"the header {name}" for name, _ in old.headers if is_secret(name)] if "headers" in kept else []
    return names + (["the body"] if "body" in kept and old.body else [])


def _masks(asked: HttpAction, kept: Collection[str]) -> list[str]:
    names = [f"the header {name}" for name in masked_names(asked.headers)] if "headers" not in kept else []
    names += ["the body"] if asked.body and asked.body.data == MASKED_BODY else []
    return names + (["the values of the query"] if has_masked_query(asked.url) else [])


def _url(asked: HttpAction, known: HttpAction) -> str:
    try:
        return unmasked_url(asked.url, known.url)
    except KeyError as error:
        of_what = f"the value of {error.args[0]}" if error.args[0] else "a part of the query"
        raise InvalidField(
            "callback_url", f"{of_what} is masked, and there is no value to keep: give the real one"
        ) from None


def _headers(asked: HttpAction, kept: Collection[str], known: HttpAction) -> tuple[tuple[str, str], ...]:
    if "headers" in kept:
        return asked.headers
    try:
        return unmasked(asked.headers, known.headers)
    except KeyError as error:
        raise InvalidField(
            "headers", f"{error.args[0]} is masked, and there is no value to keep: give the real one"
        ) from None


def _body(asked: HttpAction, known: HttpAction) -> Body | None:
    if asked.body is None or asked.body.data != MASKED_BODY:
        return asked.body
    if known.body is None:
        raise InvalidField(
            asked.body.kind.value, "is masked, and there is no value to keep: give the real one"
        )
    return known.body
