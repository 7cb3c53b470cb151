"""Lines in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Histogram:
    """Counts values by upper bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        place = next((place for place, bound in enumerate(self._bounds) if value <= bound), len(self._bounds))
        self._counts[place] += 1
        self._sum += value

    def render(self, name: str, text: str) -> Iterator[str]:
        total = 0
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} histogram"
        for bound, count in zip((*self._bounds, "+Inf"), list(self._counts), strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {total}"


def metric_lines(name: str, kind: str, text: str, value: object) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    yield f"{name} {value}"


def labelled_lines(
    name: str, label: str, text: str, values: Mapping[str, float], kind: str = "counter"
) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for value, count in sorted(dict(values).items()):
        yield f'{name}{{{label}="{value}"}} {count}'
