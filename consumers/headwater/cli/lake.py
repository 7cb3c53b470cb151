"""`headwater lake compact` and `expire`: the files and old versions of a lineage store in a lake."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, moment
from headwater.cli.output import CommandOutput
from headwater.cli.pipeline import add_spark
from headwater.cli.store import add_store, options_of
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.spark.pipeline.lake import LakeTables
    from headwater.lineage.lake import LakeAddress

_CATALOG = (
    "--conf spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog --conf spark.sql.catalog.lake.type=rest "
    "--conf spark.sql.catalog.lake.uri=https://catalog.example.com"
)


def _smallest(parser: Flags) -> None:
    parser.flag("fewest", count, "5", "rewrite the files of a table that has so many small ones", "N")


@command(
    """Rewrite the small files of a lake store's tables into large ones, while others read.

It is done by the format: Iceberg's rewrite_data_files, Delta's OPTIMIZE.
Each micro-batch of a pipeline adds files. Run it once an hour, or once a day.""",
    f"headwater lake compact --store iceberg:lake.lineage {_CATALOG}",
    flags=[add_store, _smallest, add_spark],
)
def compact(given: Namespace, output: CommandOutput) -> int:
    from headwater.consumers.spark.pipeline import lake  # noqa: PLC0415 - it imports SQLAlchemy

    files = _with_lake(given, _address(given), lambda tables: lake.compact(tables, smallest=given.fewest))
    rewritten = [item for item in files.items() if item[1]]
    output.table("rewritten", ("table", "files"), rewritten, "Files that were rewritten")
    return Exit.DONE


def _retention(parser: Flags) -> None:
    parser.flag("older-than", moment, None, "the versions that are older, such as 7d", "AGE")
    parser.flag("retain", count, "1", "but for the newest ones, so many of each table; not for Delta", "N")


@command(
    """Remove old versions of a lake store's tables, with the files that only they have.

It is done by the format: Iceberg's expire_snapshots, Delta's VACUUM, which keeps seven days at least.
The rows of the newest version stay: no lineage is lost. A query as of an older time fails afterwards.""",
    f"headwater lake expire --store iceberg:lake.lineage --older-than 7d --yes {_CATALOG}",
    flags=[add_store, _retention, add_erasing, add_spark],
)
def expire(given: Namespace, output: CommandOutput) -> int:
    if given.older_than is None:
        raise ConfigurationError("how old? Say --older-than AGE, such as 7d")
    address = _address(given)

    def work() -> tuple[str, Mapping[str, object]]:
        from headwater.consumers.spark.pipeline import lake  # noqa: PLC0415

        files = _with_lake(given, address, lambda tables: lake.expire(tables, given.older_than, retained=given.retain))
        return f"removed {sum(files.values())} data files of old versions", {"files": sum(files.values())}

    question = f"Remove the versions of {address.words} before {given.older_than:%Y-%m-%d %H:%M}?"
    return erase(given, output, question, work)


def _address(given: Any) -> LakeAddress:
    address = options_of(given).lake
    if address is None:
        raise ConfigurationError(
            "this is for a lake store, --store iceberg:CATALOG.NAMESPACE or delta:…; a database needs none of it"
        )
    return address


def _with_lake(given: Any, address: LakeAddress, work: Callable[[LakeTables], Mapping[str, int]]) -> Mapping[str, int]:
    from headwater.consumers.spark.pipeline.lake import LakeTables  # noqa: PLC0415
    from headwater.consumers.spark.pipeline.session import pipeline_session  # noqa: PLC0415

    with pipeline_session(dict(given.conf), master=given.master, reads_kafka=False, lake=address) as spark:
        return work(LakeTables.open(spark, address))
