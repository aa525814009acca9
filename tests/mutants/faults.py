"""The deliberate faults that can be put into a file: each changes one place of one function.

Lines that only log or count are left out: calls of `log`, `metrics` and their parts, notes of unexpected
errors, and a condition or a loop in which nothing else happens. So are texts, annotations, defaults of
arguments, assertions, which of two checks or of two families of metrics comes first, which index a query
uses, and that it reads more fields than it needs.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import pairwise
from typing import Final, NamedTuple

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}
#: A condition of the store is a document for MongoDB.
_QUERIES: Final = {
    "$lt": "$gte",
    "$gte": "$lt",
    "$lte": "$gt",
    "$gt": "$lte",
    "$eq": "$ne",
    "$ne": "$eq",
    "$in": "$nin",
    "$nin": "$in",
    "$and": "$or",
    "$or": "$and",
}
_OPPOSITES: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
#: Whose calls only log or count.
_QUIET_NAMES: Final = frozenset({"log", "metrics"})
_QUIET_METHODS: Final = ("inc", "dec", "observe")
#: An attribute whose calls log and count: `telemetry.logs.UnexpectedErrors`.
_QUIET_ATTRIBUTE: Final = "_unexpected"
#: A check raises or does nothing: of two that fail, the first one is told.
_CHECK: Final = "require"

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ASSIGNMENTS: Final = (ast.Assign, ast.AnnAssign)
_SIMPLE: Final = (ast.Expr, *_ASSIGNMENTS, ast.AugAssign, ast.Delete)


class Key(NamedTuple):
    """What a fault is called in the list of equivalents: it stays the same when lines move."""

    file: str
    function: str
    was: str
    becomes: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One change of a file."""

    file: str
    function: str
    line: int
    """The first line that it changes."""
    start: int
    end: int
    """The bytes that are replaced."""
    new: bytes

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new + source[self.end :]

    def key(self, source: bytes) -> Key:
        begin = source.rfind(b"\n", 0, self.start) + 1
        finish = source.find(b"\n", self.end)
        was = source[begin:finish]
        becomes = source[begin : self.start] + self.new + source[self.end : finish]
        return Key(self.file, self.function, *(" ".join(each.decode().split()) for each in (was, becomes)))

    def diff(self, source: bytes) -> str:
        before, after = source.decode().splitlines(), self.applied(source).decode().splitlines()
        name = f"{self.file} ({self.function})"
        return "\n".join(unified_diff(before, after, name, name, lineterm="", n=2))


def faults_of(file: str, source: bytes, functions: Collection[str] | None = None) -> list[Fault]:
    """All faults of a file, or of these functions, in the order of its lines."""
    finder = _Finder(file, source)
    finder.look_into(ast.parse(source).body, "")
    found = [each for each in finder.found if functions is None or each.function in functions]
    kept = {each.applied(source): each for each in found if _compiles(each.applied(source))}
    return sorted(kept.values(), key=lambda fault: (fault.start, fault.end, fault.new))


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "fault", "exec")
    except SyntaxError:
        return False
    return True


class _Finder:
    def __init__(self, file: str, source: bytes) -> None:
        self._file = file
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._function = ""
        self._quiet = _QUIET_NAMES
        """Names whose calls only log or count."""
        self.found: list[Fault] = []

    def look_into(self, body: Sequence[ast.stmt], within: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                self.look_into(node.body, f"{within}{node.name}.")
            elif isinstance(node, _Function):
                self._function = f"{within}{node.name}"
                self._quiet = _QUIET_NAMES | {*_names_of_metrics(node)}
                self._block(node.body)
                inner = [each for each in ast.walk(node) if isinstance(each, _Function) and each is not node]
                self.look_into(inner, f"{within}{node.name}.")

    # -- statements ----------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt], *, handler: bool = False) -> None:
        for first, second in pairwise(body):
            both_assign = isinstance(first, _ASSIGNMENTS) and isinstance(second, _ASSIGNMENTS)
            swappable = self._swappable(first) and self._swappable(second) and not both_assign
            if swappable and not (_depends(first, second) or _are_checks(first, second)):
                between = self._source[self._at(first)[1] : self._at(second)[0]]
                new = self._text(second) + between + self._text(first)
                self._replace(self._at(first)[0], self._at(second)[1], new)
        for node in body:
            self._statement(node, handler=handler)

    def _statement(self, node: ast.stmt, *, handler: bool) -> None:
        if self._is_quiet(node) or isinstance(node, (ast.Assert, ast.ClassDef, *_Function.__args__)):
            return
        if _can_be_left_out(node):
            self._change(node, b"pass")
        if isinstance(node, ast.Return):
            self._return(node, handler=handler)
        elif isinstance(node, ast.Raise):
            self._change(node, b"pass")
            if handler:
                self._change(node, b"return None")
            return  # its text
        elif isinstance(node, ast.Break):
            self._change(node, b"continue")
        elif isinstance(node, ast.Continue):
            self._change(node, b"break")
        elif isinstance(node, ast.If | ast.While) and not self._only_quiet(node):
            self._negate(node.test)
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse", "finalbody"):
                self._block(value, handler=handler)
            elif name == "handlers":
                for each in value:
                    self._block(each.body, handler=True)
            elif name == "cases":
                for each in value:
                    self._block(each.body)
            elif name != "annotation" and not (name == "test" and self._only_quiet(node)):
                for each in value if isinstance(value, list) else [value]:
                    if isinstance(each, ast.AST):
                        self._expressions(each)

    def _return(self, node: ast.Return, *, handler: bool) -> None:
        if node.value is None:
            self._change(node, b"pass")
        elif not (isinstance(node.value, ast.Constant) and not node.value.value):  # as good as None mostly
            self._change(node.value, b"None")
        if handler:
            self._change(node, b"raise")

    # -- expressions ---------------------------------------------------------------------------------------

    def _expressions(self, node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr) or self._is_quiet_call(node) or _is_no_argument(node):
            return
        self._expression(node)
        projection = _projection(node)
        if projection is not None and len(projection.keys) > 1:
            self._expression(projection)
        for name, value in ast.iter_fields(node):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST) and name != "annotation" and each is not projection:
                    self._expressions(each)

    def _expression(self, node: ast.AST) -> None:
        if isinstance(node, ast.IfExp):
            self._negate(node.test)
        elif isinstance(node, ast.comprehension):
            for condition in node.ifs:
                self._negate(condition)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._change(node, self._text(node.operand))
        elif isinstance(node, ast.Compare):
            left = [node.left, *node.comparators]
            for operator, before, after in zip(node.ops, left, left[1:], strict=False):
                self._operator(before, after, *_COMPARISONS[type(operator)])
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for before, after in zip(node.values, node.values[1:], strict=False):
                self._operator(before, after, old, new)
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            self._operator(node.left, node.right, *_ARITHMETIC[type(node.op)])
        elif isinstance(node, ast.Constant):
            self._constant(node)
        elif isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Dict):
            pairs = [(self._at(key or value)[0], self._at(value)[1]) for key, value in _pairs(node)]
            for number in range(len(pairs)):
                self._leave_out(pairs, number)

    def _constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._change(node, b"False" if node.value else b"True")
        elif isinstance(node.value, int):
            self._change(node, str(node.value + 1).encode())
        elif isinstance(node.value, float):
            self._change(node, str(node.value * 2 or 1.0).encode())
        elif node.value in _QUERIES:
            self._change(node, f'"{_QUERIES[node.value]}"'.encode())

    def _call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _OPPOSITES:
            self._change(node.func, _OPPOSITES[node.func.id].encode())
        given = sorted(self._at(each) for each in [*node.args, *node.keywords])
        for keyword in node.keywords:
            if keyword.arg is not None and not _is_no_argument(keyword):
                self._leave_out(given, given.index(self._at(keyword)))

    # -- what only logs or counts -------------------------------------------------------------------------

    def _is_quiet(self, node: ast.stmt) -> bool:
        """Whether a statement only logs or counts, or says something to a reader."""
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or self._is_quiet_call(node.value)
        if isinstance(node, ast.For | ast.If):
            return all(map(self._is_quiet, [*node.body, *node.orelse]))
        return isinstance(node, ast.Pass)

    def _is_quiet_call(self, node: ast.AST | None) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in _QUIET_METHODS:
            return True
        return any(
            (isinstance(each, ast.Name) and each.id in self._quiet)
            or (isinstance(each, ast.Attribute) and each.attr == _QUIET_ATTRIBUTE)
            for each in _chain(node)
        )

    def _only_quiet(self, node: ast.AST) -> bool:
        return isinstance(node, ast.If | ast.While) and all(map(self._is_quiet, [*node.body, *node.orelse]))

    def _swappable(self, node: ast.stmt) -> bool:
        """Statements that have an effect by a call: which comes first may matter."""
        if not isinstance(node, _SIMPLE) or self._is_quiet(node):
            return False
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            return not self._is_quiet_call(node.value.value)
        return any(isinstance(each, ast.Call | ast.Await) for each in ast.walk(node)) and not (
            isinstance(node, ast.Assign | ast.AnnAssign) and _is_pure(node)
        )

    # -- the text ------------------------------------------------------------------------------------------

    def _negate(self, node: ast.expr) -> None:
        if not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            self._change(node, b"not (" + self._text(node) + b")")

    def _operator(self, before: ast.expr, after: ast.expr, old: str, new: str) -> None:
        begin, end = self._at(before)[1], self._at(after)[0]
        between = self._source[begin:end]
        if between.count(old.encode()) == 1:
            self._replace(begin, end, between.replace(old.encode(), new.encode()))

    def _leave_out(self, of: Sequence[tuple[int, int]], number: int) -> None:
        """Leaves out one of what stands between commas."""
        begin, end = of[number]
        if number + 1 < len(of):
            end = of[number + 1][0]
        elif number:
            begin = of[number - 1][1]
        self._replace(begin, end, b"")

    def _change(self, node: ast.AST, new: bytes) -> None:
        self._replace(*self._at(node), new)

    def _replace(self, begin: int, end: int, new: bytes) -> None:
        line = self._source.count(b"\n", 0, begin) + 1
        self.found.append(Fault(self._file, self._function, line, begin, end, new))

    def _at(self, node: ast.AST) -> tuple[int, int]:
        place = node
        assert isinstance(place, ast.expr | ast.stmt | ast.keyword)
        assert place.end_lineno is not None
        assert place.end_col_offset is not None
        return (
            self._lines[place.lineno - 1] + place.col_offset,
            self._lines[place.end_lineno - 1] + place.end_col_offset,
        )

    def _text(self, node: ast.AST) -> bytes:
        begin, end = self._at(node)
        return self._source[begin:end]


def _is_no_argument(node: ast.AST) -> bool:
    """`strict=True` of `zip`, which is an assertion; a thread's name, which is a text; and the index that
    a query is to use, which changes no answer: `test_queries_use_indexes.py` looks at how queries are run."""
    if not isinstance(node, ast.keyword):
        return False
    return node.arg in ("strict", "hint") or (node.arg == "name" and isinstance(node.value, ast.Constant))


def _projection(node: ast.AST) -> ast.Dict | None:
    """The fields that a query reads, `{"_id": 1, "state": 1}`: any other number says the same as 1, and
    without the only one it reads all fields."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    if node.func.attr not in ("find", "find_one") or len(node.args) < 2:
        return None
    given = node.args[1]
    if not isinstance(given, ast.Dict):
        return None
    return given if all(isinstance(each, ast.Constant) and each.value == 1 for each in given.values) else None


def _chain(node: ast.AST | None) -> Iterator[ast.AST]:
    """What a call is made on: `a`, `a.b` and `a.b(c)` of `a.b(c).d()`."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
        yield node


def _pairs(node: ast.Dict) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """But for what is unpacked, whose stars have no place of their own."""
    pairs = list(zip(node.keys, node.values, strict=True))
    return iter([] if any(key is None for key, _ in pairs) else pairs)


def _can_be_left_out(node: ast.stmt) -> bool:
    """What no later line has to have: without the first assignment of a name any test would fail."""
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Delete):
        return True
    return isinstance(node, ast.Assign) and any(
        isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets
    )


def _are_checks(*nodes: ast.stmt) -> bool:
    return all(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == _CHECK
        for node in nodes
    )


def _is_pure(node: ast.Assign | ast.AnnAssign) -> bool:
    """A name is given to what a function, and no object's method, returns."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    return all(isinstance(each.func, ast.Name) for each in calls)


def _depends(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether one of them binds a name that the other uses."""
    names = [
        {(each.id, isinstance(each.ctx, ast.Store)) for each in ast.walk(node) if isinstance(each, ast.Name)}
        for node in (first, second)
    ]
    stored = {name for of in names for name, is_stored in of if is_stored}
    return any(all(name in {each for each, _ in of} for of in names) for name in stored)


def _names_of_metrics(function: ast.AST) -> Iterator[str]:
    """Names that a function gives to a part of a metric."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _QUIET_NAMES & {
            each.id for each in _chain(node.value) if isinstance(each, ast.Name)
        }:
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))
