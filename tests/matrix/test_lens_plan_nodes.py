"""Each node of a plan that Spark's and the formats' jars have is on one side of the lens's allow-list, read off the
class files: a class that a later release brings is refused, and this test asks on which side it belongs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final

import pyspark
import pytest

from headwater.cli.doctor.class_files import Jars
from headwater.lens.java_calls import names
from headwater.local.cache import cache_directory
from tests.kit.spark.class_files import classes_in, descendants
from tests.kit.spark.packages import package_settings
from tests.kit.spark.versions import packages

pytestmark = [pytest.mark.needs("iceberg", "delta")]

PLAN: Final = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
FORMATS: Final = ("iceberg", "delta", "paimon", "hudi")
LISTS: Final = ("QUERIES", "OF_SESSION", "MAYBE_TEMPORARY", "NAMESPACES", "STREAMS", "WRITES")
REFUSED: Final = names(
    """
    AddCheckConstraint AddConstraint AddPartitionField AddPartitions AlterColumnSyncIdentity
    AlterDatabasePropertiesCommand AlterDatabaseSetLocationCommand AlterHoodieTableAddPartitionCommand
    AlterHoodieTableDropPartitionCommand AlterHoodieTableRenameCommand AlterTableAddColumnsDeltaCommand
    AlterTableAddConstraintDeltaCommand AlterTableAddPartitionCommand AlterTableChangeColumnDeltaCommand
    AlterTableClusterBy AlterTableClusterByDeltaCommand AlterTableCollation AlterTableDropColumnsDeltaCommand
    AlterTableDropConstraintDeltaCommand AlterTableDropFeature AlterTableDropFeatureDeltaCommand
    AlterTableRenameCommand AlterTableRenamePartitionCommand AlterTableReplaceColumnsDeltaCommand
    AlterTableSerDePropertiesCommand AlterTableSetLocationCommand AlterTableSetLocationDeltaCommand
    AlterTableSetPropertiesDeltaCommand AlterTableUnsetPropertiesDeltaCommand AlterViewSchemaBinding
    AlterViewSchemaBindingCommand AnalyzePartitionCommand AnalyzeTables AnalyzeTablesCommand Call CallCommand
    CallProcedureHoodieCommand CallStatement CloneTableCommand CloneTableStatement ClusterByPlan
    CommentOnNamespace CompactionHoodiePathCommand CompactionHoodieTableCommand CompactionPath
    CompactionShowHoodiePathCommand CompactionShowHoodieTableCommand CompactionShowOnPath CompactionShowOnTable
    CompactionTable ConvertToDeltaCommand CreateFlowCommand CreateFunction CreateIcebergView CreateIndex
    CreateIndexCommand CreateMaterializedViewAsSelect CreateOrReplaceBranch CreateOrReplaceTag
    CreateStreamingTable CreateStreamingTableAsSelect CreateUserDefinedFunction DeltaGenerateCommand
    DeltaInsertReplaceOnOrUsingCommand DeltaReorgTable DeltaReorgTableCommand DropBranch DropConstraint
    DropDatabaseCommand DropFunction DropIcebergView DropIdentifierFields DropIndex DropIndexCommand DropNamespace
    DropPartitionField DropTag ExternalCommandExecutor InsertIntoDataSourceDirCommand InsertIntoDir
    InsertIntoHiveDirCommand LoadData LoadDataCommand PaimonAnalyzeTableColumnCommand PaimonCallCommand
    PaimonCallStatement PaimonTruncateTableCommand RecoverPartitions RefreshIndex RefreshIndexCommand
    RenamePartitions RenameTable RepairHoodieTableCommand RepairTable RepairTableCommand ReplacePartitionField
    ResolvedProcedure RestoreTableCommand RestoreTableStatement RowTrackingBackfillCommand
    RowTrackingUnBackfillCommand ScriptTransformation SetIdentifierFields SetNamespaceCollationCommand
    SetNamespaceLocation SetNamespaceProperties SetTableLocation SetTableSerDeProperties SetViewProperties
    SetWriteDistributionAndOrdering TruncateDeltaTableCommand TruncateHoodieTableCommand UnresolvedProcedure
    UnsetNamespacePropertiesCommand UnsetViewProperties VacuumTableCommand WriteFiles WriteIntoDelta
    WriteIntoPaimonTable WriteToContinuousDataSource WriteToDataSourceV2
    """
)
"""Of Spark 3.5.7 and 4.1.1 with their formats. They write, and not just one table whose name stands in them."""


def listed(name: str) -> list[str]:
    """Return the entries of one of the lists, as the Java source has them."""
    source = (files("headwater.lens") / "java" / "PlanNodes.java").read_text()
    found = re.search(rf"static final String {name} = (.*?);", source, re.DOTALL)
    assert found is not None
    return str("".join(re.findall(r'"([^"]*)"', found[1]))).split(",")


def jars(java_home: Path) -> Iterator[Path]:
    """Yield Spark's own jars, and those of the formats."""
    yield from (Path(pyspark.__file__).parent / "jars").glob("spark-*.jar")
    for each in FORMATS:
        package_settings(java_home, ",".join(packages(each)))
        for package in packages(each):
            group, artifact, release = package.split(":")
            yield cache_directory() / "ivy" / "jars" / f"{group}_{artifact}-{release}.jar"


@pytest.fixture(scope="module")
def nodes(java_home: Path) -> dict[str, str]:
    """All classes of plans that can be made, by their simple names."""
    return {simple(name): name for name in descendants(classes_in(jars(java_home)), PLAN)}


def simple(name: str) -> str:
    return name.rpartition(".")[2].rstrip("$").rpartition("$")[2]


@pytest.mark.smoke
def test_each_node_is_on_one_side(nodes: dict[str, str]) -> None:
    allowed = {each.partition(":")[0] for name in LISTS for each in listed(name)}
    assert {
        "Aggregate",
        "AppendData",
        "DropTableCommand",
        "VacuumTableCommand",
        "SetWriteDistributionAndOrdering",
    } <= set(nodes)
    assert sorted(set(nodes) - allowed - REFUSED) == []
    assert sorted(allowed & REFUSED) == []


def test_what_a_command_writes_stands_where_the_list_says(nodes: dict[str, str], java_home: Path) -> None:
    """A field that a release has renamed would make its command one that is refused."""
    classes = Jars(jars(java_home))
    for entry in listed("WRITES"):
        name, _, where = entry.partition(":")
        if name in nodes:
            fields = [each.partition(".")[0] for each in where.split("|")]
            assert any(classes.has(nodes[name], f"{field}()") for field in fields), entry
