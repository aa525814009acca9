"""Compares the OpenAPI document with the last release's, and refuses what breaks a client of that release.

`python -m docs.reference.compatibility` compares, as `make check` does, and ends with 1 and a line for each
break; a file can be named in the place of the one in `docs/releases`. `python -m docs.reference.compatibility
release` keeps today's document, which is a step of a release.

What a request may hold can only widen, what an answer may hold can only narrow or gain fields. What was
deprecated may go after its sunset.
"""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from scheduler_app.api.factory import specification
from scheduler_app.config import Settings

Node = dict[str, Any]

RELEASED = Path(__file__).parents[1] / "releases" / "openapi.json"
METHODS = ("get", "put", "post", "patch", "delete")
#: They say something to people, and nothing to programs.
_WORDS = {"description", "title", "example", "examples", "deprecated", "x-sunset"}
_AT_MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_AT_LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_COMPARED = {"type", "enum", "properties", "required", "items", "additionalProperties", "anyOf", "$ref"}
_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}


class Comparison:
    """The document of a release, beside a later one."""

    def __init__(self, before: Node, after: Node, today: date) -> None:
        self._before, self._after, self._today = before, after, today
        #: Pairs of schemas that are being compared: they may hold themselves.
        self._open: set[tuple[str, str, bool]] = set()
        #: Those in which nothing was found: all answers of errors are of one schema.
        self._alike: set[tuple[str, str, bool]] = set()

    def breaks(self) -> Iterator[str]:
        """What breaks a client, a sentence each."""
        for alternative in self._before.get("security", []):
            if alternative not in self._after.get("security", []):
                yield f"the authentication {'+'.join(alternative) or 'without a key'} is gone"
        for path, item in self._before["paths"].items():
            for method in METHODS:
                if method not in item:
                    continue
                was, now = item[method], self._after["paths"].get(path, {}).get(method)
                where = f"{method.upper()} {path}"
                if now is not None:
                    yield from self._operation(was, now, where, item, self._after["paths"][path])
                elif not self._is_over(was):
                    yield f"{where} is gone"

    def _operation(self, was: Node, now: Node, where: str, item: Node, item_now: Node) -> Iterator[str]:
        if was["operationId"] != now["operationId"]:
            yield f"{where}: its operationId was {was['operationId']} and is {now['operationId']}"
        yield from self._parameters(
            self._by_name(self._before, item, was), self._by_name(self._after, item_now, now), where
        )
        yield from self._body(was.get("requestBody"), now.get("requestBody"), where)
        for status, answer in was["responses"].items():
            if status in now["responses"]:
                yield from self._answer(answer, now["responses"][status], f"{where}: answer {status}")
            else:
                yield f"{where}: the answer {status} is gone"

    def _by_name(self, document: Node, item: Node, operation: Node) -> dict[tuple[str, str], Node]:
        every = [*item.get("parameters", ()), *operation.get("parameters", ())]
        found = [_resolved(document, each) for each in every]
        return {(each["in"], each["name"]): each for each in found}

    def _parameters(
        self, were: dict[tuple[str, str], Node], are: dict[tuple[str, str], Node], where: str
    ) -> Iterator[str]:
        for key, was in were.items():
            name = f"{where}: parameter {key[1]}"
            if key in are:
                if are[key].get("required") and not was.get("required"):
                    yield f"{name} is required now"
                yield from self._schemas(was["schema"], are[key]["schema"], name, asked=True)
            elif not self._is_over(was):
                yield f"{name} is gone"
        for key in are.keys() - were.keys():
            if are[key].get("required"):
                yield f"{where}: parameter {key[1]} is new and required"

    def _body(self, was: Node | None, now: Node | None, where: str) -> Iterator[str]:
        if now is not None and now.get("required") and not (was and was.get("required")):
            yield f"{where}: a body is required now"
        if was is not None:
            yield from self._contents(was, now or {}, f"{where}: body", asked=True)

    def _answer(self, was: Node, now: Node, where: str) -> Iterator[str]:
        was, now = _resolved(self._before, was), _resolved(self._after, now)
        for name in was.get("headers", {}).keys() - now.get("headers", {}).keys():
            yield f"{where}: the header {name} is gone"
        yield from self._contents(was, now, where, asked=False)

    def _contents(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        for kind, media in was.get("content", {}).items():
            if kind not in now.get("content", {}):
                yield f"{where}: {kind} is gone"
            elif "schema" in media:
                yield from self._schemas(
                    media["schema"], now["content"][kind].get("schema", {}), where, asked=asked
                )

    def _schemas(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        """`asked`: of what a client sends; otherwise of what it is answered."""
        pair = (was.get("$ref", ""), now.get("$ref", ""), asked)
        if not all(pair[:2]):
            yield from self._resolved_schemas(was, now, where, asked=asked)
        elif pair not in self._open:
            # What stands beside a reference, and what is still compared around it, is not of the pair alone.
            is_alone = not self._open and len(was) == len(now) == 1
            if is_alone and pair in self._alike:
                return
            self._open.add(pair)
            found = [*self._resolved_schemas(was, now, where, asked=asked)]
            self._open.discard(pair)
            if is_alone and not found:
                self._alike.add(pair)
            yield from found

    def _resolved_schemas(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        was, now = _resolved(self._before, was), _resolved(self._after, now)
        if "discriminator" in was and "discriminator" in now:
            yield from self._kinds(was, now, where, asked=asked)
        else:
            was, now = _united(self._before, was), _united(self._after, now)
            yield from self._one_kind(was, now, where, asked=asked)

    def _one_kind(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        yield from self._values(was, now, where, asked=asked)
        yield from self._fields(was, now, where, asked=asked)
        if "items" in was or "items" in now:
            yield from self._schemas(was.get("items", {}), now.get("items", {}), f"{where}[]", asked=asked)
        yield from self._others(was, now, where, asked=asked)
        yield from self._alternatives(was, now, where, asked=asked)

    def _kinds(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        """The alternatives that a discriminator tells apart."""
        first, second = was["discriminator"]["mapping"], now["discriminator"]["mapping"]
        for name in (first if asked else second).keys() - (second if asked else first).keys():
            yield f"{where}: the alternative {name} is {'gone' if asked else 'new'}"
        for name in first.keys() & second.keys():
            pair = {"$ref": first[name]}, {"$ref": second[name]}
            yield from self._schemas(*pair, f"{where} ({name})", asked=asked)

    def _values(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        """The simple values that a schema allows."""
        wider, narrower = (now, was) if asked else (was, now)
        if not _types(narrower) <= _types(wider):
            yield f"{where}: the type was {was.get('type', 'any')} and is {now.get('type', 'any')}"
        if "enum" in wider and not {*narrower.get("enum", [object()])} <= {*wider["enum"]}:
            yield f"{where}: the words were {was.get('enum', 'any')} and are {now.get('enum', 'any')}"
        if asked:
            yield from _tightened(was, now, where)
        for keyword in (was.keys() | now.keys()) - _COMPARED - _WORDS - {*_AT_MOST, *_AT_LEAST}:
            is_widened = asked and keyword not in now
            is_new_default = keyword == "default" and keyword not in was
            is_narrowed = not asked and keyword == "pattern"
            if was.get(keyword) != now.get(keyword) and not (is_widened or is_new_default or is_narrowed):
                yield f"{where}: {keyword} was {was.get(keyword)!r} and is {now.get(keyword)!r}"

    def _fields(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        fields, later = was.get("properties", {}), now.get("properties", {})
        for name, field in fields.items():
            if name in later:
                yield from self._schemas(field, later[name], f"{where}.{name}", asked=asked)
            elif not (asked and self._is_over(field)):
                yield f"{where}.{name} is gone"
        first, second = {*was.get("required", ())}, {*now.get("required", ())}
        for name in second - first if asked else ():
            yield f"{where}.{name} is required now"
        for name in (first - second) & later.keys() if not asked else ():
            yield f"{where}.{name} may be missing now"

    def _others(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        """The fields that have no names."""
        first, second = was.get("additionalProperties", True), now.get("additionalProperties", True)
        if asked and second is False and first is not False:
            yield f"{where}: fields of other names are refused now"
        if isinstance(first, dict) and isinstance(second, dict):
            yield from self._schemas(first, second, f"{where}.*", asked=asked)

    def _alternatives(self, was: Node, now: Node, where: str, *, asked: bool) -> Iterator[str]:
        if "anyOf" not in was and "anyOf" not in now:
            return
        first, second = was.get("anyOf", [was]), now.get("anyOf", [now])
        for each in first if asked else second:
            others = second if asked else first
            pairs = [(each, other) if asked else (other, each) for other in others]
            if all([*self._schemas(*pair, where, asked=asked)] for pair in pairs):
                yield f"{where}: an alternative is {'gone' if asked else 'new'}"

    def _is_over(self, node: Node) -> bool:
        """Whether this was deprecated in the release, and its sunset is over."""
        sunset = node.get("x-sunset")
        return sunset is not None and date.fromisoformat(sunset) <= self._today


def _tightened(was: Node, now: Node, where: str) -> Iterator[str]:
    for keyword in _AT_MOST:
        if keyword in now and now[keyword] < was.get(keyword, float("inf")):
            yield f"{where}: {keyword} is {now[keyword]} now"
    for keyword in _AT_LEAST:
        if keyword in now and now[keyword] > was.get(keyword, float("-inf")):
            yield f"{where}: {keyword} is {now[keyword]} now"


def _types(schema: Node) -> set[str]:
    given = schema.get("type")
    found = _TYPES if given is None or "$ref" in schema else {given} if isinstance(given, str) else {*given}
    return {*found, "integer"} if "number" in found else {*found}


def _resolved(document: Node, node: Node) -> Node:
    """What a reference names, with what stands beside it."""
    if "$ref" not in node:
        return node
    found: Any = document
    for step in node["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return {**found, **{name: value for name, value in node.items() if name != "$ref"}}


def _united(document: Node, node: Node) -> Node:
    """As `_resolved`; of alternatives that a discriminator tells apart, one schema with the fields of all, as
    a release before described them."""
    node = _resolved(document, node)
    if "discriminator" not in node:
        return node
    each = [_resolved(document, alternative) for alternative in node["oneOf"]]
    tag = node["discriminator"]["propertyName"]
    words = [word for one in each for word in one["properties"][tag]["enum"]]
    properties = {name: field for one in each for name, field in one["properties"].items()}
    required = set.intersection(*({*one.get("required", ())} for one in each))
    return {
        **each[0],
        "properties": properties | {tag: properties[tag] | {"enum": words}},
        "required": sorted(required),
    }


def breaks(before: Node, after: Node, today: date) -> list[str]:
    """What of `after` breaks a client of `before`."""
    return [*Comparison(before, after, today).breaks()]


def main(arguments: list[str]) -> int:
    now = specification(Settings())
    if arguments == ["release"]:
        RELEASED.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")
        return 0
    released = Path(arguments[0]) if arguments else RELEASED
    found = breaks(json.loads(released.read_text()), now, datetime.now(UTC).date())
    for each in found:
        print(f"This breaks clients of the last release: {each}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
