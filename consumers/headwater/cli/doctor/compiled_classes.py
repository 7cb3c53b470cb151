"""Where a driver has our Java classes from: class files of the wheel, those that an earlier driver compiled, or the
compiler, with which its start takes seconds more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile

from headwater.jvm.bundled import JarIdentities, find_bundled
from headwater.jvm.cache import ArchiveCache, path_of
from headwater.jvm.last_start import read_last_start
from headwater.jvm.loader import ClassOrigin
from headwater.listeners.capture.formats import java_parts
from headwater.listeners.capture.jvm import source_groups
from headwater.local import MissingRequirementError, java
from headwater.spi import CheckResult

_SUBJECT: Final = "class files"
_WAYS: Final = {
    ClassOrigin.WHEEL: "had the wheel's class files",
    ClassOrigin.CACHE: "had class files that an earlier one compiled",
    ClassOrigin.COMPILER: "compiled its classes",
}


def check_compiled_classes(conf: Mapping[str, str], jars: Path) -> Iterator[CheckResult]:
    """Yield what a driver with Spark's jars of this directory would use, and what the last one here did use."""
    yield _expected(conf, jars)
    last = read_last_start()
    if last is not None:
        what = f"{last.application} (Spark {last.spark}, Java {last.java}, {last.time})"
        yield CheckResult.ok(_SUBJECT, f"the last driver here, {what}, {_WAYS[last.origin]}")


def _expected(conf: Mapping[str, str], jars: Path) -> CheckResult:
    if _are_in_wheel(_ClassPath(conf, jars)):
        return CheckResult.ok(_SUBJECT, "a driver opens those of this wheel, and compiles nothing")
    cache = ArchiveCache()
    try:
        count = cache.count()
    except OSError as e:
        words = f"this wheel has none for these jars, and each driver compiles at its start, as none can be kept: {e}"
        return CheckResult.warning(_SUBJECT, words, "set HEADWATER_CACHE to a directory of your own that stays")
    words = (
        "this wheel has none for these jars: a driver opens those that one before it kept, or compiles and keeps them"
    )
    return CheckResult.ok(_SUBJECT, f"{words} ({count} archives in {cache.root})")


class _ClassPath:
    """Spark's jars, and the configuration's that are on this machine; packages are where Ivy has put them."""

    def __init__(self, conf: Mapping[str, str], jars: Path) -> None:
        packages = [each.strip() for each in conf.get("spark.jars.packages", "").split(",") if each.strip()]
        ivy = Path(conf.get("spark.jars.ivy") or Path.home() / ".ivy2") / "jars"
        resolved = [ivy / f"{'_'.join(each.split(':')[:2])}-{each.split(':')[-1]}.jar" for each in packages]
        named = [*conf.get("spark.jars", "").split(","), *conf.get("spark.driver.extraClassPath", "").split(":")]
        self._named = [*jars.glob("*.jar"), *(path_of(each.strip()) for each in named if each.strip()), *resolved]
        self._needed = list(ivy.glob("*.jar")) if packages else []
        """What packages need is among them, by names that only Ivy knows."""

    @property
    def identities(self) -> JarIdentities:
        return JarIdentities([*self._named, *self._needed])

    def places(self, classes: Iterable[str]) -> dict[str, Path]:
        """Return the jars that these classes are in, of those that are in one."""
        entries = {f"{each.replace('.', '/')}.class": each for each in classes}
        found: dict[str, Path] = {}
        for path in self._named:
            with suppress(OSError, BadZipFile), ZipFile(path) as archive:
                for entry in entries.keys() & archive.NameToInfo.keys():
                    found.setdefault(entries[entry], path)
        return found


def _are_in_wheel(class_path: _ClassPath) -> bool:
    """Whether this wheel has class files for all that a driver has of ours; no where no Java says its version."""
    parts = java_parts()
    places = class_path.places(part.probe for part in parts)
    groups = source_groups([part for part in parts if part.probe in places])
    try:
        release = java().version
    except MissingRequirementError:
        return False
    identities, shared = class_path.identities, groups[0].sources
    return all(
        each.probe in places and find_bundled(each.digest(shared), release, places[each.probe], identities)
        for each in groups
    )
