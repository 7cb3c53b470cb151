"""javac on our Java sources, against the very jars of a driver.

In the driver Janino compiles them, which checks neither generics nor exceptions as closely: what javac refuses, or
warns of, is a mistake that only a statement would find. Sources of formats that this driver doesn't have are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pyspark

from headwater.jvm.loader import ClassPath
from headwater.listeners.capture.formats import java_parts
from headwater.listeners.capture.jvm import JavaClasses, rename_moved

SECONDS: Final = 120
TARGET: Final = "9"
"""The oldest Java whose classes the sources name; Spark 3.5 itself runs on 8 as well."""
# Janino takes no type from generics, so raw types, unchecked calls and casts that javac holds for idle are needed.
LINT: Final = "-Xlint:all,-rawtypes,-unchecked,-cast,-path,-options,-deprecation,-serial"
# In Scala the parameter has the type of a parameter of the trait, which Janino takes for Object, and javac doesn't.
FOR_JAVAC: Final = {
    b"setNextObserver(Object next)": b"setNextObserver(org.apache.spark.sql.delta.TransactionExecutionObserver next)"
}


def complaints_of_javac(spark_context: Any, place: Path) -> list[str]:
    """What javac says of the sources that this driver uses, line by line."""
    classes = JavaClasses(spark_context)
    present = classes.present()
    absent = {name for part in java_parts() if part not in present for name in part.sources()}
    as_here = rename_moved(ClassPath(spark_context._gateway))
    sources = {name: as_here(text) for name, text in classes.sources.items() if name not in absent}
    assert sources
    for name, text in sources.items():
        for ours, theirs in FOR_JAVAC.items():
            text = text.replace(ours, theirs)  # noqa: PLW2901
        (place / name).write_bytes(text)
    files = [str(place / name) for name in sorted(sources)]
    options = ["-proc:none", "--release", TARGET, LINT, "-cp", class_path(spark_context), "-d", str(place)]
    done = subprocess.run([javac(), *options, *files], check=False, capture_output=True, text=True, timeout=SECONDS)
    said = [line for line in done.stderr.splitlines() if not line.startswith("Note: ")]
    return said or ([f"javac ended with {done.returncode}"] if done.returncode else [])


def class_path(spark_context: Any) -> str:
    """Spark's own jars and those that were fetched for this driver."""
    own = Path(pyspark.__file__).parent / "jars"
    fetched = [
        each.removeprefix("file://") for each in spark_context.getConf().get("spark.jars", "").split(",") if each
    ]
    return os.pathsep.join([f"{own}/*", *fetched])


def javac() -> str:
    """The compiler of JAVA_HOME, else the one on the PATH: a JRE is not enough here."""
    of_home = Path(os.environ.get("JAVA_HOME", ""), "bin", "javac")
    found = str(of_home) if of_home.is_file() else shutil.which("javac")
    assert found, "javac is needed: install a JDK, 17 or newer (Debian: apt-get install default-jdk-headless)"
    return found
