"""No way to write that is Hudi's own reaches what is real under `headwater validate`: `hudi_ways.py` has them.

It finds what the list of plan nodes doesn't: a way that Hudi takes beside the plan, by an option, a setting
or a path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.kit.cases import hudi_ways as ways
from tests.kit.cases.warehouse import Warehouse
from tests.kit.spark.driver import HUDI

pytestmark = [pytest.mark.timeout(900), pytest.mark.needs("hudi")]

SAMPLE: Final = tuple(name for group in ways.GROUPS.values() for name in list(group)[::12])
"""Some of each group: those that are there to pass, too."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Warehouse:
    return Warehouse(
        tmp_path_factory.mktemp("ways"),
        java_home,
        HUDI,
        ways.STATEMENTS,
        script=str(Path(ways.__file__)),
        table=ways.MINE,
        using="hudi",
        parts=ways.PARTS,
    )


def test_a_sample_of_all_ways(warehouse: Warehouse) -> None:
    """The others are `long`."""
    warehouse.check_that_none_reaches_what_is_real(SAMPLE, ways.PASSING)


@pytest.mark.long
@pytest.mark.parametrize("group", [each for each in ways.GROUPS if each != "passing"])
def test_no_way_reaches_what_is_real(warehouse: Warehouse, group: str) -> None:
    """Fails for a way that isn't refused, that fails by itself and so proves nothing, or that leaves a trace."""
    warehouse.check_that_none_reaches_what_is_real(list(ways.GROUPS[group]), ways.PASSING)


@pytest.mark.long
def test_what_is_harmless_passes_and_the_verdict_is_equal(warehouse: Warehouse) -> None:
    warehouse.check_that_all_pass(ways.PASSING)
