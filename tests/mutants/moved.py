"""Where the lines of source files are after an edit."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Final

#: A file, and a line of it, counted from 1.
Line = tuple[str, int]
#: A shorter line may stand anywhere.
_TELLING: Final = 12


def lines_now(old: Mapping[str, str], new: Mapping[str, str]) -> dict[Line, list[Line]]:
    """The lines of the files of `new` by those of `old`: texts by their paths.

    What was replaced is all that stands there now, and what was put behind a line belongs to it. A line of a
    file that has come is one that has left another file, if there is such a one.
    """
    found: defaultdict[Line, list[Line]] = defaultdict(list)
    left: dict[str, list[Line]] = {}
    for path, text in old.items():
        lines, now = text.splitlines(), new.get(path, "").splitlines()
        for number, places in _within(lines, now):
            found[path, number] += [(path, each) for each in places]
        there = {line.strip() for line in now}
        for number, line in enumerate(lines, 1):
            if len(line.strip()) >= _TELLING and line.strip() not in there:
                left.setdefault(line.strip(), []).append((path, number))
    for path in new.keys() - old.keys():
        for number, line in enumerate(new[path].splitlines(), 1):
            for origin in left.get(line.strip(), ()):
                found[origin].append((path, number))
    return dict(found)


def _within(old: list[str], new: list[str]) -> Iterator[tuple[int, range]]:
    for kind, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            for at in range(1, last - first + 1):
                yield first + at, range(begin + at, begin + at + 1)
        elif kind == "insert" and first:
            yield first, range(begin + 1, end + 1)
        else:
            for number in range(first + 1, last + 1):
                yield number, range(begin + 1, end + 1)
