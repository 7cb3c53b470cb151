"""Compile our Java against the Sparks and formats at hand, into archives that a wheel brings along.

    python -m tools.class_archives DIRECTORY

The Sparks are the pyspark of this Python and those of HEADWATER_BUILD_SPARKS, directories of jars with colons between;
the formats' jars are those that tests have fetched. In a JVM with them Janino compiles, exactly as it does in a driver
that has no archives. What isn't at hand isn't in the wheel: drivers of other versions compile once and keep it.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from headwater.jvm.bundled import BundledArchive, SourceGroup, jar_identity, write_index
from headwater.jvm.cache import path_of
from headwater.jvm.loader import ClassOrigin, SharedLoader
from headwater.lens import java_classes
from headwater.listeners.capture.formats import java_parts
from headwater.listeners.capture.jvm import JavaClasses
from headwater.listeners.capture.self_test import SelfTest
from headwater.local.cache import cache_directory
from headwater.local.java import java, java_home_for_spark

_NAME: Final = re.compile(rb"[A-Za-z_$][\w$]*(?:[/.][\w$]+)+")
"""What may be the name of a class in a class file."""
_SPARK: Final = re.compile(r"spark-sql_(?P<scala>[\d.]+)-(?P<release>(?P<line>\d+\.\d+)\..*)\.jar")
_FORMATS: Final = (
    ("*iceberg-spark-runtime-{line}_{scala}-*.jar",),
    ("*delta-spark_{line}_{scala}-*.jar", "*delta-storage-4*.jar"),
    ("*delta-spark_{scala}-*.jar", "*delta-storage-3*.jar"),
    ("*hudi-spark{line}-bundle_{scala}-*.jar",),
    ("*paimon-spark-{line}-*.jar",),
    (
        "*spark-sql-kafka-*_{scala}-{line}*.jar",
        "*spark-token-provider-kafka-*_{scala}-{line}*.jar",
        "*_kafka-clients-*.jar",
    ),
)
"""By format the jars of one of its versions, for a line of Spark and its Scala."""


def main(directory: Path) -> int:
    """Write archives and their index; 1 if there is no Spark at hand."""
    rounds = [(spark, jars) for spark in find_sparks() for jars in find_formats(spark)]
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as empty:
        os.environ["HEADWATER_CACHE"] = empty  # what is compiled is what Janino gives, whatever is kept here
        found = [each for spark, jars in rounds for each in compile_for(spark, jars, directory)]
    write_index(dict.fromkeys(found), directory)
    print(f"{len(set(found))} sets of class files, as {len({each.file for each in found})} archives")
    return 0 if found else 1


def find_sparks() -> Iterator[Path]:
    """Yield directories of Spark's jars."""
    spec = find_spec("pyspark")
    own = [] if spec is None or spec.origin is None else [str(Path(spec.origin).parent / "jars")]
    for each in (*own, *filter(None, os.environ.get("HEADWATER_BUILD_SPARKS", "").split(os.pathsep))):
        if next(Path(each).glob("spark-sql_*.jar"), None):
            yield Path(each)


def find_formats(spark: Path) -> Iterator[list[Path]]:
    """Yield no jars, so that what is no format's needs none, then sets with one version of each format at most."""
    yield []
    known = match_spark(spark)
    fetched = cache_directory() / "ivy" / "jars"
    columns: list[list[Path]] = []
    for patterns in _FORMATS:
        found = [sorted(fetched.glob(each.format(**known)), reverse=True) for each in patterns]
        columns += found if all(found) else []
    for row in zip_longest(*columns):
        yield [each for each in row if each is not None]


def match_spark(spark: Path) -> Mapping[str, str]:
    """Return the release, line and Scala of a Spark."""
    for each in spark.glob("spark-sql_*.jar"):
        if found := _SPARK.fullmatch(each.name):
            return found.groupdict()
    raise SystemExit(f"{spark} has no spark-sql jar: name a directory with the jars of a released Spark")


def compile_for(spark: Path, formats: list[Path], directory: Path) -> list[BundledArchive]:
    """Compile for these jars, write the archives, and return what the index says of them."""
    release = match_spark(spark)["release"]
    print(f"Spark {release} with {', '.join(each.name for each in formats) or 'nothing else'}", flush=True)
    with start_jvm(java_home_for_spark(java(), release), spark, formats) as gateway:
        classes = JavaClasses(SimpleNamespace(_gateway=gateway))
        absent = [name for part in java_parts() if part not in classes.present() for name in part.sources()]
        test = SelfTest(classes, [each.removesuffix(".java") for each in absent])
        test.finish(release)
        lens = java_classes.make_loader(gateway)
        return [
            *_write_archives(classes, test.missing or (), test.absent, directory),
            *_write_archives(lens, (), (), directory),
        ]


def _write_archives(
    loader: SharedLoader, missing: Iterable[str], absent: Iterable[str], directory: Path
) -> Iterator[BundledArchive]:
    if loader.state.origin is not ClassOrigin.COMPILER:
        raise SystemExit("these classes weren't compiled here: remove class-files from the sources of headwater.jvm")
    jars = map_classes(loader.class_path.entries)
    shared = loader.groups[0].sources
    for group, content in loader.archives(missing, absent):
        if lacking := sorted(_find_lacking(group, loader.compiled)):
            print(f"  without {group.name}: {', '.join(lacking)} can't be compiled")
            continue
        names = f"{hashlib.sha256(content).hexdigest()[:24]}.jar"
        (directory / names).write_bytes(content)
        needed = {jars[name] for each in loader.class_files(group) for name in find_names(each) if name in jars}
        probed = loader.class_path.find(group.probe)
        identities = {jar_identity(each) for each in (*needed, *([probed] if probed else []))}
        yield BundledArchive(group.digest(shared), loader.class_path.java_release, tuple(sorted(identities)), names)


def _find_lacking(group: SourceGroup, compiled: Iterable[str]) -> set[str]:
    there = {each.rpartition("/")[2].removesuffix(".class") for each in compiled}
    return {name.removesuffix(".java") for name in group.sources} - there


def find_names(class_file: bytes) -> set[str]:
    """Return what a class file names, and more: whatever looks like the name of a class, also of a member's types."""
    names = {each.decode().replace(".", "/") for each in _NAME.findall(class_file)}
    return names | {each.removeprefix("L") for each in names}


def map_classes(class_path: Iterable[str]) -> dict[str, Path]:
    """Return by each class the jar that a driver has it from."""
    found: dict[str, Path] = {}
    for path in map(path_of, class_path):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as jar:
                for name in jar.namelist():
                    if name.endswith(".class"):
                        found.setdefault(name.removesuffix(".class"), path)
    return found


@contextmanager
def start_jvm(java_home: Path, spark: Path, formats: list[Path]) -> Generator[Any, None, None]:
    """A JVM with these jars on its class path, reached through py4j; it is stopped at the end."""
    py4j: Any = importlib.import_module("py4j.java_gateway")  # it has no types
    options = ["-Xmx512m", "--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED"]
    port, process = py4j.launch_gateway(
        classpath=os.pathsep.join([f"{spark}/*", *map(str, formats)]),
        jarpath=str(next(spark.glob("py4j*.jar"))),
        java_path=str(java_home / "bin" / "java"),
        javaopts=options,
        die_on_exit=True,
        return_proc=True,
    )
    gateway = py4j.JavaGateway(gateway_parameters=py4j.GatewayParameters(port=port))
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=60)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
