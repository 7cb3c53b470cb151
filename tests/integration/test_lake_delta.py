"""A lake store of Delta tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.consumers.spark.pipeline.lake import LakeTables, expire
from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of, wall_micros
from headwater.lineage.rows import RowKind
from headwater.lineage.rows.tables import COMMIT, DATASET
from tests.kit.lake.contract import LakeContract
from tests.kit.lake.race import check_that_one_of_two_merges_is_refused
from tests.kit.lake.sessions import Lakes, lake_of, lakes

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.needs("delta"),
    pytest.mark.xdist_group("lake-delta"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    # Spark 3.5 compares the versions of pandas so
    pytest.mark.filterwarnings("ignore:distutils Version classes are deprecated:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def lake_session(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakes]:
    with lakes(java_home, tmp_path_factory.mktemp("lake"), "delta") as session:
        yield session


class TestDelta(LakeContract):
    def versions(self, lake: LakeTables, name: str) -> int:
        return lake.spark.sql(f"DESCRIBE HISTORY {lake.address.table(name)}").count()

    def files(self, lake: LakeTables, name: str) -> int:
        return int(lake.spark.sql(f"DESCRIBE DETAIL {lake.address.table(name)}").collect()[0].numFiles)

    def expiry(self, session: Lakes) -> None:
        session.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")


@pytest.mark.parametrize("kind", [DATASET, COMMIT], ids=lambda kind: kind.name)
def test_of_two_merges_that_add_the_same_rows_one_is_refused(
    lake_session: Lakes, tmp_path: Path, kind: RowKind
) -> None:
    check_that_one_of_two_merges_is_refused(lake_of(lake_session, kind), kind, tmp_path)


def test_an_expiry_that_delta_would_refuse_says_what_to_do(lake_session: Lakes) -> None:
    lake = lake_of(lake_session)
    lake_session.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    with pytest.raises(ConfigurationError, match="Delta keeps 168 hours at least"):
        expire(lake, moment_of(wall_micros()))
