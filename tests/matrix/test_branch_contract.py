"""The contract of `headwater.branch_formats` on the formats that headwater brings itself."""

from __future__ import annotations

import pytest

from headwater.testing.branches import FormatBranchesContract, TableUnderTest
from headwater.versions.branches import Branch, FormatBranches
from headwater.versions.branches.format_branches import branches_of
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.versions.branches import CATALOGS, EXTENSIONS, FORMATS, BranchedTable

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]

driver = shared_driver_fixture(EXTENSIONS)


class RealTable(TableUnderTest):
    """One of the tests' own, with a column more than `id`."""

    def __init__(self, table: BranchedTable) -> None:
        self._table = table
        self.tag = table.tag

    def open(self) -> FormatBranches:
        return branches_of(self._table.driver.spark, self._table.name)

    def add(self, number: int, branch: Branch | None = None) -> None:
        self._table.sql(f"INSERT INTO {self._name(branch)} VALUES ({number}, 'x')")

    def overwrite(self, number: int) -> None:
        self._table.sql(f"INSERT OVERWRITE {self._table.name} VALUES ({number}, 'x')")

    def ids(self, branch: Branch | None = None) -> list[int]:
        return sorted(row[0] for row in self._table.driver.rows(f"SELECT id FROM {self._name(branch)}"))

    def expire(self) -> None:
        self._table.expire_everything()

    def _name(self, branch: Branch | None) -> str:
        return self._table.name if branch is None else self.open().name_of(branch)


class TestOurFormats(FormatBranchesContract):
    """Nothing else holds all formats to one text, or lets main's snapshots expire behind a move of main."""

    @pytest.fixture(params=FORMATS)
    def table(self, request: pytest.FixtureRequest, driver: Driver) -> TableUnderTest:
        return RealTable(BranchedTable(driver, request.param, driver.database(CATALOGS[request.param])))
