"""No way to write reaches what is real under `headwater validate`: each is tried by a script, in one driver, and then
all files of the warehouse and all that its catalogs say are what they were. `writing_ways.py` has the ways, and
`hudi_ways.py` and `paimon_ways.py` those that a format takes beside the plan, by an option, a setting or a path.

It finds what no test of the lens alone does: a way around SQL, which the lens doesn't see, and a verdict that says
"equal" although something didn't run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from headwater.cli.exits import Exit
from tests.kit.cases import hudi_ways, paimon_ways, writing_ways
from tests.kit.cases.warehouse import Warehouse
from tests.kit.spark.driver import DELTA, HUDI, ICEBERG, PAIMON, Extensions, together

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Ways:
    """The ways of a module, and what its warehouse is started with."""

    module: ModuleType
    extensions: Extensions
    using: str
    needs: tuple[str, ...]

    def warehouse(self, folder: Path, java_home: Path) -> Warehouse:
        ways: Any = self.module
        script = str(Path(ways.__file__))
        more = {"script": script, "table": ways.MINE, "using": self.using, "parts": ways.PARTS}
        return Warehouse(folder, java_home, self.extensions, ways.STATEMENTS, **more)


WAYS: Final = {
    "all": Ways(writing_ways, together(ICEBERG, DELTA), "iceberg", ("iceberg", "delta")),
    "hudi": Ways(hudi_ways, HUDI, "hudi", ("hudi",)),
    "paimon": Ways(paimon_ways, PAIMON, "paimon", ("paimon",)),
}
GROUPS: Final = [
    pytest.param(name, group, marks=pytest.mark.needs(*each.needs), id=f"{name}-{group}")
    for name, each in WAYS.items()
    for group in each.module.GROUPS
    if group != "passing"
]
PASSING: Final = [pytest.param(name, marks=pytest.mark.needs(*each.needs)) for name, each in WAYS.items()]
SAMPLE: Final = tuple(name for group in writing_ways.GROUPS.values() for name in list(group)[::24])
"""Some of each group: one of those that are there to pass, too."""
ENDS: Final = {
    "thread": (Exit.JOB_FAILED, "doesn't redirect ice.db.other"),
    "thread of its own rows": (Exit.FAILED, None),
    "pool": (Exit.FAILED, None),
    "atexit": (Exit.JOB_FAILED, "is closed, since the script is over"),
    "atexit in a new session": (Exit.JOB_FAILED, "can't be validated"),
    "atexit that hides its error": (Exit.JOB_FAILED, "is closed, since the script is over"),
    "stream": (Exit.DONE, None),
    "swallowed": (Exit.JOB_FAILED, "doesn't redirect ice.db.other"),
    "nothing": (Exit.DONE, None),
}
"""How a validation ends, by how its script goes on. A row that a thread adds is one of the script's."""


@pytest.fixture(scope="module")
def warehouse_of(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Callable[[str], Warehouse]:
    """Makes each warehouse once, in whatever order the tests come."""
    return cache(lambda name: WAYS[name].warehouse(tmp_path_factory.mktemp("ways"), java_home))


@pytest.mark.needs("iceberg", "delta")
def test_a_sample_of_all_ways(warehouse_of: Callable[[str], Warehouse]) -> None:
    """The others, those of Hudi and Paimon, and what catalogs say are `long`."""
    warehouse_of("all").check_that_none_changes_a_file(SAMPLE, writing_ways.PASSING)


@pytest.mark.long
@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_no_way_reaches_what_is_real(warehouse_of: Callable[[str], Warehouse], name: str, group: str) -> None:
    """Fails for a way that isn't refused, that fails by itself and so proves nothing, or that leaves a trace."""
    ways: Any = WAYS[name].module
    warehouse_of(name).check_that_none_reaches_what_is_real(list(ways.GROUPS[group]), ways.PASSING)


@pytest.mark.long
@pytest.mark.parametrize("name", PASSING)
def test_what_is_harmless_passes_and_the_verdict_is_equal(warehouse_of: Callable[[str], Warehouse], name: str) -> None:
    """Fails if the allow-list is so short that ordinary jobs can't be validated, `foreachBatch` among them."""
    ways: Any = WAYS[name].module
    warehouse_of(name).check_that_all_pass(ways.PASSING)


@pytest.mark.long
@pytest.mark.needs("iceberg", "delta")
@pytest.mark.parametrize("way", ENDS)
def test_what_goes_on_when_the_script_is_through_is_a_part_of_it(
    warehouse_of: Callable[[str], Warehouse], way: str
) -> None:
    """A thread wrote into a real table once the lens had ended, and the verdict was equal."""
    code, why = ENDS[way]
    warehouse = warehouse_of("all")
    before = warehouse.state_at_first
    ended, answer, _ = warehouse.validate([f"end:{way}"])
    assert ended.code == code, (answer, ended.err[-3000:])
    assert why is None or why in ended.err
    if code == Exit.FAILED:
        assert answer["rows_only_in_the_result"] == [{"times": 1, "row": "id=9, amount=9"}]
    assert warehouse.state() == before
