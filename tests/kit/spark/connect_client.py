"""A client of Spark Connect: runs what it is handed on its standard input, line by line, and answers with what became
of it and which operation it was by the client's own account."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.connect.client import reattach

_OPERATIONS: list[str] = []


def _record_operations() -> None:
    iterator: Any = reattach.ExecutePlanResponseReattachableIterator
    original = iterator.__init__

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _OPERATIONS.append(self._operation_id)

    iterator.__init__ = noted


def _do(spark: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    _OPERATIONS.clear()
    answer: dict[str, Any] = {}
    try:
        if "save" in wanted:
            spark.range(3).selectExpr(wanted["column"]).write.mode("append").saveAsTable(wanted["save"])
        else:
            answer["rows"] = [list(row) for row in spark.sql(wanted["sql"]).collect()]
    except Exception as e:  # noqa: BLE001 - what fails is what is tried
        answer["error"] = type(e).__name__
    return {**answer, "operations": list(_OPERATIONS)}


def main() -> None:
    _record_operations()
    builder: Any = SparkSession.builder
    spark = builder.remote(sys.argv[1]).getOrCreate()
    print(json.dumps({"session": spark.client._session_id}), flush=True)
    for line in sys.stdin:
        print(json.dumps(_do(spark, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
