"""Draws lines over time as SVG text; pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Final

_WIDTH, _HEIGHT = 800, 320
_LEFT, _TOP, _RIGHT, _BOTTOM = 80, 30, 150, 40
_COLOURS: Final = ("#1b6ca8", "#d1495b", "#3c8d53", "#8a5fb0", "#c27c0e", "#4b4b4b")


def format_chart(title: str, points: Sequence[tuple[str, Mapping[str, int]]]) -> str:
    """Draw one line per name.

    Args:
        title: text above the lines.
        points: each a time in ISO 8601, and values by name; at least one.
    """
    times = [datetime.fromisoformat(time).timestamp() for time, _ in points]
    first, span = min(times), max(max(times) - min(times), 1e-9)
    top = max((value for _, values in points for value in values.values()), default=0) or 1
    names = sorted({name for _, values in points for name in values})
    parts = [_text(_LEFT, _TOP - 12, title), *_axes(points[0][0], points[-1][0], top)]
    for place, name in enumerate(names):
        colour = _COLOURS[place % len(_COLOURS)]
        line = " ".join(
            f"{_LEFT + (time - first) / span * _inner_width():.1f},{_y(values[name] / top):.1f}"
            for time, (_, values) in sorted(zip(times, points, strict=True), key=lambda pair: pair[0])
            if name in values
        )
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(_WIDTH - _RIGHT + 10, _TOP + 16 * (place + 1), name, colour))
    size = f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', *parts, "</svg>", ""])


def _axes(first: str, last: str, top: int) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    return [
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#888"/>',
        _text(5, _TOP + 5, f"{top:,}"),
        _text(5, bottom, "0"),
        _text(_LEFT, bottom + 20, first),
        _text(right - 150, bottom + 35, last),
    ]


def _inner_width() -> int:
    return _WIDTH - _LEFT - _RIGHT


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _text(x: int, y: int, text: str, colour: str = "#333") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}">{escape(text)}</text>'
