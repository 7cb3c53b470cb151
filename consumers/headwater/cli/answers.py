"""What commands that ask a store have in common: the store they ask, and how they give an answer."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput
from headwater.cli.store import open_given_store
from headwater.consumers.tuning import tune_garbage_collection
from headwater.events.names import JobName

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from sqlalchemy import Connection

    from headwater.lineage.questions import Answer, AnswerLimit

A_TABLE: Final = "catalog.database.table, database.table, a path or a URI"


@contextmanager
def open_connection(given: Namespace) -> Generator[Connection, None, None]:
    """Open the store for reading. An error that the database has meanwhile is one of ours."""
    from headwater.lineage.sql.errors import translate_errors  # noqa: PLC0415

    tune_garbage_collection()
    with open_given_store(given) as store, translate_errors(store.target.words), store.engine.connect() as connection:
        yield connection


def give(
    given: Namespace,
    output: CommandOutput,
    name: str,
    answer: Answer[Any],
    *,
    columns: Sequence[str],
    row: Callable[[Any], Sequence[object]],
    title: str = "",
) -> None:
    """Give the rows, as many as `--limit` lets, and how far they can be believed."""
    output.table(name, columns, [row(each) for each in answer.rows[: given.limit]], title)
    limits = list(limit_texts(answer))
    if len(answer.rows) > given.limit:
        limits.append(f"CUT of {len(answer.rows)} rows: these are the first {given.limit}; --limit shows more")
    fields: dict[str, object] = {"complete until": answer.complete_until, "partial because": limits}
    if not limits:
        del fields["partial because"]
    output.record("reliability", fields, "How far this goes")


def limit_texts(answer: Answer[Any]) -> Iterator[str]:
    """Yield why an answer may be incomplete, each reason as a line."""
    yield from limit_texts_of(answer.limits)


def limit_texts_of(limits: Iterable[AnswerLimit]) -> Iterator[str]:
    """Yield each limit as a line."""
    for limit in limits:
        yield f"{limit.why.value} of {limit.about}" + (f": {limit.detail}" if limit.detail else "")


def add_table(parser: Flags) -> None:
    """Add the word that names a table."""
    parser.word("table", str, A_TABLE, "TABLE")


def add_namespace(parser: Flags) -> None:
    """Add the flag for jobs of another namespace than the default one."""
    parser.flag("job-namespace", str, None, "the job's namespace, where it isn't the default one", "NAMESPACE")


def job_of(given: Namespace, name: str | None) -> JobName | None:
    """Return the job of this name."""
    return None if name is None else JobName(namespace=given.job_namespace, name=name)


def snapshot_text(snapshot: int | str | None) -> str | None:
    """Return a snapshot's number as text: programs that count in floating point would round it."""
    return None if snapshot is None else str(snapshot)
