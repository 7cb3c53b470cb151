"""Translates database errors to our own: the type tells whether a retry can help, the message what to do.

    with translate_errors("postgresql://db/lineage"):
        …

A loop decides on a retry by `TransientError` or `TerminalError` alone.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy.exc import DBAPIError, InvalidRequestError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError


class StoreUnreachableError(TransientError):
    """The server doesn't answer, or the connection broke. The transaction was rolled back."""


class StoreBusyError(TransientError):
    """Another session holds a lock that is needed."""


class StoreFullError(TransientError):
    """The database has no disk space left."""


class StoreAccessError(ConfigurationError):
    """The database doesn't exist, or it refuses this user or password."""


class StoreRightsError(TerminalError):
    """This user lacks a right."""


class StoreSchemaError(TerminalError):
    """This version of headwater can't work with the store's tables."""


class StoreDataError(TerminalError):
    """The database refuses a value in a row. Other rows aren't affected."""


class StoreBrokenError(TerminalError):
    """An unexpected error. The message has the database's own text."""


_ADVICE: Final[dict[type[HeadwaterError], str]] = {
    StoreUnreachableError: "is it running, and are host and port right? What wasn't committed is undone; try again",
    StoreBusyError: "try again",
    StoreFullError: "make room where the database keeps its data, and try again; what wasn't committed is undone",
    StoreAccessError: "look at jdbc.url, jdbc.username and jdbc.password",
    StoreRightsError: "use a user who may, or ask an administrator for the right (docs/store.md, roles)",
    StoreSchemaError: "`headwater store status` shows which version is there; restart what began before it changed",
    StoreDataError: "it is the row that is wrong, not the store",
    StoreBrokenError: "the database's own words say what it is",
}
_SQLSTATES: Final[tuple[tuple[str, type[HeadwaterError]], ...]] = (
    ("57014", StoreBusyError),
    ("57", StoreUnreachableError),
    ("08", StoreUnreachableError),
    ("53100", StoreFullError),
    ("53300", StoreUnreachableError),
    ("53", StoreFullError),
    ("58030", StoreFullError),
    ("40", StoreBusyError),
    ("55P03", StoreBusyError),
    ("42501", StoreRightsError),
    ("25006", StoreRightsError),
    ("25P03", StoreUnreachableError),
    ("28", StoreAccessError),
    ("3D000", StoreAccessError),
    ("3F000", StoreSchemaError),
    ("42P01", StoreSchemaError),
    ("42703", StoreSchemaError),
    ("22", StoreDataError),
    ("23", StoreDataError),
    ("54", StoreDataError),
)
_NUMBERS: Final[dict[type[HeadwaterError], frozenset[int]]] = {
    StoreUnreachableError: frozenset(
        {1040, 1053, 1077, 1129, 1203, 1226, 1927, 2002, 2003, 2005, 2006, 2013, 2014, 2055}
    ),
    StoreBusyError: frozenset({1205, 1213, 1317, 1614, 1969, 3024, 3572}),
    StoreFullError: frozenset({1021, 1026, 1114, 3019}),
    StoreAccessError: frozenset({1044, 1045, 1049, 1130, 1251, 1524, 1698, 2026, 2061}),
    StoreRightsError: frozenset({1142, 1143, 1227, 1290, 1370, 1792, 1836}),
    StoreSchemaError: frozenset({1054, 1146}),
    StoreDataError: frozenset(
        {1048, 1062, 1118, 1153, 1264, 1265, 1292, 1366, 1367, 1406, 1451, 1452, 1690, 3140, 3988}
    ),
}
"""Error numbers of MySQL and MariaDB."""
_WORDS: Final[tuple[tuple[str, type[HeadwaterError]], ...]] = (
    (
        r"authentication failed|no password supplied|no pg_hba\.conf entry|role .* (does not exist|is not permitted)",
        StoreAccessError,
    ),
    (
        r"database .* does not exist|permission denied for database|invalid .* value: |invalid connection option",
        StoreAccessError,
    ),
    (r"file is not a database|unable to open database file", StoreAccessError),
    (r"database (table )?is locked|schema is locked", StoreBusyError),
    (r"database or disk is full|No space left on device|disk I/O error", StoreFullError),
    (r"readonly database|query_only", StoreRightsError),
    (r"no such (table|column)|has no column", StoreSchemaError),
    (r"constraint failed|datatype mismatch|too big|NUL", StoreDataError),
)
"""Patterns of messages, for errors without a code: those of SQLite, and PostgreSQL's before a session starts."""


@contextmanager
def translate_errors(where: str = "the store") -> Generator[None]:
    """Raise SQLAlchemy's errors as ours."""
    try:
        yield
    except SQLAlchemyError as error:
        raise translate_error(error, where) from error


def translate_error(error: BaseException, where: str = "the store") -> HeadwaterError:
    """Return our error for an error of SQLAlchemy. Our own errors are returned unchanged."""
    if isinstance(error, HeadwaterError):
        return error
    kind = error_class_of(error)
    return kind(f"{where}: {error_message(error)}: {_ADVICE[kind]}")


def error_class_of(error: BaseException) -> type[HeadwaterError]:
    if isinstance(error, PoolTimeoutError):
        return StoreBusyError
    if not isinstance(error, DBAPIError):
        return StoreDataError if isinstance(error, StatementError) and error.orig is not None else StoreBrokenError
    if "violates partition constraint" in _message(error):
        return StoreBusyError  # a partition was made under it: the same goes into that one
    return _by_sqlstate(error) or _by_number(error) or _by_words(error) or (_by_class(error))


def error_message(error: BaseException) -> str:
    """Return the database's message, without the statement and without values."""
    if isinstance(error, InvalidRequestError | PoolTimeoutError) or not isinstance(error, StatementError):
        return _first_line(str(error))
    return _first_line(_message(error))


def _by_sqlstate(error: DBAPIError) -> type[HeadwaterError] | None:
    state = getattr(error.orig, "sqlstate", None)
    if not isinstance(state, str):
        return None
    return next((kind for prefix, kind in _SQLSTATES if state.startswith(prefix)), None)


def _by_number(error: DBAPIError) -> type[HeadwaterError] | None:
    arguments: tuple[Any, ...] = getattr(error.orig, "args", ())
    number = arguments[0] if arguments else None
    if not isinstance(number, int):
        return None
    if number == 1030 and "28" in str(arguments[-1]):  # the file system is full
        return StoreFullError
    return next((kind for kind, numbers in _NUMBERS.items() if number in numbers), None)


def _by_words(error: DBAPIError) -> type[HeadwaterError] | None:
    message = _message(error)
    return next((kind for pattern, kind in _WORDS if re.search(pattern, message)), None)


def _by_class(error: DBAPIError) -> type[HeadwaterError]:
    if error.connection_invalidated:
        return StoreUnreachableError
    name = type(error).__name__
    if name in {"DataError", "IntegrityError"}:
        return StoreDataError
    return StoreUnreachableError if name in {"OperationalError", "InterfaceError"} else StoreBrokenError


def _message(error: StatementError) -> str:
    orig = error.orig
    arguments: tuple[Any, ...] = getattr(orig, "args", ())
    return str(arguments[1]) if len(arguments) == 2 and isinstance(arguments[0], int) else str(orig)


def _first_line(text: str) -> str:
    """Return the first line: PostgreSQL's further lines can contain values. If several hosts were tried, each has a
    line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    head = lines[0] if lines else "no words"
    if head.endswith("Multiple connection attempts failed. All failures were:"):
        head = "; ".join(lines)
    return head.rstrip(".:")
