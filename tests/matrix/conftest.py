"""Every test here starts a Spark driver, or shares one with the modules of its `xdist_group`.

pyspark leaves the sockets of `collect` to the garbage collector.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kit.spark.versions import MAJOR, MINOR, lacking

if TYPE_CHECKING:
    from types import ModuleType

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [
        item
        for item in items
        if any(lacking(mark.args) for mark in item.iter_markers("needs"))
        or any(mark.args > (MAJOR, MINOR) for mark in item.iter_markers("since"))
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def pytest_sessionfinish() -> None:
    """Stop the driver that modules share."""
    loaded: ModuleType | None = sys.modules.get("tests.kit.spark.session")
    if loaded:
        loaded.release()
