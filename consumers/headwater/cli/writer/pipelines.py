"""Which pipeline the writer runs: plain, coordinated, or one into a store that somebody else implemented."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.flags import Flags, count, one_of, pair
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.sources import EventSource
    from headwater.consumers.sources.dead_letter_topic import DeadLetterTopic
    from headwater.consumers.writer.coordinated import Coordinator
    from headwater.consumers.writer.runner import Pipeline
    from headwater.lineage.api import LineageMeta
    from headwater.lineage.bulk import DeadLetter, WriterMarks
    from headwater.lineage.store import Store

PLAIN: Final = "plain"
COORDINATED: Final = "coordinated"
JDBC: Final = "jdbc"
"""The store's own implementation; another one is somebody's plug-in."""
_TIMES: Final = {"ms": 0.001, "s": 1.0, "min": 60.0}
_SIZES: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LEAST_BYTES: Final = 1 << 20


def add_pipeline(parser: Flags) -> None:
    """Add the flags that choose a pipeline and set its limits."""
    text = "which implementation the store is: jdbc, or somebody's entry point of headwater.lineage_meta"
    parser.flag("lineage-meta", str, JDBC, text, "NAME")
    parser.flags("store-option", pair, "an option of such an implementation", "KEY=VALUE")
    parser.flag("pipeline", one_of((PLAIN, COORDINATED)), PLAIN, "plain, or coordinated: several connections at once")
    parser.flag("buckets", count, "4", "coordinated: so many connections write at once", "N")
    parser.flag("instant-interval", _seconds, "100ms", "coordinated: an instant ends after so long", "TIME")
    parser.flag("bucket-max-rows", count, "20000", "coordinated: a bucket with so many rows is flushed at once", "N")
    parser.flag("buffer-max-bytes", _bytes, "128MiB", "coordinated: with so much in memory nothing is polled", "BYTES")
    parser.flag("flush-timeout", _seconds, "60s", "coordinated: a flush that takes longer is repeated", "TIME")


def check_pipeline(given: Any) -> None:
    """Raise what is wrong, before anything is opened."""
    if given.pipeline == PLAIN:
        return
    if given.catalog_store:
        raise ConfigurationError(
            "the coordinated pipeline keeps one store: leave --pipeline at plain for --catalog-store; where one writer "
            "isn't quick enough, several of one --group share the partitions"
        )
    if given.lineage_meta != JDBC:
        raise ConfigurationError(
            f"the coordinated pipeline keeps a database of headwater's own, and not {given.lineage_meta}: leave "
            "--pipeline at plain for --lineage-meta"
        )


def make_coordinator(source: EventSource, store: Store, given: Any, marks: WriterMarks) -> Coordinator:
    """Return the coordinated pipeline. Its connections are its own, apart from the store's."""
    from headwater.consumers.writer.coordinated import Coordinator, CoordinatorLimits, StoreConnection  # noqa: PLC0415

    if store.engine.dialect.name == "sqlite":
        raise ConfigurationError("SQLite lets one connection write at a time: leave --pipeline at plain")
    limits = CoordinatorLimits(
        buckets=given.buckets,
        interval=given.instant_interval,
        bucket_rows=given.bucket_max_rows,
        buffer_bytes=given.buffer_max_bytes,
        flush_seconds=given.flush_timeout,
    )
    lanes = [StoreConnection.into(store.target, limits.flush_seconds) for _ in range(limits.buckets)]
    own = StoreConnection.into(store.target, limits.flush_seconds)
    return Coordinator(
        source,
        own,
        lanes,
        given.group,
        limits,
        most=given.batch,
        until_end=given.until_end,
        most_invalid=given.most_invalid,
        marks=marks,
    )


def opened_by_name(given: Any) -> LineageMeta:
    """Open the store that a plug-in implements; its options are those of a catalog."""
    from headwater.lineage.meta import open_lineage_meta  # noqa: PLC0415

    if given.catalog_store:
        raise ConfigurationError("--catalog-store is for stores in databases: leave --lineage-meta at jdbc")
    at = {"jdbc.url": given.store} if given.store else {}
    return open_lineage_meta({**dict(given.store_option), **at, "lineage-meta": given.lineage_meta})


def pipeline_into(
    meta: LineageMeta,
    source: EventSource,
    given: Any,
    letters: Callable[[], DeadLetterTopic] | None,
    marks: WriterMarks | None,
) -> Pipeline:
    """Return the pipeline into such a store; `letters` opens the dead-letter topic, None where there is none; `marks`
    are for a store that has the second interface."""
    from headwater.consumers.writer.lineage_meta_pipeline import LineageMetaPipeline  # noqa: PLC0415
    from headwater.consumers.writer.plain_pipeline import PlainPipeline  # noqa: PLC0415
    from headwater.lineage.bulk import BulkLineageMeta  # noqa: PLC0415

    about, more = (source.kind, source.topic), {"most_invalid": given.most_invalid}
    if isinstance(meta, BulkLineageMeta):
        return PlainPipeline(meta, given.group, *about, **more, marks=marks)
    return LineageMetaPipeline(meta, *about, _keep(letters) if letters is not None else None, **more)


def _keep(open_topic: Callable[[], DeadLetterTopic]) -> Callable[[Sequence[DeadLetter]], None]:
    """Opened with the first letter."""
    topics: list[DeadLetterTopic] = []

    def keep(letters: Sequence[DeadLetter]) -> None:
        topic = topics[0] if topics else open_topic()
        topics[:] = [topic]
        topic.cluster()  # makes the topic, if there is none
        topic.send(letters)

    return keep


def _seconds(text: str) -> float:
    number, unit = _amount(text, _TIMES, "100ms, 2s, 1min")
    return number * _TIMES[unit]


def _bytes(text: str) -> int:
    number, unit = _amount(text, _SIZES, "64MiB, 1GiB, 134217728")
    size = int(number * _SIZES[unit])
    if size < _LEAST_BYTES:
        raise ValueError(f"{text!r} is less than 1MiB: nothing would fit")
    return size


def _amount(text: str, units: dict[str, float] | dict[str, int], examples: str) -> tuple[float, str]:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)", text.strip())
    if found is None or found[2] not in units or float(found[1]) == 0:
        raise ValueError(f"{text!r} is not written like {examples}")
    return float(found[1]), found[2]
