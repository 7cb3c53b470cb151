"""What the classes in jars are and what they descend from, read off the class files: no JVM is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZipFile

from headwater.cli.doctor.class_files import ClassHeader, parse_header


def classes_in(jars: Iterable[Path]) -> dict[str, ClassHeader]:
    """All classes by their names, with dots."""
    return {each.name: each for jar in jars for each in _of_jar(jar)}


def descendants(classes: dict[str, ClassHeader], ancestor: str) -> set[str]:
    """The classes that can be instantiated and descend from this one."""
    below = {ancestor}
    grown = True
    while grown:
        more = {name for name, each in classes.items() if name not in below and below.intersection(each.parents)}
        grown = bool(more)
        below |= more
    return {name for name in below if name in classes and not classes[name].is_abstract}


def _of_jar(jar: Path) -> Iterator[ClassHeader]:
    with ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".class") and not name.endswith("module-info.class"):
                yield parse_header(archive.read(name))
