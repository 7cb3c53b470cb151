"""Which pipeline the writer runs: in one process or in several, or into somebody else's store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.flags import Flags, count, pair
from headwater.cli.store import MAIN, options_of
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.sources import EventSource
    from headwater.consumers.writer.pipeline import Pipeline
    from headwater.lineage.api import LineageMeta
    from headwater.lineage.bulk import WriterMarks

JDBC: Final = "jdbc"
"""The store's own implementation; another one is somebody's plug-in."""


def add_pipeline(parser: Flags) -> None:
    """Add the flags that choose a pipeline and set its limits."""
    text = "which implementation the store is: jdbc, or somebody's entry point of headwater.lineage_meta"
    parser.flag("lineage-meta", str, JDBC, text, "NAME")
    parser.flags("store-option", pair, "an option of such an implementation", "KEY=VALUE")
    text = "where dead letters go that such an implementation has no table for; of each machine its own"
    parser.flag("dead-letters", Path, None, text, "DIR")
    parser.flag("processes", count, "1", "with more than one, so many read events, and others write rows", "N")


def check_pipeline(given: Any) -> None:
    """Raise what is wrong, before anything is opened."""
    if given.processes == 1:
        return
    if given.catalog_store:
        raise ConfigurationError("several processes keep one store: leave --processes at 1 for --catalog-store")
    if given.lineage_meta != JDBC:
        raise ConfigurationError(
            f"several processes keep a database of headwater's own, and not {given.lineage_meta}: leave --processes at "
            "1 for --lineage-meta"
        )
    if options_of(given).target.kind.scheme == "sqlite":
        raise ConfigurationError("SQLite lets one process write at a time: leave --processes at 1")


def opened_by_name(given: Any) -> LineageMeta:
    """Open the store that a plug-in implements; its options are those of a catalog."""
    from headwater.lineage.meta import open_lineage_meta  # noqa: PLC0415

    if given.catalog_store:
        raise ConfigurationError("--catalog-store is for stores in databases: leave --lineage-meta at jdbc")
    at = {"jdbc.url": given.store} if given.store else {}
    return open_lineage_meta({**dict(given.store_option), **at, "lineage-meta": given.lineage_meta})


def make_pipeline(
    metas: Mapping[str, Any], source: EventSource, given: Any, marks: Mapping[str, WriterMarks] | None
) -> Pipeline:
    """Return the pipeline into stores, by their names: one process or several, or into a store that has the first
    interface only. `marks` are those of the stores that have the second one."""
    from headwater.consumers.writer.coordinated.process_pipeline import ProcessPipeline  # noqa: PLC0415
    from headwater.consumers.writer.lineage_meta_pipeline import LineageMetaPipeline  # noqa: PLC0415
    from headwater.consumers.writer.store_pipeline import StorePipeline  # noqa: PLC0415
    from headwater.journal import DeadLetterLog  # noqa: PLC0415

    about, more = (source.kind, source.topic), {"most_invalid": given.most_invalid}
    if marks is None:
        return LineageMetaPipeline(metas[MAIN], *about, DeadLetterLog(_letters_directory(given)), **more)
    if given.processes == 1:
        return StorePipeline(metas, given.group, *about, **more, marks=marks)
    main, options = metas[MAIN], options_of(given)
    return ProcessPipeline(main, options, given.group, *about, processes=given.processes, **more, marks=marks[MAIN])


def _letters_directory(given: Any) -> Path:
    """Return where dead letters are kept that no store has a table for."""
    from headwater.publishers.log import data_directory  # noqa: PLC0415

    return Path(given.dead_letters or data_directory().with_name("dead-letters") / given.group).expanduser()
