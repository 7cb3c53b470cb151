"""Sizes and times as people read them; in JSON they are bytes and seconds."""

from __future__ import annotations

from datetime import datetime, timezone

_KIB = 1024
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class Size(int):
    """Bytes."""

    def __str__(self) -> str:
        size, unit = float(self), "B"
        for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
            if size < _KIB or unit == "TiB":
                break
            size /= _KIB
        return f"{int(self)} B" if unit == "B" else f"{size:.1f} {unit}"


class Age(float):
    """Seconds."""

    def __str__(self) -> str:
        for length, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
            if self >= 2 * length:
                return f"{int(self // length)} {unit}"
        return f"{float(self):.1f} s"


def age_of(moment: datetime | None) -> Age | None:
    """How long ago that was; nothing is younger than now, whatever a clock says."""
    if moment is None:
        return None
    return Age(round(max(0.0, (datetime.now(timezone.utc) - moment).total_seconds()), 3))
