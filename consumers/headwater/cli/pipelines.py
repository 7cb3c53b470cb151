"""Which pipeline `headwater write` runs, and the flags of the coordinated one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.flags import Flags, one_of
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.sources import Source
    from headwater.consumers.writer.coordinated import Coordinator
    from headwater.lineage.store import Store

PLAIN: Final = "plain"
COORDINATED: Final = "coordinated"
JDBC: Final = "jdbc"
"""The store's own implementation; another one is somebody's plug-in."""
_TIMES: Final = {"ms": 0.001, "s": 1.0, "min": 60.0}
_SIZES: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LEAST_BYTES: Final = 1 << 20


def add_pipeline(parser: Flags) -> None:
    parser.flag("pipeline", one_of((PLAIN, COORDINATED)), PLAIN, "plain, or coordinated: several connections at once")
    parser.flag("buckets", _count, "4", "coordinated: so many connections write at once", "N")
    parser.flag("instant-interval", _seconds, "100ms", "coordinated: an instant ends after so long", "TIME")
    parser.flag("bucket-max-rows", _count, "20000", "coordinated: a bucket with so many rows is flushed at once", "N")
    parser.flag("buffer-max-bytes", _bytes, "128MiB", "coordinated: with so much in memory nothing is polled", "BYTES")
    parser.flag("flush-timeout", _seconds, "60s", "coordinated: a flush that takes longer is repeated", "TIME")


def check_pipeline(given: Any) -> None:
    """Before anything is opened."""
    if given.pipeline == PLAIN:
        return
    if given.store_of:
        raise ConfigurationError(
            "the coordinated pipeline keeps one store: leave --pipeline at plain for --store-of; where one writer "
            "isn't quick enough, several of one --group share the partitions"
        )
    if given.lineage_meta != JDBC:
        raise ConfigurationError(
            f"the coordinated pipeline keeps a database of headwater's own, and not {given.lineage_meta}: leave "
            "--pipeline at plain for --lineage-meta"
        )


def coordinated(source: Source, store: Store, given: Any) -> Coordinator:
    """Its connections are its own, apart from the store's."""
    from headwater.consumers.writer.coordinated import Coordinator, Lane, Limits  # noqa: PLC0415

    if store.engine.dialect.name == "sqlite":
        raise ConfigurationError("SQLite lets one connection write at a time: leave --pipeline at plain")
    limits = Limits(
        buckets=given.buckets,
        interval=given.instant_interval,
        bucket_rows=given.bucket_max_rows,
        buffer_bytes=given.buffer_max_bytes,
        flush_seconds=given.flush_timeout,
    )
    lanes = [Lane.into(store.target, limits.flush_seconds) for _ in range(limits.buckets)]
    own = Lane.into(store.target, limits.flush_seconds)
    return Coordinator(
        source,
        own,
        lanes,
        given.group,
        limits,
        most=given.batch,
        until_end=given.until_end,
        most_invalid=given.most_invalid,
    )


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise ValueError(f"{text!r} is no number of them")
    return int(text)


def _seconds(text: str) -> float:
    number, unit = _told(text, _TIMES, "100ms, 2s, 1min")
    return number * _TIMES[unit]


def _bytes(text: str) -> int:
    number, unit = _told(text, _SIZES, "64MiB, 1GiB, 134217728")
    size = int(number * _SIZES[unit])
    if size < _LEAST_BYTES:
        raise ValueError(f"{text!r} is less than 1MiB: nothing would fit")
    return size


def _told(text: str, units: dict[str, float] | dict[str, int], examples: str) -> tuple[float, str]:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)", text.strip())
    if found is None or found[2] not in units or float(found[1]) == 0:
        raise ValueError(f"{text!r} is not written like {examples}")
    return float(found[1]), found[2]
