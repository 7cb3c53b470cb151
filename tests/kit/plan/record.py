"""Records the plans of `cases` anew, from a real Spark with each of the formats:

    python -m tests.kit.plan.record            # all of them
    python -m tests.kit.plan.record delta      # or some

Nothing but names of directories and people, and times, is changed in what the tap's writer gave.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from headwater import local
from tests.kit.plan.cases import QUERIES, changes_of
from tests.kit.plan.queries import TABLES
from tests.kit.plan.reader import PlanReader
from tests.kit.spark.driver import DELTA, ICEBERG, PAIMON, PLAIN, Extensions
from tests.kit.spark.session import spark_session

FOLDER: Final = Path(__file__).parents[2] / "unit/plan/recorded"
_STARTS: Final = {"iceberg": (ICEBERG, "ice.db."), "delta": (DELTA, "default."), "paimon": (PAIMON, "pai.db.")}
_COLUMNS: Final = {"t": "id int, v int, s string, st struct<x:int,y:int>", "u": "id int, w int, z string"}
_MADE: Final = {
    "iceberg": "using iceberg",
    "iceberg merge-on-read": "using iceberg tblproperties ('write.merge.mode'='merge-on-read', "
    "'write.update.mode'='merge-on-read', 'write.delete.mode'='merge-on-read')",
    "delta": "using delta",
    "paimon": "tblproperties ('primary-key'='id')",
}
_FORGOTTEN: Final = {"owner": "somebody", "created": 0, "current-snapshot-id": "none", "uuid": "none"}


def main() -> None:
    wanted = sys.argv[1:] or ["queries", *_MADE]
    FOLDER.mkdir(exist_ok=True)
    if "queries" in wanted:
        _record("queries", PLAIN, _queries)
    for name in filter(wanted.__contains__, _MADE):
        extensions, prefix = _STARTS[name.partition(" ")[0]]
        _record(name, extensions, partial(_changes, name=name, prefix=prefix))


def _record(name: str, extensions: Extensions, read: Callable[[PlanReader], dict[str, Any]]) -> None:
    with ExitStack() as stack:
        warehouse = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        conf = {key: text.format(warehouse=warehouse) for key, text in extensions.conf.items()}
        conf |= {
            "spark.jars.packages": ",".join(extensions.packages),
            "spark.sql.warehouse.dir": str(warehouse / "spark"),
        }
        spark = stack.enter_context(spark_session(local.java().home, **conf))
        plans = read(PlanReader(spark))
    lines = (f"{json.dumps(query)}: {json.dumps(_without_place(plan, warehouse))}" for query, plan in plans.items())
    (FOLDER / f"{name.replace(' ', '-')}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _queries(reader: PlanReader) -> dict[str, Any]:
    for statement in TABLES:
        reader.sql(statement)
    return {query: reader.sql(query) for query in QUERIES}


def _changes(reader: PlanReader, name: str, prefix: str) -> dict[str, Any]:
    """Each on tables of its own, which have a row."""
    if prefix != "default.":
        reader.sql(f"create database {prefix.removesuffix('.')}")
    found: dict[str, Any] = {}
    for number, statement in enumerate(changes_of(name)):
        names = {}
        for table, columns in _COLUMNS.items():
            names[table] = f"{prefix}{table}"
            reader.sql(f"drop table if exists {names[table]}")
            reader.sql(f"create table {names[table]} ({columns}) {_MADE[name] if table == 't' else _plainly(name)}")
        reader.sql(f"insert into {names['t']} values ({number}, 2, 'a', struct(1, 2)), (9, 1, 'b', null)")
        reader.sql(f"insert into {names['u']} values ({number}, 2, 'a')")
        found[statement] = reader.sql(statement.format(**names))
    return found


def _plainly(name: str) -> str:
    return {"paimon": "", "iceberg merge-on-read": "using iceberg"}.get(name, _MADE[name])


def _without_place(plan: Any, warehouse: Path) -> Any:
    """Neither where it was, nor when, nor whose."""
    if isinstance(plan, dict):
        return {k: _FORGOTTEN.get(k, _without_place(each, warehouse)) for k, each in plan.items()}
    if isinstance(plan, list):
        return [_without_place(each, warehouse) for each in plan]
    return plan.replace(str(warehouse), "/warehouse") if isinstance(plan, str) else plan


if __name__ == "__main__":
    main()
