"""What SQL has no words for: functions over rows, typed datasets, and the DataFrame's own operators."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ALL_OF_ORDERS: Final = "o.id, o.customer, o.amount, o.status, o.placed"
_OPERATIONS: Final = """
package headwater.testing;
import java.util.Iterator;
import org.apache.spark.api.java.function.FilterFunction;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.api.java.function.MapGroupsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
public class Operations {
    public static class Name implements MapFunction { public Object call(Object row) { return "x"; } }
    public static class Keep implements FilterFunction { public boolean call(Object row) { return true; } }
    public static class Fold implements MapGroupsFunction {
        public Object call(Object key, Iterator rows) { return "x"; }
    }
    public static Dataset map(Dataset d) { return d.map((MapFunction) new Name(), Encoders.STRING()); }
    public static Dataset filter(Dataset d) { return d.filter((FilterFunction) new Keep()); }
    public static Dataset groups(Dataset d) {
        return d.groupByKey((MapFunction) new Name(), Encoders.STRING())
            .mapGroups((MapGroupsFunction) new Fold(), Encoders.STRING());
    }
}
"""


class Frame(NamedTuple):
    make: Callable[[SparkSession], DataFrame]
    edges: str


def _frame(java: Any, spark: SparkSession) -> DataFrame:
    from pyspark.sql import DataFrame

    return DataFrame(java, spark)


def _typed(operation: str, query: str) -> Callable[[SparkSession], DataFrame]:
    """An operation on a typed dataset, which only Scala and Java have."""

    def make(spark: SparkSession) -> DataFrame:
        inside: Any = spark
        jvm, gateway = inside._jvm, inside.sparkContext._gateway
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(_OPERATIONS)
        found = compiler.getClassLoader().loadClass("headwater.testing.Operations")
        method = next(each for each in found.getMethods() if each.getName() == operation)
        given = gateway.new_array(jvm.java.lang.Object, 1)
        frame: Any = spark.sql(query)
        given[0] = frame._jdf
        return _frame(method.invoke(None, given).toDF(), spark)

    return make


def _function(spark: SparkSession, frame: DataFrame, kind: int, schema: str) -> Any:
    """A function over batches, as pandas' and Arrow's are: neither has to be there for its plan to be."""
    from pyspark.sql.functions import udf

    inside: Any = spark
    plain: Any = udf(lambda rows: rows, schema)
    python = inside._jvm.org.apache.spark.sql.execution.python.UserDefinedPythonFunction
    judf = import_module("pyspark.sql.udf").UserDefinedFunction(plain.func, plain.returnType)._judf
    columns = import_module("pyspark.sql.column" if spark.version.startswith("3") else "pyspark.sql.classic.column")
    given = columns._to_seq(inside.sparkContext, [frame[name] for name in frame.columns], columns._to_java_column)
    return python(judf.name(), judf.func(), judf.dataType(), kind, True).apply(given)


def _plan_arguments(spark: SparkSession, function: Any, *more: object) -> tuple[object, ...]:
    """A function as a plan's method wants it: its expression in Spark 3, the column and a profile in Spark 4."""
    if spark.version.startswith("3"):
        return (function.expr(), *more)
    return (function, *more, *([None] if more else []))


def _mapped(method: str, kind: int) -> Callable[[SparkSession], DataFrame]:
    def make(spark: SparkSession) -> DataFrame:
        frame: Any = spark.table("customers")
        function = _function(spark, frame, kind, "x int, y string")
        named = method if spark.version.startswith("3") else method.replace("pythonM", "m")
        return _frame(getattr(frame._jdf, named)(*_plan_arguments(spark, function, False)), spark)

    return make


def _applied(spark: SparkSession) -> DataFrame:
    frame: Any = spark.table("customers")
    function = _function(spark, frame, 201, "x int, y string")
    return _frame(frame.groupBy("region")._jgd.flatMapGroupsInPandas(*_plan_arguments(spark, function)), spark)


def _cogrouped(spark: SparkSession) -> DataFrame:
    left: Any = spark.table("customers").select("region", "name")
    right: Any = spark.table("orders").select("status", "amount")
    function = _function(spark, left.crossJoin(right), 206, "x int")
    grouped = left.groupBy("region")._jgd.flatMapCoGroupsInPandas(
        right.groupBy("status")._jgd, *_plan_arguments(spark, function)
    )
    return _frame(grouped, spark)


def _aggregated(spark: SparkSession) -> DataFrame:
    from pyspark.sql import Column

    frame: Any = spark.table("orders").select("amount", "status")
    mean = Column(_function(spark, frame.select("amount"), 202, "double"))
    made: DataFrame = frame.groupBy("status").agg(mean.alias("m"))
    return made


def _as_of(spark: SparkSession) -> DataFrame:
    left: Any = spark.table("orders").select("amount", "customer")
    right: Any = spark.table("customers").select("score", "name", "id")
    on = left.customer == right.id
    joined: DataFrame = left._joinAsOf(right, leftAsOfColumn="amount", rightAsOfColumn="score", on=on)
    return joined


def _columns(spark: SparkSession) -> Any:
    from pyspark.sql import functions

    return functions


def _customers(spark: SparkSession) -> Any:
    return spark.table("customers")


def _streamed(spark: SparkSession) -> DataFrame:
    rows: Any = spark.readStream.format("rate").load().withWatermark("timestamp", "1 minute")
    kept: DataFrame = rows.dropDuplicatesWithinWatermark(["value"]).selectExpr("value + 1 as v")
    return kept


_NAMES: Final = "id = c.id; name = c.name"
FRAMES: Final = {
    "mapInPandas": Frame(
        _mapped("mapInPandas", 205),
        "x <- c.id, c.name, c.region, c.score; y <- c.id, c.name, c.region, c.score",
    ),
    "mapInArrow": Frame(
        _mapped("pythonMapInArrow", 207),
        "x <- c.id, c.name, c.region, c.score; y <- c.id, c.name, c.region, c.score",
    ),
    "applyInPandas": Frame(
        _applied,
        "x <- c.id, c.name, c.region, c.score; y <- c.id, c.name, c.region, c.score; ~GROUP_BY c.region",
    ),
    "cogroup": Frame(_cogrouped, "x <- c.region, c.name, o.status, o.amount; ~GROUP_BY c.region, o.status"),
    "an aggregate in pandas": Frame(_aggregated, "status = o.status; m << o.amount; ~GROUP_BY o.status"),
    "a typed map": Frame(_typed("map", "select * from orders"), f"value <- {ALL_OF_ORDERS}"),
    "a typed filter": Frame(
        _typed("filter", "select id, status from orders"), "id = o.id; status = o.status; ~FILTER o.id, o.status"
    ),
    "typed groups": Frame(
        _typed("groups", "select id, status from orders"), "value <- o.id, o.status; ~GROUP_BY o.id, o.status"
    ),
    "as of": Frame(
        _as_of,
        "amount = o.amount; customer = o.customer; score = c.score; name = c.name; id = c.id; "
        "~JOIN o.amount, c.score, o.customer, c.id",
    ),
    "dropDuplicates": Frame(
        lambda spark: _customers(spark).dropDuplicates(["region"]).select("id"), "id = c.id; ~GROUP_BY c.region"
    ),
    "withColumns, drop and rename": Frame(
        lambda spark: (
            _customers(spark)
            .withColumns({"twice": _columns(spark).expr("score * 2")})
            .drop("region", "score")
            .withColumnRenamed("id", "k")
        ),
        "k = c.id; name = c.name; twice <- c.score",
    ),
    "withField": Frame(
        lambda spark: spark.table("items").select(
            _columns(spark).col("dims").withField("w", _columns(spark).col("qty")).alias("d")
        ),
        "d <- i.dims, i.qty",
    ),
    "observe": Frame(
        lambda spark: _customers(spark).observe("seen", _columns(spark).max("score")).select("id", "name"), _NAMES
    ),
    "fillna": Frame(
        lambda spark: _customers(spark).select("id", "name").fillna({"name": "x"}),
        "id = c.id; name <- c.name; name ? c.name",
    ),
    "replace": Frame(
        lambda spark: _customers(spark).select("id", "name").replace({"a": "b"}, subset=["name"]),
        "id = c.id; name <- c.name; name ? c.name",
    ),
    "unionByName": Frame(
        lambda spark: (
            _customers(spark)
            .select("id", "name")
            .unionByName(spark.table("orders").select("status", "id"), allowMissingColumns=True)
        ),
        "id = c.id, o.id; name = c.name; status = o.status",
    ),
    "unionByName of structs": Frame(
        lambda spark: (
            spark.sql("select named_struct('a', qty, 'b', sku) as s from items")
            .unionByName(
                spark.sql("select named_struct('b', name, 'a', id, 'n', score) as s from customers"),
                allowMissingColumns=True,
            )
            .selectExpr("s.a as a", "s.b as b", "s.n as n")
        ),
        "a = i.qty, c.id; b = i.sku, c.name; n = c.score",
    ),
    "repartition, coalesce and hint": Frame(
        lambda spark: _customers(spark).repartition(2, "region").coalesce(1).hint("rebalance").select("id", "name"),
        _NAMES,
    ),
    "pivot by name": Frame(
        lambda spark: (
            spark.table("orders").groupBy("customer").pivot("status", ["a"]).agg(_columns(spark).max("amount"))
        ),
        "customer = o.customer; a << o.amount; a ? o.status; ~GROUP_BY o.customer, o.status",
    ),
    "an RDD": Frame(
        lambda spark: spark.createDataFrame(_customers(spark).rdd, "k int, n string, r string, s double").selectExpr(
            "k + 1 as k"
        ),
        "k <- LogicalRDD.k",
    ),
    "a stream": Frame(_streamed, "v <- StreamingRelationV2.value; ~GROUP_BY StreamingRelationV2.value"),
}
