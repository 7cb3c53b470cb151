"""Two drivers of a lake at once: both add the same rows, and one of them has to be refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from headwater.consumers.spark.pipeline.lake import LakeTables
from headwater.consumers.spark.pipeline.lake.tables import is_conflict
from headwater.lineage.bulk import pack_rows
from headwater.lineage.lake.formats import format_of
from headwater.lineage.lake.merging import lake_tables
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowKind, RowSet
from headwater.testing.examples import EXAMPLES
from tests.kit.waiting import until


def check_that_one_of_two_merges_is_refused(lake: LakeTables, kind: RowKind, place: Path) -> None:
    """One MERGE has begun to read its rows when another one commits them: if both committed, each row would be there
    twice. `place` is an empty directory."""
    state = RowSet()
    state.merge(row for each in EXAMPLES for row in map_event(each) if row.kind == kind)
    (values,) = (each.rows for each in pack_rows(state.rows()))
    waiting, go_on = place / "waiting", place / "go-on"
    rows = lake.frame_of(kind.name, values)
    rows.mapInArrow(pause(str(waiting), str(go_on)), rows.schema).createOrReplaceTempView("slow_rows")
    errors = list[Exception]()

    def merge_slowly() -> None:
        try:
            lake.spark.sql(lake_tables()[kind.name].merge_text(lake.address.table(kind.name), "slow_rows", None))
        except Exception as e:  # noqa: BLE001 - the test looks at it
            errors.append(e)

    thread = threading.Thread(target=merge_slowly)
    thread.start()
    try:
        until(waiting.exists, "the slow one has begun")
        assert lake.merge(kind.name, lake.frame_of(kind.name, values)) == len(values)
    finally:
        go_on.touch()
        thread.join(300)
    (error,) = errors
    assert is_conflict(error, format_of(lake.address)), error
    assert len(list(lake.rows(kind.name))) == len(values)
    assert lake.merge(kind.name, lake.frame_of(kind.name, values)) == 0, "the refused one begins again"


def pause(waiting: str, go_on: str) -> Any:
    """A task that begins, and goes on when it may."""

    def run(batches: Any) -> Any:
        import time
        from pathlib import Path

        Path(waiting).touch()
        while not Path(go_on).exists():
            time.sleep(0.05)
        yield from batches

    return run
