"""Keeps the files of a lake few and its snapshots young, by Iceberg's own procedures."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from headwater.consumers.spark.pipeline.lake.tables import LakeTables
from headwater.lineage.lake.merging import lake_tables


def compact(lake: LakeTables, *, smallest: int = 5) -> dict[str, int]:
    """Rewrite the files of each table that has as many small ones as `smallest`. Return how many files were rewritten.

    Files of a table with a partition column are sorted by it, so that a MERGE finds the few that it has to read.
    """
    rewritten = {}
    for name, table in lake_tables().items():
        strategy = (
            "" if table.partition is None else f", strategy => 'sort', sort_order => '{table.partition} ASC NULLS LAST'"
        )
        options = f"options => map('min-input-files', '{smallest}')"
        found = _call(lake, "rewrite_data_files", f"table => '{_place(lake, name)}'{strategy}, {options}")
        rewritten[name] = int(found.rewritten_data_files_count)
        _call(lake, "rewrite_manifests", f"table => '{_place(lake, name)}'")
    return rewritten


def expire(lake: LakeTables, before: datetime, *, retained: int = 1) -> dict[str, int]:
    """Remove the snapshots that are older than a time, but for the newest ones, with the files that only they have.
    Return how many data files were deleted."""
    moment = before.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    deleted = {}
    for name in lake_tables():
        arguments = f"older_than => TIMESTAMP '{moment} UTC', retain_last => {retained}"
        found = _call(lake, "expire_snapshots", f"table => '{_place(lake, name)}', {arguments}")
        deleted[name] = int(found.deleted_data_files_count)
    return deleted


def _call(lake: LakeTables, procedure: str, arguments: str) -> Any:
    (row,) = lake.spark.sql(f"CALL `{lake.address.catalog}`.system.{procedure}({arguments})").collect()
    return row


def _place(lake: LakeTables, name: str) -> str:
    return ".".join((*lake.address.namespace, name))
