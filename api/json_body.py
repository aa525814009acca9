"""Reads a JSON body strictly (RFC 8259), and within bounds however deep or long it is.

It must be UTF-8, without NaN and unpaired surrogates. A name that stands twice in an object is refused:
parsers disagree about which of the two counts.
"""

import json
import math
import sys
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from json import JSONDecodeError

from scheduler_app.api.problems import MAX_POINTER, Problem
from scheduler_app.domain.text import visible

_SLIPS = "JSON has names in double quotes, no comma before a closing bracket, and no comments"


class _NoConstant(ValueError):
    """NaN or an infinity, which Python's parser would accept."""


class _Repeated(Exception):
    """A name stands twice in an object."""


class _Members(list[tuple[str, object]]):
    """An object's members as they were written."""


def read_json(raw: bytes, max_values: int) -> object:
    """The value of `raw`. `max_values` bounds the number of values at all depths, because each takes far more
    memory than its bytes. Raises Problem (400, 413)."""
    if _values(raw, max_values) > max_values:
        raise Problem(413, f"the body holds more than {max_values:,} values; send less at once")
    if raw.startswith(BOM_UTF8):
        raise Problem(400, "the body begins with a byte order mark; send it without")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(
            400, f"the body is not in UTF-8, from its byte {error.start} on; send it in UTF-8"
        ) from None
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_once_each)
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise Problem(400, "the body is nested too deeply") from None
    except UnicodeEncodeError:
        raise Problem(400, "the body holds half of a surrogate pair, which is no character") from None
    except _Repeated:
        pointer = _first_repeated(text)[:MAX_POINTER]
        detail = "is given more than once in its object; give it once"
        raise Problem(
            400, f"{pointer.lstrip('/')}: {detail}", [{"pointer": pointer, "detail": detail}]
        ) from None
    except JSONDecodeError as error:
        hint = f"; {_SLIPS}" if "property name" in error.msg else ""
        raise Problem(400, f"the body is not well-formed JSON: {error}{hint}"[:300]) from None
    except _NoConstant as error:
        raise Problem(400, f"the body is not well-formed JSON: {error}") from None
    except ValueError:
        # Python's own bound: the time to read a number grows with the square of its length.
        most = sys.get_int_max_str_digits()
        raise Problem(400, f"the body holds a number of more than {most:,} digits; send it as text") from None
    if not all(math.isfinite(number) for number in _floats(value)):
        raise Problem(400, "the body holds a number beyond what a double can hold")
    return value


def _once_each(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        raise _Repeated
    return found


def _first_repeated(text: str) -> str:
    """The JSON pointer of the first repeated name, in a text that has one."""
    open_: deque[tuple[str, object]] = deque([("", json.loads(text, object_pairs_hook=_Members))])
    while open_:
        path, value = open_.popleft()
        if isinstance(value, _Members):
            names: set[str] = set()
            for name, member in value:
                if name in names:
                    return visible(f"{path}/{name}")
                names.add(name)
                open_.append((f"{path}/{name}"[:MAX_POINTER], member))
        elif isinstance(value, list):
            open_.extend((f"{path}/{index}"[:MAX_POINTER], each) for index, each in enumerate(value))
    raise AssertionError("unreachable")


def _values(raw: bytes, enough: int) -> int:
    """An upper bound of the number of values in the JSON, found without parsing it. Strings are excluded only
    where the count might exceed `enough`."""
    count = _separators(raw)
    if count <= enough:
        return count
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A member of an object has at most two strings, each with two quotes.
    by_quotes = plain.count(b'"') // 4
    return by_quotes if by_quotes > enough else _separators(b"".join(plain.split(b'"')[::2]))


def _separators(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{") + 1


def _refuse_constant(name: str) -> None:
    raise _NoConstant(f"{name} is no JSON value")


def _floats(value: object) -> Iterator[float]:
    """Every float in `value`. Without recursion: JSON may be nested deeper than Python's call stack."""
    open_ = [value]
    while open_:
        item = open_.pop()
        if isinstance(item, float):
            yield item
        elif isinstance(item, dict):
            open_.extend(item.values())
        elif isinstance(item, list):
            open_.extend(item)
