"""The mirror of one branched table: what a plan says of it, and what is in it."""

from __future__ import annotations

from typing import Any

from headwater.lineage.questions.commit_facts import Amount
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.correction import PlannedTable, TableVerdict
from headwater.versions.correction.execution.tables import Mirror
from tests.kit.versions.branches import BranchedTable

CORRECTION = "c-20260301-t-4f2a"


def planned(table: BranchedTable, starts_at: int | None) -> PlannedTable:
    about: dict[str, Any] = {"snapshots": (), "newest": None, "last_right": None, "mirror": None, "made_from": ()}
    return PlannedTable(
        **about,
        table=table.name,
        format=table.format.upper(),
        verdict=TableVerdict.WRONG,
        is_source=True,
        starts_at=starts_at,
        jobs=(),
        written=Amount(),
    )


def tagged_snapshot(table: BranchedTable) -> int:
    return branches_of(table.driver.spark, table.name).tagged_snapshot(table.tag)


def rows_of(table: BranchedTable, mirror: Mirror) -> list[tuple[int, str]]:
    return sorted((row[0], row[1]) for row in table.driver.spark.table(mirror.name).collect())
