"""When a device was busy: from a profile to a share, a JSON file and a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from torch.autograd import DeviceType

_ROW_US, _ROWS, _WIDTH, _HEIGHT = 1000.0, 24, 1000, 14
"""A picture has so many rows of a millisecond."""


class Interval(NamedTuple):
    """Something that the device did, in microseconds."""

    start: float
    end: float
    name: str


def device_intervals(profile: Any, device_type: DeviceType) -> list[Interval]:
    """What a ``torch.profiler.profile`` has seen on devices of a type, by start."""
    events = (event for event in profile.events() if event.device_type == device_type)
    return sorted(Interval(event.time_range.start, event.time_range.end, event.name) for event in events)


def busy_spans(intervals: Sequence[Interval]) -> list[tuple[float, float]]:
    """The times in which anything ran, without overlaps, ascending."""
    spans: list[tuple[float, float]] = []
    for start, end, _ in sorted(intervals):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return spans


def busy_share(intervals: Sequence[Interval]) -> float:
    """The share of the time from the first start to the last end in which anything ran; 0 of nothing."""
    spans = busy_spans(intervals)
    whole = spans[-1][1] - spans[0][0] if spans else 0.0
    return sum(end - start for start, end in spans) / whole if whole else 0.0


def keep(intervals: Sequence[Interval], path: Path, title: str) -> None:
    """Write ``path`` with what was seen, and a picture of the first milliseconds beside it."""
    spans = busy_spans(intervals)
    gaps = sorted((b[0] - a[1] for a, b in pairwise(spans)), reverse=True)
    first = spans[0][0] if spans else 0.0
    names = sorted({interval.name for interval in intervals})
    content = {
        "title": title,
        "busy_share": busy_share(intervals),
        "longest_gaps_us": gaps[:20],
        "names": names,
        "start_us, duration_us, name": [
            [round(start - first, 2), round(end - start, 2), names.index(name)] for start, end, name in intervals
        ],
    }
    path.write_text(json.dumps(content) + "\n")
    path.with_suffix(".svg").write_text(_picture([(start - first, end - first) for start, end in spans], title))


def _picture(spans: Sequence[tuple[float, float]], title: str) -> str:
    blocks = []
    for row in range(_ROWS):
        begin, top = row * _ROW_US, 24 + row * (_HEIGHT + 4)
        blocks.append(f'<rect x="0" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="#eee"/>')
        for start, end in spans:
            left, right = (min(max(at - begin, 0.0), _ROW_US) * _WIDTH / _ROW_US for at in (start, end))
            if right > left:
                shape = f'x="{left:.2f}" y="{top}" width="{right - left:.2f}" height="{_HEIGHT}"'
                blocks.append(f'<rect {shape} fill="#27c"/>')
    height = 30 + _ROWS * (_HEIGHT + 4)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif">'
    text = f'<text x="0" y="16" font-size="14">{title}; a row is a millisecond, blue is busy</text>'
    return "\n".join([head, text, *blocks, "</svg>"]) + "\n"
