"""Streams whose tables a lens leads elsewhere: what they read, what they write, and where their checkpoint is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.lens import lens
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.spark.streams import Case
from tests.kit.spark.versions import MAJOR
from tests.kit.versions.branches import CATALOGS, EXTENSIONS

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
]

driver = shared_driver_fixture(EXTENSIONS)


class Copy:
    """A query that copies orders to a table, by their names, as production runs it."""

    def __init__(self, case: Case, form: str) -> None:
        self.case, self.form = case, form
        self.db = f"{CATALOGS[form]}.{case.db}"
        case.driver.run(
            *(f"CREATE TABLE {self.db}.{name} (id INT) USING {form}" for name in ("orders", "copy", "others")),
            f"INSERT INTO {self.db}.orders VALUES (1)",
            f"INSERT INTO {self.db}.others VALUES (7)",
        )

    def start(self, checkpoint: str = "checkpoint") -> StreamingQuery:
        frame = self.case.spark.readStream.table(f"{self.db}.orders")
        writer = self.case.writer(frame, checkpoint).format(self.form).trigger(availableNow=True)
        return writer.toTable(f"{self.db}.copy")

    def mirror(self) -> str:
        """Make what stands for the copy, a branch or a clone, and return its name."""
        if self.form == "iceberg":
            self.case.driver.run(f"ALTER TABLE {self.db}.copy CREATE BRANCH m")
            return f"{self.db}.copy.branch_m"
        self.case.driver.run(f"CREATE TABLE {self.db}.m SHALLOW CLONE {self.db}.copy")
        return f"{self.db}.m"

    def ids(self, name: str) -> list[int]:
        return sorted(row[0] for row in self.case.driver.rows(f"SELECT id FROM {name}"))


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_stream_writes_what_the_lens_leads_to_and_goes_on_from_the_checkpoint_there(
    driver: Driver, form: str
) -> None:
    """It finds a sink that the writer looked up before the lens, and the real query's checkpoint in use."""
    case = Case(driver, CATALOGS[form])
    copy = Copy(case, form)
    copy.start().awaitTermination()
    batches = sorted(path.name for path in (case.checkpoint() / "commits").iterdir())
    mirror = copy.mirror()
    driver.run(f"INSERT INTO {copy.db}.orders VALUES (2)")
    redirects = {
        f"{copy.db}.orders": f"{copy.db}.others",
        f"{copy.db}.copy": mirror,
        str(case.checkpoint()): str(case.checkpoint("fork")),
    }
    with lens(driver.spark, redirects=redirects, writes_elsewhere=False, reads_elsewhere=True):
        if form == "iceberg" and MAJOR >= 4:
            with pytest.raises(Exception, match="writes main on this Spark"):
                copy.start()
            return
        copy.start().awaitTermination()
        with pytest.raises(Exception, match="leads to no other checkpoint"):
            copy.start("unknown")
    assert (copy.ids(mirror), copy.ids(f"{copy.db}.copy")) == ([1, 7], [1])
    assert sorted(path.name for path in (case.checkpoint() / "commits").iterdir()) == batches
    assert Path(case.checkpoint("fork"), "commits", "0").exists()
