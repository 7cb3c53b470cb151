"""Sessions in which SQL names a snapshot by its branch, and what a table's own metadata says of its snapshots."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from headwater.lens import consistent
from headwater.versions.spark_tables import load_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.kit.versions.branches import BranchedTable

KEY: Final = consistent.BRANCH_VERSIONS


@contextmanager
def naming_branches(spark: SparkSession, setting: str = "true") -> Generator[SparkSession, None, None]:
    """A session beside this one that has the setting."""
    inside: Any = spark
    reads = consistent.begin(inside.sparkContext, {KEY: "false"})
    session = spark.newSession()
    session.sql(f"SET {KEY} = {setting}")
    try:
        yield session
    finally:
        reads.close()


def snapshots_of(table: BranchedTable, branch: str) -> list[int]:
    """The numbers of a branch's snapshots as its format's own metadata has them, the oldest first."""
    name = table.branches.name_of(branch)
    if table.format == "delta":
        return sorted(row["version"] for row in table.driver.rows(f"DESCRIBE HISTORY {name}"))
    loaded: Any = load_table(table.driver.spark, name, anew=True).table
    if table.format == "paimon":
        snapshots = loaded.getTable().snapshotManager()
        return list(range(snapshots.earliestSnapshotId(), snapshots.latestSnapshotId() + 1))
    parents = dict(table.driver.rows(f"SELECT snapshot_id, parent_id FROM {table.name}.snapshots"))
    (head,) = table.driver.rows(f"SELECT snapshot_id FROM {table.name}.refs WHERE name = '{branch}'")[0]
    found = [head]
    while parents.get(found[0]) is not None:
        found.insert(0, parents[found[0]])
    return found


def tag_branch(table: BranchedTable, branch: str, tag: str) -> None:
    """Tag the newest snapshot of a branch. Delta has no tags."""
    if table.format == "iceberg":
        table.sql(f"ALTER TABLE {table.name} CREATE TAG {tag} AS OF VERSION {snapshots_of(table, branch)[-1]}")
    else:
        loaded: Any = load_table(table.driver.spark, table.branches.name_of(branch), anew=True).table
        loaded.getTable().createTag(tag, snapshots_of(table, branch)[-1])
