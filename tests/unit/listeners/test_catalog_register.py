"""Each command of Spark's is in the register, or among those that nobody can tell: read off Spark's own jars."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyspark
import pytest

from headwater.listeners.capture import catalog
from headwater.listeners.capture.batch import spark_writes
from headwater.listeners.capture.formats.files import PLUGIN as FILES
from tests.kit.spark.class_files import classes_in, descendants

pytestmark = pytest.mark.slow

_JARS: Final = ("spark-catalyst_*.jar", "spark-sql_*.jar", "spark-hive_*.jar", "spark-hive-thriftserver_*.jar")
_COMMAND: Final = "org.apache.spark.sql.catalyst.plans.logical.Command"
_KNOWN: Final = catalog.COMMANDS.keys() | spark_writes.COMMANDS.keys() | FILES.commands.keys()
NEW_IN_4: Final = frozenset(
    {
        "AlterColumns",
        "AlterTableClusterBy",
        "AlterTableCollation",
        "AlterViewSchemaBinding",
        "AlterViewSchemaBindingCommand",
        "CompoundBody",
        "CreateSQLFunctionCommand",
        "CreateUserDefinedFunction",
        "CreateVariable",
        "DescribeRelationJsonCommand",
        "DropVariable",
        "SetVariable",
        "ShowTablePartition",
        "ShowTablesExtended",
        "UnsetNamespacePropertiesCommand",
    }
)
"""Commands of Spark 4.0.0 that 3.5.7 doesn't have."""


@pytest.fixture(scope="module")
def commands() -> set[str]:
    """The simple names of all commands, as Java's getSimpleName gives them."""
    home = Path(pyspark.__file__).parent / "jars"
    jars = [jar for pattern in _JARS for jar in home.glob(pattern)]
    return {_simple(name) for name in descendants(classes_in(jars), _COMMAND)}


def _simple(name: str) -> str:
    last = name.rpartition(".")[2]
    return last if last.endswith("$") else last.rpartition("$")[2]


def test_the_jars_are_read(commands: set[str]) -> None:
    """Some that are there in all versions, of each jar."""
    assert {"CreateTable", "AlterTableRenameCommand", "CreateHiveTableAsSelectCommand", "AppendData"} <= commands


def test_every_command_is_registered_or_is_known_to_be_a_gap(commands: set[str]) -> None:
    assert sorted(commands - _KNOWN - catalog.GAPS.keys()) == []


def test_commands_of_the_other_version_are_there_too() -> None:
    assert sorted(NEW_IN_4 - _KNOWN - catalog.GAPS.keys()) == []


def test_a_gap_isnt_in_the_register() -> None:
    assert not _KNOWN & catalog.GAPS.keys()


def test_each_command_that_is_ignored_has_a_reason_and_does_nothing() -> None:
    for name, command in catalog.COMMANDS.items():
        if command.ignored is None:
            assert command.catalog is not None, name
        else:
            assert command.ignored, name
            assert command.catalog is None, name
            assert command.write is None, name


def test_nothing_that_writes_is_ignored() -> None:
    ignored = {name for name, command in catalog.COMMANDS.items() if command.ignored}
    assert not ignored & spark_writes.COMMANDS.keys()


def test_what_changes_a_catalog_is_never_ignored(commands: set[str]) -> None:
    """By their names: nothing that makes, alters, renames, drops or truncates a table, a view or a database."""
    made = ("CreateTable", "CreateNamespace", "CreateDatabase", "AlterTable", "AlterDatabase", "AlterView", "Truncate")
    gone = ("RenameTable", "DropTableCommand", "DropNamespace", "DropDatabase", "SetTable", "SetNamespaceLocation")
    words = (*made, *gone)
    changing = {name for name in commands if name.startswith(words)} | {"DropTable", "DropView", "CreateViewCommand"}
    handled = {name for name, command in catalog.COMMANDS.items() if command.catalog} | spark_writes.COMMANDS.keys()
    assert sorted(changing - handled - catalog.GAPS.keys()) == []
