"""Whether drivers find headwater: the line in site-packages that brings it in, and the versions beside it.

Whether the jars of table formats are built for the Spark that drivers run: one for another Spark ends a job with an
IncompatibleClassChangeError or a NoSuchMethodError.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from headwater.cli.doctor.class_files import Jars, check_compiled_classes
from headwater.listeners.capture.formats import installed, java_parts
from headwater.listeners.capture.self_test import ReflectedMember, lazy_name, read_reflection
from headwater.listeners.spark_versions import untested
from headwater.plugins import own_version
from headwater.spi import CheckResult

_JARS: Final = ("spark.jars.packages", "spark.jars", "spark.driver.extraClassPath", "spark.executor.extraClassPath")
_SEPARATORS: Final = re.compile(r"[,:;/\\\s]+")


class _Format(NamedTuple):
    name: str
    artifact: re.Pattern[str]
    tried: tuple[str, ...]
    """The Sparks that headwater is tested on with it."""


_FORMATS: Final = (
    _Format("Iceberg", re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_"), ("3.5", "4.0", "4.1")),
    _Format("Delta", re.compile(r"delta-spark_(\d+\.\d+)_"), ("3.5", "4.0", "4.1", "4.2")),
    _Format("Paimon", re.compile(r"paimon-spark-(\d+\.\d+)(?:_|-|$)"), ("3.5",)),
    _Format("Hudi", re.compile(r"hudi-spark(\d+\.\d+)-bundle"), ("3.5",)),
)


def check_format_jars(conf: Mapping[str, str], spark: str, jars: Path | None) -> Iterator[CheckResult]:
    """Yield what is found of the jars that a configuration names, and of those beside Spark's own."""
    line = ".".join(spark.split(".")[:2])
    words = [word for key in _JARS for word in _SEPARATORS.split(conf.get(key, ""))]
    for artifact, each, built_for in dict.fromkeys(_artifacts([*words, *_names(jars)])):
        if built_for == line:
            yield CheckResult.ok("jars", f"{artifact} is for Spark {line}")
            continue
        there = f"take the one for Spark {line}" if line in each.tried else f"run it on Spark {' or '.join(each.tried)}"
        advice = f"{there}: headwater is tested with {each.name} on Spark {', '.join(each.tried)}"
        yield CheckResult.error("jars", f"{artifact} is for Spark {built_for}, and drivers run Spark {spark}", advice)


def _names(jars: Path | None) -> list[str]:
    return [] if jars is None else sorted(path.name for path in jars.glob("*.jar"))


def _artifacts(words: Iterable[str]) -> Iterator[tuple[str, _Format, str]]:
    for word in words:
        for each in _FORMATS:
            if (found := each.artifact.match(word)) is not None:
                yield word.removesuffix(".jar"), each, found[1]


_PATIENCE: Final = 20.0
_VERSION: Final = re.compile(r"__version__[^=]*=\s*[\"'](\d+)\.(\d+)([^\"']*)")
_ASK: Final = "import sys; sys.exit('headwater.listeners.hook' not in sys.modules)"
_INSTALL: Final = "install headwater into the Python that drivers run"


def check_installation(conf: Mapping[str, str]) -> Iterator[CheckResult]:
    place = f"for {sys.executable} ({sys.version.split()[0]})"
    yield CheckResult.ok("headwater", f"{own_version() or 'of a version that is not known'}, {place}")
    yield _hook()
    yield _pyspark()
    yield from _jars(conf)
    yield from _reflection()
    yield from _formats()
    yield from _other_python(conf)


def _hook() -> CheckResult:
    """Asked of an interpreter that starts as a driver does."""
    try:
        done = subprocess.run([sys.executable, "-c", _ASK], timeout=_PATIENCE, check=False, capture_output=True)  # noqa: S603 - ourselves
    except (OSError, subprocess.TimeoutExpired) as e:
        return CheckResult.error("hook", f"{sys.executable} can't be started: {e}", "see to this Python")
    if done.returncode == 0:
        return CheckResult.ok("hook", "drivers of this Python find headwater at their start (headwater.pth)")
    words = (
        "this Python doesn't bring headwater in at its start: headwater.pth isn't in its site-packages, or -S or "
        "-I keeps it from reading such files"
    )
    advice = f"{_INSTALL}: {sys.executable} -m pip install headwater"
    if any(".zip" in place for place in _places()):
        words = "headwater is imported from a zip, so drivers don't find it by their configuration alone"
        return CheckResult.warning("hook", words, f"call headwater.listeners.install(spark) in the job; or {advice}")
    return CheckResult.error("hook", words, advice)


def _formats() -> Iterator[CheckResult]:
    found = installed()
    yield CheckResult.ok("formats", f"asked in this order: {', '.join(plugin.name for plugin in found.plugins)}")
    for each in found.broken:
        words = f"{each.name} is left out: {each.why}"
        yield CheckResult.error("formats", words, "put it right, or uninstall what brings it: all others are at work")


def _places() -> list[str]:
    """Return where headwater is imported from."""
    return list(sys.modules["headwater"].__path__)


def _pyspark() -> CheckResult:
    place = _place_of_pyspark()
    if place is None:
        words = "there is no pyspark in this Python, so no driver runs in it as it is"
        return CheckResult.warning("pyspark", words, "run the doctor with the Python and the PYTHONPATH of a driver")
    version = _spark_version(place)
    if version is None:
        return CheckResult.warning("pyspark", f"the version of {place} can't be read")
    if (said := untested(version)) is None:
        return CheckResult.ok("pyspark", version)
    advice = "it works as far as what headwater reads is there; what isn't is named at a driver's start, and is a Gap"
    return CheckResult.warning("pyspark", said, advice)


def _place_of_pyspark() -> Path | None:
    spec = find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _spark_version(place: Path) -> str | None:
    found = _VERSION.search((place / "version.py").read_text("utf-8"))
    return None if found is None else f"{found[1]}.{found[2]}{found[3]}"


def _jars(conf: Mapping[str, str]) -> Iterator[CheckResult]:
    place = _place_of_pyspark()
    version = None if place is None else _spark_version(place)
    if place is not None and version is not None:
        yield from check_format_jars(conf, version, place / "jars")
        yield from check_compiled_classes(conf, place / "jars")


def _reflection() -> Iterator[CheckResult]:
    """Whether what headwater's Java reads by reflection is in Spark's own jars, and in formats that are beside them."""
    place = _place_of_pyspark()
    jars = None if place is None else place / "jars"
    if jars is None or not jars.is_dir():
        return
    declared, missing = _look_for_members(jars)
    words = f"{declared - len(missing)} of {declared} members that headwater reads by reflection are in {jars}"
    if not missing:
        yield CheckResult.ok("reflection", words)
        return
    advice = "each statement that needs one is a Gap: please report them with your version of Spark"
    yield CheckResult.warning("reflection", f"{words}, without {'; '.join(missing)}", advice)


@cache
def _look_for_members(jars: Path) -> tuple[int, list[str]]:
    """How many members were looked for, and which aren't there."""
    classes = Jars(sorted(jars.glob("*.jar")))
    parts = [part for part in java_parts() if classes.find(part.probe) is not None]
    members = [member for member in read_reflection(parts).members if member.is_checked]
    return len(members), [str(member) for member in members if not _is_there(member, classes)]


def _is_there(member: ReflectedMember, classes: Jars) -> bool:
    if member.is_optional and not any(classes.find(owner) for owner in member.owners):
        return True
    return any(
        classes.has(owner, name) or classes.has(owner, lazy_name(name))
        for owner in member.owners
        for name in member.names
    )


def _other_python(conf: Mapping[str, str]) -> Iterator[CheckResult]:
    """Spark lets users say which Python a driver runs; that has to be this one."""
    said = {
        "spark.pyspark.driver.python": conf.get("spark.pyspark.driver.python"),
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON"),
        "spark.pyspark.python": conf.get("spark.pyspark.python"),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON"),
    }
    key, python = next(((key, each) for key, each in said.items() if each), ("", None))
    if python is None or python in {"jupyter", "ipython"}:
        return
    found = shutil.which(python)
    if found is None:
        yield CheckResult.warning("python", f"{key} is {python}, which isn't there on this machine", _INSTALL)
    elif Path(found).absolute() != Path(sys.executable).absolute():
        words = f"drivers are run by {found} ({key}), and the doctor by {sys.executable}"
        yield CheckResult.warning("python", words, f"ask that one: {found} -m headwater.cli doctor")
