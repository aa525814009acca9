"""Lag over time as an SVG: a dot for each request, or for one of many."""

from collections.abc import Sequence
from pathlib import Path

from tests.bench.arrivals import Arrival

WIDTH, HEIGHT, MARGIN = 900, 400, 60
DOTS = 5_000


def lag_over_time(path: str, arrivals: Sequence[Arrival]) -> None:
    """Seconds since the first was due to the right, lag in ms upwards."""
    ordered = sorted(arrivals, key=lambda arrival: arrival.at)
    shown = ordered[:: max(1, len(ordered) // DOTS)]
    begin = min(arrival.run_time for arrival in ordered)
    seconds = ordered[-1].at - begin
    most = max(arrival.lag_ms for arrival in ordered)
    across, up = (WIDTH - 2 * MARGIN) / seconds, (HEIGHT - 2 * MARGIN) / most
    floor = HEIGHT - MARGIN
    dots = "".join(
        f'<circle r="1" cx="{MARGIN + (each.at - begin) * across:.1f}" cy="{floor - each.lag_ms * up:.1f}"/>'
        for each in shown
    )
    ticks = "".join(
        f'<text x="{MARGIN + part * (WIDTH - 2 * MARGIN):.0f}" y="{floor + 18}" text-anchor="middle">'
        f"{part * seconds:.3g} s</text>"
        f'<text x="{MARGIN - 6}" y="{floor - part * (HEIGHT - 2 * MARGIN) + 4:.0f}" text-anchor="end">'
        f"{part * most:.3g} ms</text>"
        for part in (0, 0.25, 0.5, 0.75, 1)
    )
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="11"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        f'<path d="M{MARGIN} {MARGIN}V{floor}H{WIDTH - MARGIN}" fill="none" stroke="black"/>'
        f'<text x="{MARGIN}" y="24" font-size="14">Lag of {len(ordered):,} callbacks</text>'
        f'{ticks}<g fill="#1f6fb2" fill-opacity="0.5">{dots}</g></svg>\n'
    )
