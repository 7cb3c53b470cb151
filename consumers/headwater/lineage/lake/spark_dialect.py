"""Spark's SQL for SQLAlchemy, as far as questions need it: statements that read, each of which is a job of a session.

Values are written into the text as literals, because hundreds of hashes as parameters of `spark.sql` take longer than
the statement. A text is a literal of bytes unless all of its characters are harmless, so neither quotes nor
backslashes nor `${…}` in it mean anything to Spark. A table stands in a compiled statement as a mark, which is replaced
by what the connection reads of it when the statement is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import Engine
from sqlalchemy.dialects import registry
from sqlalchemy.sql.compiler import IdentifierPreparer, SQLCompiler

from headwater.errors import HeadwaterError
from headwater.lineage.lake.dbapi import FetchedResult, ReadConnection, ReadDialect, read_engine
from headwater.lineage.lake.formats import SqlSession

NAME: Final = "spark"
_HARMLESS: Final = re.compile(r"[A-Za-z0-9_ .,:/@+-]*")
_MARK: Final = re.compile(r"`headwater table (\w+)`")


Relation: TypeAlias = Callable[[str], str]
"""Returns what stands behind FROM for a table's name."""


class SparkError(Exception):
    """A statement failed in Spark."""


class SparkUnavailableError(SparkError):
    """The session was stopped, or its driver can't be reached."""


_GONE: Final = ("Py4JNetworkError", "ConnectionRefusedError", "SparkConnectGrpcException")


class _Module:
    """Spark as SQLAlchemy wants a module of the DB-API."""

    paramstyle = "format"
    Error = SparkError
    OperationalError = SparkUnavailableError
    Binary = bytes


class _SparkIdentifiers(IdentifierPreparer):
    """Quotes names by backticks."""

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`", escape_quote="`")


class _SparkCompiler(SQLCompiler):
    """Marks the tables of a statement."""

    def visit_table(self, table: Any, *arguments: Any, **options: Any) -> Any:
        text = super().visit_table(table, *arguments, **options)  # type: ignore[no-untyped-call]  # SQLAlchemy's
        if not text:
            return text
        alias = options.get("enclosing_alias")
        mark = f"`headwater table {table.name}`"
        return mark if alias is not None and alias.element is table else f"{mark} AS {self.preparer.quote(table.name)}"

    def limit_clause(self, select: Any, **options: Any) -> str:
        """Cast the numbers, which are literals of BIGINT: LIMIT takes INT alone."""
        given = (("LIMIT", select._limit_clause), ("OFFSET", select._offset_clause))  # noqa: SLF001 - as dialects do
        words = (
            f"\n {word} CAST({self.process(bound, **options)} AS INT)" for word, bound in given if bound is not None
        )
        return "".join(words)


class SparkDialect(ReadDialect):
    """Statements and expressions in Spark's SQL."""

    name = NAME
    driver = "spark"
    module = _Module
    default_paramstyle = "format"
    preparer = _SparkIdentifiers  # type: ignore[assignment]  # SQLAlchemy annotates the instance's class only
    statement_compiler = _SparkCompiler
    dbapi_exception_translation_map = {SparkUnavailableError.__name__: "OperationalError"}  # noqa: RUF012 - SQLAlchemy's own
    supports_statement_cache = True
    tuple_in_values = False


registry.register(NAME, __name__, SparkDialect.__name__)


def spark_engine(session: SqlSession, relations: Callable[[], Relation]) -> Engine:
    """Return an engine over a session. `relations` is called for each connection."""
    return read_engine(NAME, lambda: _connection(session, relations()))


def _connection(session: SqlSession, relation: Relation) -> ReadConnection:
    """Return a connection that leaves the session open when it is closed: the session belongs to the caller."""

    def run(statement: str, parameters: Sequence[Any]) -> FetchedResult:
        text = statement % tuple(map(literal, parameters))
        try:
            frame = session.sql(_MARK.sub(lambda mark: relation(mark[1]), text))
            names, rows = frame.columns, frame.collect()
        except HeadwaterError:
            raise
        except Exception as e:  # of any class: Spark's differ between a session of one's own and Connect
            raise _error_of(e) from e
        return [(name, *[None] * 6) for name in names], [tuple(map(_plain, row)) for row in rows]

    return ReadConnection(run)


def literal(value: Any) -> str:
    """Return a value as text of Spark's SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"{value}L"  # without it structs of INT and of BIGINT can't be compared
    if isinstance(value, bytes | bytearray | memoryview):
        return f"X'{bytes(value).hex()}'"
    text = str(value)
    return f"'{text}'" if _HARMLESS.fullmatch(text) else f"CAST(X'{text.encode().hex()}' AS STRING)"


def _error_of(error: Exception) -> SparkError:
    is_gone = type(error).__name__ in _GONE or "stopped SparkContext" in str(error)
    return (SparkUnavailableError if is_gone else SparkError)(f"{type(error).__name__}: {error}")


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
