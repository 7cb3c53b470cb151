"""The ways around SQL that a lens closes: which Java may be called, and what a program does by itself.

Whether they are closed on a real driver is what `tests/matrix/test_writing_ways.py` finds.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyspark
import pytest

from headwater.cli.doctor.class_files import parse_class
from headwater.lens import LensError
from headwater.lens.application import ProcessGuard
from headwater.lens.java_calls import CONTEXT_CALLS, ML_WRITES, RDD_CALLS, is_harmless, may_call, names
from headwater.lens.model import Refusals

HOME: Final = Path(pyspark.__file__).parent
HANDLES: Final = frozenset({"_jrdd", "_jvm", "_jsc", "jrdd", "_jdf", "_jconf", "jvm", "_to_java_object_rdd"})
"""In pyspark's sources: what stands for Java."""
WRITERS: Final = names(
    """
    saveAsHadoopDataset saveAsHadoopFile saveAsNewAPIHadoopFile saveAsObjectFile saveAsSequenceFile saveAsTextFile
    """
)
READERS: Final = names(
    """
    binaryFiles binaryRecords checkpointFile hadoopFile hadoopRDD newAPIHadoopFile newAPIHadoopRDD objectFile
    sequenceFile textFile wholeTextFiles
    """
)


def java_methods(path: Path) -> Iterator[str]:
    """Yield the methods of Java that a module of pyspark calls, as far as its source shows them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner: ast.expr = node.func.value
            found: set[str] = set()
            while isinstance(inner, (ast.Attribute, ast.Call, ast.Subscript)):
                found |= {inner.attr} if isinstance(inner, ast.Attribute) else set()
                inner = inner.func if isinstance(inner, ast.Call) else inner.value
            if HANDLES & (found | ({inner.id} if isinstance(inner, ast.Name) else set())):
                yield node.func.attr


def module(name: str) -> Path:
    """Return the file of a module that Spark 4 has moved."""
    moved = HOME / "core" / f"{name}.py"
    return moved if moved.exists() else HOME / f"{name}.py"


def test_each_java_method_of_rdds_and_contexts_is_on_one_side() -> None:
    """A writer that a later pyspark brings is refused, and this test asks on which side a method belongs."""
    assert sorted(set(java_methods(module("rdd"))) - RDD_CALLS) == sorted(WRITERS)
    assert sorted(set(java_methods(module("context"))) - CONTEXT_CALLS) == sorted(READERS)


@pytest.mark.slow
def test_writers_of_ml_are_refused() -> None:
    """Read off the class files: whatever in MLlib is called as if it wrote."""
    from zipfile import ZipFile

    found: set[str] = set()
    for jar in (HOME / "jars").glob("spark-mllib_*.jar"):
        with ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("org/apache/spark/ml") and name.endswith(".class") and "$$" not in name:
                    found |= {each.partition("(")[0] for each in parse_class(archive.read(name)).members if "(" in each}
    writers = {each for each in found if each.startswith(("save", "write", "overwrite", "toPMML")) and each.isalpha()}
    assert {"save", "write", "overwrite", "toPMML"} <= writers
    assert sorted(writers - ML_WRITES - {"writer", "writeReplace"}) == []


@pytest.mark.parametrize(
    ("name", "method", "may"),
    [
        ("pyspark.rdd", "collectAndServe", True),
        ("pyspark.core.rdd", "saveAsTextFile", False),
        ("pyspark.core.rdd", "writeAsOfTomorrow", False),
        ("pyspark.context", "textFile", False),
        ("pyspark.context", "runJob", True),
        ("pyspark.ml.util", "save", False),
        ("pyspark.ml.wrapper", "fit", True),
        ("pyspark.streaming.context", "start", False),
        ("pyspark.sql.readwriter", "save", True),
    ],
)
def test_what_pyspark_may_call(name: str, method: str, may: bool) -> None:
    assert may_call(name, method) is may


@pytest.mark.parametrize(
    ("kind", "method", "harmless"),
    [
        ("java.lang.System", "currentTimeMillis", True),
        ("java.lang.System", "load", False),
        ("java.lang.Runtime", "getRuntime", False),
        ("java.util.ArrayList", "add", True),
        ("java.util.Collections$UnmodifiableMap", "get", True),
        ("java.sql.Timestamp", "new", True),
        ("java.sql.DriverManager", "getConnection", False),
        ("java.nio.file.Files", "delete", False),
        ("org.apache.hadoop.fs.FileSystem", "get", False),
        ("org.apache.hadoop.fs.Path", "new", True),
        ("org.apache.hadoop.fs.Path", "getFileSystem", False),
        ("org.apache.spark.sql.SparkSession", "sql", True),
        ("org.apache.spark.sql.SparkSession", "newSession", False),
        ("org.apache.spark.sql.SparkSession$", "sessionState", False),
        ("io.delta.tables.DeltaTable", "merge", True),
        ("io.delta.tables.DeltaTable", "vacuum", False),
        ("io.delta.tables.DeltaMergeBuilder", "execute", True),
        ("com.acme.Anything", "run", False),
    ],
)
def test_what_other_code_may_call(kind: str, method: str, harmless: bool) -> None:
    assert is_harmless(kind, method) is harmless


def test_a_program_changes_no_file_of_a_table_and_starts_no_process(tmp_path: Path) -> None:
    """It finds a guard that looks at other files too, or goes on when it has ended."""
    table, free = tmp_path / "table", tmp_path / "free"
    table.mkdir()
    free.mkdir()
    (table / "rows").write_text("1")
    refusals = Refusals("a check", ["process:true", f"{table}/allowed*"])
    guard = ProcessGuard(refusals)
    guard.begin()
    guard.protect([f"file:{table}", "s3://bucket/table", "hdfs://name/table"])
    try:
        for change in (
            lambda: (table / "rows").write_text("2"),
            (table / "rows").unlink,
            lambda: free.rename(table / "moved"),
            (table / "more").mkdir,
            lambda: subprocess.run([sys.executable, "-c", ""], check=True),
            lambda: os.system("echo"),  # noqa: S605
        ):
            with pytest.raises(LensError, match="the lens 'a check' redirects writes"):
                change()
        assert (table / "rows").read_text() == "1"
        (free / "report").write_text("done")
        (table / "allowed.txt").write_text("done")
        subprocess.run(["true"], check=True)
    finally:
        guard.end()
    assert len(refusals.messages) == 5
    (table / "rows").write_text("2")
    assert len(refusals.messages) == 5
