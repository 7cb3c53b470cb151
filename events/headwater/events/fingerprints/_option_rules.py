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


_TABLE: Final = (
    # ── statements, whose dates and limits are other ones in each run
    (Rule.SQL, "JDBC", "query dbtable predicates prepareQuery sessionInitStatement"),
    (Rule.SQL, "connectors of warehouses", "query dbtable preActions postActions filter"),
    (Rule.SQL, "Delta", "replaceWhere"),
    # ── positions: which version, range or part is read
    (Rule.MASKED, "Kafka", "startingOffsets startingOffsetsByTimestamp startingTimestamp"),
    (Rule.MASKED, "Kafka", "endingOffsets endingOffsetsByTimestamp endingTimestamp"),
    (Rule.MASKED, "other buses", "startingPosition endingPosition"),
    (Rule.MASKED, "files", "modifiedBefore modifiedAfter"),
    (Rule.MASKED, "state of streams", "batchId snapshotStartBatchId changeStartBatchId changeEndBatchId"),
    (Rule.MASKED, "rates, BigQuery", "startTimestamp endTimestamp snapshotTimeMillis"),
    (Rule.MASKED, "JDBC", "lowerBound upperBound"),
    (Rule.MASKED, "Delta", "versionAsOf timestampAsOf startingVersion startingTimestamp endingVersion endingTimestamp"),
    (Rule.MASKED, "Iceberg", "snapshot-id as-of-timestamp tag versionAsOf timestampAsOf stream-from-timestamp"),
    (Rule.MASKED, "Iceberg", "start-snapshot-id end-snapshot-id start-timestamp end-timestamp"),
    (Rule.MASKED, "Iceberg", "validate-from-snapshot-id"),
    (Rule.MASKED, "Paimon", "scan.snapshot-id scan.tag-name scan.version scan.watermark scan.bounded.watermark"),
    (Rule.MASKED, "Paimon", "scan.timestamp scan.timestamp-millis"),
    (Rule.MASKED, "Paimon", "scan.file-creation-time-millis scan.creation-time-millis"),
    (Rule.MASKED, "Paimon", "incremental-between incremental-between-timestamp incremental-to-auto-tag"),
    (Rule.MASKED, "Hudi", "as.of.instant hoodie.datasource.streaming.startOffset"),
    (Rule.MASKED, "Hudi", "hoodie.datasource.read.begin.instanttime hoodie.datasource.read.end.instanttime"),
    (Rule.MASKED, "Hudi", "hoodie.datasource.write.partitions.to.delete"),
    (Rule.MASKED, "Hudi", "hoodie.clustering.plan.strategy.partition.selected"),
    (Rule.MASKED, "Hudi", "hoodie.clustering.plan.strategy.cluster.begin.partition"),
    (Rule.MASKED, "Hudi", "hoodie.clustering.plan.strategy.cluster.end.partition"),
    # ── what belongs to the run: its ids, notes and temporary places
    (Rule.MASKED, "streams", "checkpointLocation streaming.checkpointLocation queryId epochId"),
    (Rule.MASKED, "committers", "sources.writeJobUUID fs.s3a.committer.uuid"),
    (Rule.MASKED, "Redshift", "tempdir"),
    (Rule.MASKED, "Delta", "userMetadata commitInfo.userMetadata txnAppId txnVersion"),
    (Rule.MASKED, "Delta", "schemaTrackingLocation schemaLocation cloudFiles.schemaLocation"),
    (Rule.MASKED, "Iceberg", "wap.id scan-task-set-id file-scan-task-set-id rewritten-file-scan-task-set-id uuid"),
    (Rule.MASKED, "Paimon", "commit.user-prefix"),
    (Rule.MASKED, "Hudi", "hoodie.instant.time hoodie.embed.timeline.server.port"),
    (Rule.MASKED, "Hudi", "hoodie.filesystem.view.remote.host hoodie.filesystem.view.remote.port"),
    # ── what is said elsewhere or by nobody
    (Rule.PLACE, "files and tables by path", "path paths"),
    (Rule.DROPPED, "the job's name", "queryName"),
    (Rule.DROPPED, "Hive", "transient_lastDdlTime last_modified_by last_modified_time COLUMN_STATS_ACCURATE"),
    (Rule.DROPPED, "Hive", "numFiles numRows rawDataSize totalSize"),
    (Rule.DROPPED, "Delta", "delta.lastUpdateVersion delta.lastCommitTimestamp"),
    (Rule.DROPPED, "Iceberg", "current-snapshot-id current-snapshot-timestamp-ms current-snapshot-summary"),
    (Rule.DROPPED, "Iceberg", "snapshot-count metadata_location previous_metadata_location"),
    (Rule.DROPPED, "Hudi", "last_commit_time_sync last_commit_completion_time_sync"),
)
"""The rule, whose options they are, and their names as the documentation writes them."""

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


_RULES: Final = {folded(name): rule for rule, _, names in _TABLE for name in names.split()}
