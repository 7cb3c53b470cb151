"""The settings of a pipeline, checked before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.errors import ConfigurationError
from headwater.lineage.lake import LakeAddress
from headwater.lineage.store.options import StoreOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP: Final = "headwater-pipeline"
MOST_BUCKETS: Final = 64
LAKE_BUCKETS: Final = 8
MOST_RECORDS: Final = 500_000
_OWN: Final = ("group.id", "isolation.level", "enable.auto.commit", "auto.offset.reset", "key.deserializer")
"""Settings of the Kafka client that the pipeline's promises depend on."""


@dataclass(frozen=True)
class PipelineOptions:
    """Where events come from, where their rows go, and how."""

    store: StoreOptions | LakeAddress
    """A database, or a lake: tables in a catalog of the Spark session."""
    topic: str = "headwater.events"
    """Kafka's topic. Ignored with `log` and `archive`."""
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Settings of Kafka's Java client, with `bootstrap.servers`. Empty with `log` and `archive`."""
    log: Path | None = None
    """The directory of a local log that is read instead of Kafka."""
    archive: str | None = None
    """The directory or URL of an archive that is read instead of Kafka."""
    group: str = GROUP
    """Whose offsets these are in the store. A writer of the same group goes on where the pipeline ended."""
    interval: float | None = None
    """Seconds between the beginnings of micro-batches; 0 for as soon as the one before is done. None: read what is
    there now, and end."""
    buckets: int | None = None
    """How many tasks write at the same time. None: as many as Spark has cores."""
    most_records: int = MOST_RECORDS
    """At most so many events of a micro-batch."""
    most_invalid: int = 100
    """So many unmappable events in a row end the pipeline; 0 for never."""
    patience: float = 300.0
    """How many seconds it waits for a store that doesn't answer, before it ends."""

    @property
    def reads_kafka(self) -> bool:
        return self.log is None and self.archive is None

    @property
    def is_sqlite(self) -> bool:
        return isinstance(self.store, StoreOptions) and self.store.target.kind.scheme == "sqlite"

    def checked(self) -> PipelineOptions:
        """Return these options, or raise a ConfigurationError that says what to do."""
        if self.reads_kafka and not self.kafka.get("bootstrap.servers"):
            raise ConfigurationError(
                "where are the events? Name Kafka's bootstrap.servers, or the directory of a log or an archive"
            )
        broken = sorted(set(self.kafka) & set(_OWN))
        if broken:
            raise ConfigurationError(f"{broken[0]} can't be set: the pipeline's guarantees depend on it")
        if self.buckets is not None and not 1 <= self.buckets <= MOST_BUCKETS:
            raise ConfigurationError(f"buckets are from 1 to {MOST_BUCKETS}, not {self.buckets}")
        if self.most_records < 1:
            raise ConfigurationError(f"a micro-batch has 1 event or more, not {self.most_records}")
        return self

    def buckets_for(self, spark: SparkSession) -> int:
        """Return how many tasks write. SQLite lets one process write at a time, on the machine of its file."""
        context: Any = spark.sparkContext
        if isinstance(self.store, LakeAddress):  # a task merges all of a bucket in memory, so there are many
            return self.buckets or max(LAKE_BUCKETS, min(MOST_BUCKETS, context.defaultParallelism))
        if not self.is_sqlite:
            return self.buckets or min(MOST_BUCKETS, max(1, context.defaultParallelism))
        if not str(context.master).startswith("local"):
            raise ConfigurationError(
                f"SQLite is a file of one machine, and the executors of {context.master} are on others: use "
                "PostgreSQL, MySQL or MariaDB, or run the pipeline with --master 'local[*]'"
            )
        if (self.buckets or 1) != 1:
            raise ConfigurationError("SQLite lets one process write at a time: leave out --buckets")
        return 1
