"""What of a path is no part of the dataset: partition directories and globs. Taken off on demand, never silently."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.events.names import DatasetId

_META = re.compile(r"[*?\[\]{}\\]")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """A part of a dataset: the path below its root, and the partition values that the path tells."""

    dataset: DatasetId
    path: str
    partition: tuple[tuple[str, str | None], ...] = ()


def under_root(part: DatasetId, root: DatasetId) -> Subset | None:
    """`part` as a subset of the table at `root`; None if it lies elsewhere. The table itself has the path ''."""
    if part == root:
        return Subset(dataset=root, path="")
    base = "" if root.name == "/" else root.name
    start = len(base) if part.name.startswith(base + "/") else 0 if not base else None
    if part.namespace != root.namespace or start is None:
        return None
    path = part.name[start:].removeprefix("/")
    return Subset(dataset=root, path=path, partition=_values(path))


def glob_root(path: str) -> tuple[str, str | None]:
    """The directory above the first wildcard, and the pattern below it (None: the path has no wildcard).

    For a reader's `path` only: in a table's location the same characters are part of the name.
    """
    meta = _META.search(path)
    if meta is None:
        return path, None
    cut = path.rfind("/", 0, meta.start()) + 1
    return path[:cut], path[cut:]


def _values(path: str) -> tuple[tuple[str, str | None], ...]:
    """The leading `key=value` directories, unescaped as Hive escaped them."""
    values: list[tuple[str, str | None]] = []
    for step in path.split("/"):
        key, equals, value = step.partition("=")
        if not equals or not key:
            break
        values.append((_unescaped(key), None if value == _NO_VALUE else _unescaped(value)))
    return tuple(values)


def _unescaped(text: str) -> str:
    """One character per escape: Hive escapes single ASCII characters, and leaves all others as they are."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
