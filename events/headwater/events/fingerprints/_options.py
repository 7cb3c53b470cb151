"""The options of a read or write, as far as they are the same in every run.

What counts of an option in a fingerprint, by the option's whole name. Whatever isn't named here counts as it is.

Where committers put files before they are visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from string import ascii_lowercase, ascii_uppercase
from typing import Final

from headwater.events.jobs import SinkSchema, SourceSchema
from headwater.events.redaction import REDACTED, canonical_text, mask_literals
from headwater.events.scalars import Format


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


_STAGING: Final = re.compile(
    r"""(?:^|/)(?:
        _temporary                          # Hadoop's committers, and the manifest committer
        | __magic(?:_job-[^/]+)?            # S3A's magic committer, before and since Hadoop 3.4
        | \.spark-staging-[^/]+             # Spark, where partitions are overwritten dynamically
        | \.hive-staging(?:_hive_[^/]+)?    # Hive, and Spark writing to its tables
        | \.hoodie/\.temp                   # Hudi
        | \.sparkStaging                    # Spark on YARN
    )(?:/|$)""",
    re.VERBOSE,
)
"""Whole segments of paths. Delta, Iceberg and Paimon write where the files will stay."""


def without_staging(path: str) -> str:
    """The directory that a write is for, where a path inside its staging directory was seen."""
    staging = _STAGING.search(path)
    if staging is None:
        return path
    return path[: staging.start()] or path[: staging.start() + path.startswith("/")]


_TEXTS_IN_DOUBLE_QUOTES: Final = ("mysql:", "mariadb:")


def canonical_options(ref: SourceSchema | SinkSchema) -> list[tuple[str, str | None]]:
    """Names and values, sorted; no value where only the name counts."""
    return sorted(_significant_options(ref), key=lambda option: (option[0], option[1] or ""))


def _significant_options(ref: SourceSchema | SinkSchema) -> Iterator[tuple[str, str | None]]:
    for name, value in ref.options.items():
        key = folded(name)
        rule = rule_of(key)
        if rule is Rule.DROPPED or (rule is Rule.PLACE and ref.dataset is not None):
            continue
        if rule is Rule.MASKED or value.startswith(REDACTED):  # a hash in the mark is another one in each driver
            yield key, None
        else:
            yield key, _sql(ref, value) if rule is Rule.SQL else without_staging(value)


def is_sql_option(name: str) -> bool:
    """Whether the option's value is a statement, which counts without its literals."""
    return rule_of(folded(name)) is Rule.SQL


def _sql(ref: SourceSchema | SinkSchema, text: str) -> str:
    """Spark and MySQL have texts in double quotes, the other databases names."""
    if ref.format is not Format.JDBC or _database(ref).startswith(_TEXTS_IN_DOUBLE_QUOTES):
        return canonical_text(text)
    return " ".join(mask_literals(text, double_quoted_names=True).split())


def _database(ref: SourceSchema | SinkSchema) -> str:
    if ref.dataset is not None:
        return ref.dataset.namespace
    return folded(ref.options.get("url", "")).removeprefix("jdbc:")
