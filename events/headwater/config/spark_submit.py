"""Hands Spark properties to the JVM that pyspark starts, by a file that only this user can read.

A command line and an environment are read by others: `ps` shows the one to every user, children inherit the other.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import Final

from headwater.config.sources import from_file

ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
"""The variable by which pyspark learns the arguments of spark-submit."""
_NO_ARGUMENTS: Final = "pyspark-shell"
_FLAG: Final = "--properties-file"
_NAME: Final = "spark.properties"
_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


@contextmanager
def spark_properties(properties: Mapping[str, str], submitted: Sequence[str] = ()) -> Generator[None]:
    """Start JVMs within the block with these properties; `submitted` are further flags of spark-submit.

    What a program says itself wins, as over spark-submit's `--conf`. Spark reads one file of properties only. So ours
    holds also what it would have read else: a file that is named already, or spark-defaults.conf. A forked child that
    leaves the block removes nothing: the file is its parent's.
    """
    before, owner = os.environ.get(ARGUMENTS), os.getpid()
    files, words = _without_files([*submitted, *shlex.split(before or _NO_ARGUMENTS)])
    base = from_file(files[-1], is_strict=False) if files else _defaults()
    folder = Path(tempfile.mkdtemp(prefix="headwater-"))  # for this user alone
    try:
        _write(folder / _NAME, {**base, **properties})
        os.environ[ARGUMENTS] = shlex.join([_FLAG, str(folder / _NAME), *words])
        yield
    finally:
        if os.getpid() == owner:
            rmtree(folder, ignore_errors=True)
            _set_variable(before)


@contextmanager
def java_on_standard_error() -> Generator[None]:
    """Let processes that are started here write on standard error: Java says there what it fetches, and standard output
    is for the command's answer."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def find_spark_defaults() -> Path | None:
    """Return the spark-defaults.conf that Spark reads, if there is one."""
    home, directory = os.environ.get("SPARK_HOME"), os.environ.get("SPARK_CONF_DIR")
    spec = None if home or directory else find_spec("pyspark")
    inside = spec.submodule_search_locations if spec is not None else None
    places = [directory, home and f"{home}/conf", *([f"{inside[0]}/conf"] if inside else [])]
    place = next((each for each in places if each), None)
    file = None if place is None else Path(place) / "spark-defaults.conf"
    return file if file is not None and file.is_file() else None


def _defaults() -> dict[str, str]:
    file = find_spark_defaults()
    return {} if file is None else from_file(file, is_strict=False)


def _without_files(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments of spark-submit into the files of properties that they name, and the others."""
    files, others = list[str](), list[str]()
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        if name != _FLAG:
            others.append(word)
        elif found := value if has_value else next(rest, ""):
            files.append(found)
    return files, others


def _write(file: Path, properties: Mapping[str, str]) -> None:
    lines = [f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}\n" for key, value in properties.items()]
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.writelines(lines)


def _escape(text: str, *, is_key: bool) -> str:
    """Return text as java.util.Properties reads it."""
    escaped = "".join(_ESCAPES.get(each, each) for each in text)
    if is_key:
        return "".join(f"\\{each}" if each in " =:#!" else each for each in escaped)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _set_variable(value: str | None) -> None:
    if value is None:
        os.environ.pop(ARGUMENTS, None)
    else:
        os.environ[ARGUMENTS] = value
