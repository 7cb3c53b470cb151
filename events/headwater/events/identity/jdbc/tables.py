"""What stands in `dbtable`: a table's name as the database reads it, or something that isn't one table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from headwater.events.identity.jdbc.dialects import USER, Dialect, Fold, Level
from headwater.events.identity.text import Unknown

_CLOSING = {'"': '"', "`": "`", "[": "]"}
_TAIL = re.compile(r"(?:\s+(?:as\s+)?[\w$#\"`]+)?(?:\s+with\s*\([\w\s,]*\))?\s*", re.IGNORECASE)
_PROXY_USER = re.compile(r"[^\[\]]*\[([^\[\]]+)\]")


def parts_of(dbtable: str, dialect: Dialect, fold: Fold) -> tuple[str, ...] | Unknown:
    """The parts of a plain table name, folded as the database does; an empty part stands for a default."""
    text = dbtable.strip()
    part = _part(dialect.quotes, dialect.dashes)
    found: list[str] = []
    position = 0
    while match := part.match(text, position):
        found.append(_read(match[1], dialect, fold))
        position = match.end()
        if not match[2]:
            break
    else:
        return _no_table()
    if not found[-1] or not _TAIL.fullmatch(text, position):
        return _no_table()
    if found[-1].startswith("#") and dialect.name == "mssql":
        return Unknown(reason="a temporary table (#…) belongs to one connection only")
    return tuple(".".join(found).split(".")) if dialect.name == "bigquery" else tuple(found)


def qualified(
    parts: Sequence[str], dialect: Dialect, known: Mapping[Level, str | None], user: str | None, fold: Fold
) -> tuple[tuple[str, ...], tuple[str, ...]] | Unknown:
    """All levels of a table's name, and which of them are only assumed."""
    if not dialect.levels:
        return (*([known["database"]] if known["database"] else []), *parts), ()
    if len(parts) > len(dialect.levels):
        return Unknown(reason=f"a name of {len(parts)} parts is on another server or in another catalog")
    given = dict(zip(reversed(dialect.levels), reversed(parts), strict=False))
    full: list[str] = []
    assumed: list[str] = []
    for level in dialect.levels:
        name = given.get(level) or known.get(level)
        if not name:
            name = _default(dialect.defaults.get(level), user, fold)
            assumed.append(f"{level} {name}")
        if name is None:
            return Unknown(reason=f"the {level} isn't given by url or table name; write dbtable as {_form(dialect)}")
        full.append(name)
    return tuple(full), tuple(assumed)


def folded(text: str, fold: Fold) -> str:
    """Lower case touches ASCII only, as PostgreSQL does; upper case every letter that stays one."""
    if fold == "lower":
        return "".join(c.lower() if c.isascii() else c for c in text)
    if fold == "upper":
        return "".join(c.upper() if len(c.upper()) == 1 else c for c in text)
    return text


def unquoted(text: str, fold: Fold) -> str:
    """A name out of an option: in double quotes as it is, else folded."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else folded(text, fold)


@lru_cache(maxsize=16)
def _part(quotes: str, dashes: bool) -> re.Pattern[str]:
    """One part and the dot behind it, if there is one."""
    pairs = [(re.escape(opening), re.escape(_CLOSING[opening])) for opening in quotes]
    quoted = [f"{opening}(?:[^{closing}]|{closing * 2})+{closing}" for opening, closing in pairs]
    plain = r"[\w$#-]*" if dashes else r"[\w$#]*"
    return re.compile(rf"({'|'.join([*quoted, plain])})(\s*\.\s*)?", re.DOTALL)


def _read(token: str, dialect: Dialect, fold: Fold) -> str:
    closing = _CLOSING.get(token[:1])
    if closing is None:
        return folded(token, fold)
    name = token[1:-1].replace(closing * 2, closing)
    return folded(name, fold) if dialect.folds_quoted else name


def _default(default: str | None, user: str | None, fold: Fold) -> str | None:
    if default != USER:
        return default
    if user is None:
        return None
    proxied = _PROXY_USER.fullmatch(user)
    name = proxied[1] if proxied else user
    return unquoted(name, fold) or None


def _form(dialect: Dialect) -> str:
    return ".".join(dialect.levels)


def _no_table() -> Unknown:
    return Unknown(reason="dbtable isn't a plain table name but a query, which may read several tables", query=True)
