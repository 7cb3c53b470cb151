"""What counts of an option in a fingerprint, by the option's whole name. Whatever isn't named here counts as it is."""

from __future__ import annotations

from enum import Enum, auto
from string import ascii_lowercase, ascii_uppercase
from typing import Final


class Rule(Enum):
    SQL = auto()
    """The statement without its literals."""
    MASKED = auto()
    """Only that it is set: its value is another one in each run."""
    PLACE = auto()
    """Nothing where the dataset is known, which says where it is; else the path."""
    DROPPED = auto()
    """Nothing: what the systems count for themselves, and the name of the job."""


_SQL: Final = """
    query dbtable predicates prepareQuery sessionInitStatement
    preActions postActions filter
    replaceWhere
"""
"""JDBC · what the connectors of warehouses have beside · Delta."""

_POSITIONS: Final = """
    startingOffsets endingOffsets startingOffsetsByTimestamp endingOffsetsByTimestamp startingTimestamp endingTimestamp
    startingPosition endingPosition
    modifiedBefore modifiedAfter
    batchId snapshotStartBatchId changeStartBatchId changeEndBatchId
    startTimestamp endTimestamp snapshotTimeMillis
    lowerBound upperBound
    versionAsOf timestampAsOf startingVersion endingVersion
    snapshot-id as-of-timestamp tag start-snapshot-id end-snapshot-id start-timestamp end-timestamp
    stream-from-timestamp validate-from-snapshot-id
    scan.snapshot-id scan.timestamp scan.timestamp-millis scan.tag-name scan.version scan.watermark
    scan.bounded.watermark scan.file-creation-time-millis scan.creation-time-millis
    incremental-between incremental-between-timestamp incremental-to-auto-tag
    as.of.instant hoodie.datasource.read.begin.instanttime hoodie.datasource.read.end.instanttime
    hoodie.datasource.streaming.startOffset hoodie.datasource.write.partitions.to.delete
    hoodie.clustering.plan.strategy.cluster.begin.partition hoodie.clustering.plan.strategy.cluster.end.partition
    hoodie.clustering.plan.strategy.partition.selected
"""
"""Kafka · other buses · files · the state of streams · rates and warehouses · JDBC · Delta (and Iceberg) · Iceberg ·
Paimon · Hudi."""

_OF_THE_RUN: Final = """
    checkpointLocation streaming.checkpointLocation queryId epochId sources.writeJobUUID fs.s3a.committer.uuid tempdir
    userMetadata commitInfo.userMetadata txnAppId txnVersion
    schemaTrackingLocation schemaLocation cloudFiles.schemaLocation
    wap.id scan-task-set-id file-scan-task-set-id rewritten-file-scan-task-set-id uuid
    commit.user-prefix
    hoodie.instant.time hoodie.filesystem.view.remote.host hoodie.filesystem.view.remote.port
    hoodie.embed.timeline.server.port
"""
"""Spark and its committers · Delta · its schemas, which lie in checkpoints · Iceberg · Paimon · Hudi."""

_COUNTED: Final = """
    queryName
    transient_lastDdlTime last_modified_by last_modified_time numFiles numRows rawDataSize totalSize
    COLUMN_STATS_ACCURATE
    delta.lastUpdateVersion delta.lastCommitTimestamp
    current-snapshot-id current-snapshot-timestamp-ms current-snapshot-summary snapshot-count metadata_location
    previous_metadata_location
    last_commit_time_sync last_commit_completion_time_sync
"""
"""The job's name · Hive · Delta · Iceberg · Hudi."""

_FAMILIES: Final = {"snapshot-property.": Rule.MASKED, "spark.sql.statistics.": Rule.DROPPED}
"""By how the name begins, because users or columns give the rest of it."""

_PREFIXES: Final = (
    *("spark.sql.iceberg.", "spark.databricks.delta.", "spark.paimon.", "spark.hadoop.", "spark.sql.", "spark."),
    *("option.", "options.", "read.", "write.", "scan."),
)
"""What may stand before an option's own name in configurations and catalogs."""

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(key: str) -> str:
    """Options are the same in any case, and Spark hands some over in lower case. Letters beyond ASCII stay: what is
    lower case there depends on the version of Unicode that a Python knows."""
    return key.translate(_LOWER)


def rule_of(key: str) -> Rule | None:
    """The rule for a folded key; none where the option counts as it is."""
    while True:
        if key in _RULES:
            return _RULES[key]
        family = next((rule for start, rule in _FAMILIES.items() if key.startswith(start)), None)
        prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), None)
        if family is not None or prefix is None:
            return family
        key = key[len(prefix) :]


_RULES: Final[dict[str, Rule]] = {
    folded(name): rule
    for names, rule in (
        (_SQL, Rule.SQL),
        (_POSITIONS, Rule.MASKED),
        (_OF_THE_RUN, Rule.MASKED),
        ("path paths", Rule.PLACE),
        (_COUNTED, Rule.DROPPED),
    )
    for name in names.split()
}
