"""Small charts as SVG, drawn here: no script, no style, and a table beside each for readers.

Sizes are in units of the drawing; the page's stylesheet gives colours by class, in light and dark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of a chart, and what stands beside it when a pointer rests on it."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a scatter."""

    x: float
    y: float
    kind: str
    title: str
    link: str


def stacked(
    columns: Sequence[tuple[str, Mapping[str, int]]], kinds: Sequence[str], width: float, height: float
) -> list[Bar]:
    """Bars above each other for each column, in the order of `kinds`; the highest column fills the height."""
    highest = max((sum(counts.values()) for _, counts in columns), default=0) or 1
    step = width / max(len(columns), 1)
    bars = []
    for number, (label, counts) in enumerate(columns):
        top = height
        for kind in kinds:
            if count := counts.get(kind, 0):
                tall = max(count / highest * height, 1.0)
                top -= tall
                title = f"{label}: {count} {kind.replace('_', ' ')}"
                bars.append(Bar(round(number * step, 1), round(top, 1), round(max(step - 1, 1), 1),
                                round(tall, 1), kind, title))  # fmt: skip
    return bars


def on_log_scale(value: float, least: float, most: float, height: float) -> float:
    """The height of a value above the bottom of a chart whose scale goes from `least` to `most`, both
    positive."""
    share = (log10(max(value, least)) - log10(least)) / (log10(most) - log10(least) or 1)
    return round(min(share, 1.0) * height, 1)
