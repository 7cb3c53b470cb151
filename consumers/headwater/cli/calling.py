"""`headwater write` into a store that somebody else made: by what it has of the store's two interfaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.sources import Source
    from headwater.consumers.sources.dead_letter_topic import DeadLetterTopic
    from headwater.consumers.writer.running import Pipeline
    from headwater.lineage.api import LineageMeta
    from headwater.lineage.bulk import DeadLetter


def opened_by_name(given: Any) -> LineageMeta:
    """The factory's options are those of a catalog."""
    from headwater.lineage.meta import open_lineage_meta  # noqa: PLC0415

    if given.store_of:
        raise ConfigurationError("--store-of is for stores in databases: leave --lineage-meta at jdbc")
    at = {"jdbc.url": given.store} if given.store else {}
    return open_lineage_meta({**dict(given.store_option), **at, "lineage-meta": given.lineage_meta})


def pipeline_into(
    meta: LineageMeta, source: Source, given: Any, letters: Callable[[], DeadLetterTopic] | None
) -> Pipeline:
    """`letters` opens the dead-letter topic; None where there is none."""
    from headwater.consumers.writer.calling import CallingPipeline  # noqa: PLC0415
    from headwater.consumers.writer.plain import PlainPipeline  # noqa: PLC0415
    from headwater.lineage.bulk import BulkLineageMeta  # noqa: PLC0415

    about, more = (source.kind, source.topic), {"most_invalid": given.most_invalid}
    if isinstance(meta, BulkLineageMeta):
        return PlainPipeline(meta, given.group, *about, **more)
    return CallingPipeline(meta, *about, _keep(letters) if letters is not None else None, **more)


def _keep(open_topic: Callable[[], DeadLetterTopic]) -> Callable[[Sequence[DeadLetter]], None]:
    """Opened with the first letter."""
    topics: list[DeadLetterTopic] = []

    def keep(letters: Sequence[DeadLetter]) -> None:
        topic = topics[0] if topics else open_topic()
        topics[:] = [topic]
        topic.cluster()  # makes the topic, if there is none
        topic.send(letters)

    return keep
