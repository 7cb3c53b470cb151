"""Resolves what a person types, `TABLE[@SNAPSHOT][.COLUMN]`, to a dataset.

A table is `catalog.database.table`, `database.table` or `table`, a path or URI, or `namespace|name`. Parts that contain
a dot stand in backticks. A snapshot is a number or the name of a tag. After `@SNAPSHOT.` comes the column. Without a
snapshot the longest prefix that names a table is the table, and the rest is the column.

If no name is spelled exactly like that, upper and lower case are the same, as for Spark, and so are the ways to compose
a letter (Unicode's NFC and NFD).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Final
from unicodedata import normalize

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, true

from headwater.errors import ConfigurationError
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import is_among, keys_for
from headwater.lineage.sql.tables import table_of

_AT: Final = re.compile(r"@(?P<snapshot>-?[0-9]+|[A-Za-z_][\w\-]*)(?:\.(?P<column>.+))?\Z", re.DOTALL)
_BEYOND: Final = 2**63
"""Table formats and stores number snapshots with 64 bits."""
_PART: Final = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_URI: Final = re.compile(r"(?P<space>[A-Za-z][\w+.\-]*://[^/]*)/?(?P<name>.*)", re.DOTALL)
_NEAR: Final = 10_000
"""How many names are searched for similar ones."""


class UnknownNameError(ConfigurationError):
    """Nothing has this name: a table, column, snapshot, branch, tag, job, run or catalog."""


class AmbiguousNameError(ConfigurationError):
    """Several tables have this name."""


@dataclass(frozen=True)
class ResolvedName:
    """What was typed, resolved."""

    dataset: Dataset
    snapshot: int | None = None
    tag: str | None = None
    column: tuple[str, ...] | None = None


def find(connection: Connection, text: str) -> ResolvedName:
    """Resolve a table, snapshot and column. Raises an error if nothing or more than one thing has this name; the
    message lists the candidates."""
    at = None if _is_place(text) and "@" not in text.rpartition("/")[2] else _AT.search(text)
    if at is not None:
        dataset = find_dataset(connection, text[: at.start()])
        column = None if at["column"] is None else parts_of(at["column"])
        tag = at["snapshot"]
        if (number := _number_of(text)) is not None:
            return ResolvedName(dataset, number, None, column)
        return ResolvedName(dataset, _tagged_snapshot(connection, dataset, tag), tag, column)
    if _is_place(text):
        return ResolvedName(find_dataset(connection, text))
    parts = parts_of(text)
    for look_up in (_by_name, _by_similar_name):
        for length in range(len(parts), 0, -1):
            found = look_up(connection, parts[:length])
            if found:
                return ResolvedName(_only(connection, text, found), column=parts[length:] or None)
    raise _unknown_name(connection, text)


def find_known(connection: Connection, table: str) -> Dataset | None:
    """Return the dataset of a table; None if the store doesn't know it."""
    try:
        return find(connection, table).dataset
    except UnknownNameError:
        return None


def find_all(connection: Connection, texts: Sequence[str]) -> list[ResolvedName]:
    """Resolve several names. Those of tables, spelled exactly, take one statement together: of their datasets only the
    keys are loaded."""
    parts = {text: found for text in texts if (found := _parts_of_table(text)) is not None}
    aliases = _aliases(connection, [*parts.values()]) if parts else ()
    keys = {text: _current([alias for alias in aliases if _has_name(alias, some)]) for text, some in parts.items()}
    certain = {text: found[0] for text, found in keys.items() if len(found) == 1}
    return [
        ResolvedName(Dataset(certain[text]), _number_of(text)) if text in certain else find(connection, text)
        for text in texts
    ]


def _aliases(connection: Connection, names: Collection[Sequence[str]]) -> Sequence[Any]:
    """Return what has or had one of these names, and others of the same tables and databases."""
    dialect = connection.dialect.name
    databases = {".".join(some[start:-1]) for some in names for start in (0, 1 if len(some) > 2 else 0)}
    given = {"tables": keys_for(dialect, sorted({some[-1] for some in names}))}
    if "" in databases:
        return connection.execute(_select_aliases(dialect, in_any_database=True), given).all()
    given["databases"] = keys_for(dialect, sorted(databases))
    return connection.execute(_select_aliases(dialect, in_any_database=False), given).all()


@cache
def _select_aliases(dialect: str, *, in_any_database: bool) -> Any:
    """Build the statement once: building conditions of each name takes longer than executing it."""
    row = table_of(t.ALIAS).c
    named = select(row.dataset, row.last, row.deleted, row.catalog, row.database_name, row.table_name)
    named = named.where(is_among(dialect, row.table_name, "tables"))
    return named if in_any_database else named.where(is_among(dialect, row.database_name, "databases"))


def _parts_of_table(text: str) -> tuple[str, ...] | None:
    """Return the parts of a name of a table, with a number or without one; None if it is anything else."""
    if _is_place(text):
        return None
    at = _AT.search(text)
    if at is not None and (at["column"] is not None or _number_of(text) is None):
        return None
    return parts_of(text if at is None else text[: at.start()])


def _number_of(text: str) -> int | None:
    at = _AT.search(text)
    if at is None or not at["snapshot"].lstrip("-").isdigit():
        return None
    number = int(at["snapshot"])
    if not -_BEYOND <= number < _BEYOND:
        raise UnknownNameError(f"{text!r}: no snapshot has a number of so many digits")
    return number


def _has_name(alias: Any, parts: Sequence[str]) -> bool:
    """Return whether a name is the one of which these are the last parts, as `_name_conditions` has it."""
    *before, table = parts
    if alias.table_name != table:
        return False
    if not before or alias.database_name == ".".join(before):
        return True
    return len(parts) > 2 and alias.catalog == parts[0] and alias.database_name == ".".join(parts[1:-1])


def find_dataset(connection: Connection, text: str) -> Dataset:
    """Resolve a table without snapshot and column."""
    if _is_place(text):
        found = _by_place(connection, text)
    else:
        parts = parts_of(text)
        found = _by_name(connection, parts) or _by_similar_name(connection, parts)
    if not found:
        raise _unknown_name(connection, text)
    return _only(connection, text, found)


def parts_of(text: str) -> tuple[str, ...]:
    """Split `a.b.c`. Parts in backticks may contain dots."""
    parts: list[str] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            break
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        position = match.end()
        if position < len(text) and text[position] == ".":
            position += 1
    if position < len(text) or not parts:
        raise UnknownNameError(f"{text!r} is no name: write catalog.database.table, database.table, a path or a URI")
    return tuple(parts)


def _is_place(text: str) -> bool:
    return "/" in text or "|" in text


def _by_place(connection: Connection, text: str) -> list[bytes]:
    """Return the datasets at a place. If nothing is spelled like that, composed letters may be spelled otherwise."""
    found = _at_place(connection, text)
    others = (normalize(form, text) for form in ("NFC", "NFD"))
    found = found or sorted({key for other in others for key in _at_place(connection, other)})
    return found or _by_end_of_path(connection, text)


def _by_end_of_path(connection: Connection, text: str) -> list[bytes]:
    """Return the datasets whose path ends with these parts: answers call a path by its end."""
    if text.startswith("/") or "|" in text or "://" in text:
        return []
    row, end = table_of(t.DATASET).c, f"/{text.rstrip('/')}"
    found = connection.execute(select(row.id, row.name).where(row.name.endswith(end, autoescape=True)))
    return [bytes(dataset.id) for dataset in found if dataset.name.rstrip("/").endswith(end)]


def _at_place(connection: Connection, text: str) -> list[bytes]:
    namespace, bar, name = text.partition("|")
    row = table_of(t.DATASET).c
    if bar:
        return list(connection.scalars(select(row.id).where(row.namespace == namespace, row.name == name)))
    uri = _URI.fullmatch(text)
    if uri is None:
        return list(connection.scalars(select(row.id).where(row.name.in_({text, text.rstrip("/"), text.strip("/")}))))
    names = {uri["name"], uri["name"].rstrip("/")}
    spelled = {spelling for name in names for spelling in (name, f"/{name}", name or "/")}
    return list(connection.scalars(select(row.id).where(row.namespace == uri["space"], row.name.in_(spelled))))


def _by_name(connection: Connection, parts: Sequence[str]) -> list[bytes]:
    """Return the tables that have this name now, or else those that had it."""
    row = table_of(t.ALIAS).c
    query = or_(*_name_conditions(row, parts))
    return _current(connection.execute(select(row.dataset, row.last, row.deleted).where(query)).all())


def _by_similar_name(connection: Connection, parts: Sequence[str]) -> list[bytes]:
    """Return the tables whose name differs in the size of letters or in how they are composed only. It reads all names:
    databases fold what isn't ASCII each in a way of its own."""
    row = table_of(t.ALIAS).c
    wanted = [_fold(part) for part in parts]
    named = (row.dataset, row.last, row.deleted, row.catalog, row.database_name, row.table_name)
    query = select(*named)
    if parts[-1].isascii():  # every database folds that
        query = query.where(func.lower(row.table_name) == parts[-1].lower())
    return _current([alias for alias in connection.execute(query) if _is_similar(alias, wanted)])


def _is_similar(alias: Any, wanted: Sequence[str]) -> bool:
    """Compare a name's end with folded parts, as `_name_conditions` does with exact ones."""
    catalog, database, table = (_fold(part or "") for part in (alias.catalog, alias.database_name, alias.table_name))
    if table != wanted[-1]:
        return False
    if len(wanted) == 1 or database == ".".join(wanted[:-1]):
        return True
    return len(wanted) > 2 and catalog == wanted[0] and database == ".".join(wanted[1:-1])


def _fold(text: str) -> str:
    return normalize("NFC", normalize("NFC", text).casefold())


def _current(found: Collection[Any]) -> list[bytes]:
    """Return the datasets that have a name now, or else those that had it."""
    now = {bytes(tag.dataset) for tag in found if tag.last > tag.deleted}
    return sorted(now or {bytes(tag.dataset) for tag in found})


def _name_conditions(row: Any, parts: Sequence[str]) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions for a name. Nested namespaces are one database name with dots."""
    yield and_(row.table_name == parts[-1], row.database_name == ".".join(parts[:-1]) if parts[:-1] else true())
    if len(parts) > 2:
        database = ".".join(parts[1:-1])
        yield and_(row.table_name == parts[-1], row.database_name == database, row.catalog == parts[0])


def _only(connection: Connection, text: str, found: Sequence[bytes]) -> Dataset:
    several = load_datasets(connection, found)
    if len(several) == 1:
        return several[found[0]]
    listed = ", ".join(sorted(f"{dataset.label} ({dataset.namespace}|{dataset.name})" for dataset in several.values()))
    raise AmbiguousNameError(f"{text!r} is the name of several tables: {listed}; name the one that is meant in full")


def _unknown_name(connection: Connection, text: str) -> UnknownNameError:
    near = list(_near(connection, text))
    hint = f"did you mean {' or '.join(near)}?" if near else "nothing of a like name is there either"
    return UnknownNameError(f"the store knows no table {text!r}; {hint}")


def _near(connection: Connection, text: str) -> Iterator[str]:
    row, place = table_of(t.ALIAS).c, table_of(t.DATASET).c
    if _is_place(text):
        known = {
            f"{near[0]}/{near[1].lstrip('/')}"
            for near in connection.execute(select(place.namespace, place.name).limit(_NEAR))
        }
        parts = text.count("/") + 1
        spelled = {"/".join(spelling.split("/")[-parts:]): spelling for spelling in known} | {
            spelling: spelling for spelling in known
        }
        yield from dict.fromkeys(spelled[spelling] for spelling in get_close_matches(text, spelled, 3))
        return
    names = select(row.catalog, row.database_name, row.table_name).where(row.last > row.deleted).limit(_NEAR)
    full = {".".join(filter(None, parts)) for parts in connection.execute(names)}
    short = {name.split(".", 1)[-1]: name for name in full}
    last = {name.rpartition(".")[2]: name for name in full}
    spelled = {**last, **short, **{name: name for name in full}}
    yield from dict.fromkeys(spelled[spelling] for spelling in get_close_matches(text, spelled, 5, 0.7))


def _tagged_snapshot(connection: Connection, dataset: Dataset, tag: str) -> int:
    row = table_of(t.TAG).c
    query = select(row.tag, row.snapshot, row.last, row.deleted).where(row.dataset == dataset.key)
    there = {tag.tag: tag.snapshot for tag in connection.execute(query) if tag.last > tag.deleted}
    if there.get(tag) is None:
        known = f"it has the tags {', '.join(sorted(there))}" if there else "no tag of it is known"
        branch = (
            "main is the branch that a table's name means: leave @main out"
            if tag == "main"
            else "if it is a branch, name the branch by --branch where a command has that, or a snapshot by its number"
        )
        raise UnknownNameError(f"{dataset.label} has no tag {tag!r}, {known}; {branch}")
    return int(there[tag])
