"""Programs in Java for tests, compiled by the compiler that Spark carries: a JRE is enough."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pyspark

JARS = Path(pyspark.__file__).parent / "jars"
COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
"""Janino's command line."""
SECONDS = 500


def java(java_home: Path, *words: str) -> list[str]:
    """A command that runs Java with all that Spark brings on its class path."""
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
    return [str(java_home / "bin" / "java"), *quick, "-cp", f"{JARS}/*", *words]


def jar(folder: Path, java_home: Path, **sources: str) -> Path:
    """A jar of these classes, each given by its name in the package `acme`."""
    for name, text in sources.items():
        (folder / f"{name}.java").write_text(f"package acme;\n{text}")
    files = [str(folder / f"{name}.java") for name in sources]
    known = os.pathsep.join(map(str, JARS.glob("*.jar")))
    compiler = java(java_home, COMPILER, "-classpath", known, "-d", str(folder), *files)
    subprocess.run(compiler, check=True, timeout=SECONDS, capture_output=True)
    made = folder / "app.jar"
    with zipfile.ZipFile(made, "w") as archive:
        for file in sorted((folder / "acme").glob("*.class")):
            archive.write(file, f"acme/{file.name}")
    return made
