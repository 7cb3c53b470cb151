"""What all of these commands have in common: the store they ask, and how an answer looks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import OUTPUTS, Output
from headwater.cli.store import add_store, opened
from headwater.config.units import seconds_of
from headwater.events.names import JobName

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from sqlalchemy import Connection

    from headwater.lineage.questions import Answer


def flags_of(command: str, words: str, epilog: str | None = None) -> Flags:
    parser = Flags(f"headwater {command}", words, epilog)
    add_store(parser)
    parser.flag("format", one_of(OUTPUTS), None, "how results look, as --output before the command", "{text,json}")
    return parser


def output_of(given: Namespace, output: Output) -> Output:
    return output if given.format is None else OUTPUTS[given.format]()


@contextmanager
def asked(given: Namespace) -> Generator[Connection, None, None]:
    with opened(given) as store, store.engine.connect() as connection:
        yield connection


def give(
    output: Output, title: str, columns: Sequence[str], answer: Answer[Any], row: Callable[[Any], Sequence[object]]
) -> int:
    """The rows, and how far they can be believed."""
    output.table(title, columns, [list(map(plain, row(each))) for each in answer])
    fields: dict[str, object] = {"complete until": time_text(answer.complete_until)}
    if answer.limits:
        fields["partial because"] = "; ".join(_limits(answer))
    output.record("How far this goes", fields)
    return Exit.DONE


def _limits(answer: Answer[Any]) -> Iterator[str]:
    for limit in answer.limits:
        yield f"{limit.why.value} of {limit.about}" + (f": {limit.detail}" if limit.detail else "")


def plain(value: object) -> object:
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, timedelta):
        return span_text(value)
    if isinstance(value, bool):
        return "yes" if value else None
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or None
    return value


def time_text(moment: datetime | None) -> str | None:
    """In UTC, to the second."""
    if moment is None:
        return None
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def span_text(span: timedelta | None) -> str | None:
    """Its two greatest units: 3 d 4 h, 2 min 5 s."""
    if span is None:
        return None
    seconds = int(span.total_seconds())
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    first = next((place for place, (number, _) in enumerate(parts) if number), len(parts) - 1)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number or unit == "s")


def moment(text: str) -> datetime:
    """A time, or how long ago it is: 2026-03-01T12:00, 90d, 2 h."""
    try:
        found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        return datetime.now(timezone.utc) - timedelta(seconds=_ago(text))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _ago(text: str) -> float:
    try:
        return seconds_of(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time: write 2026-03-01T12:00 (in UTC), or how long ago it is, 90d") from None


def add_job(parser: Flags) -> None:
    parser.flag("job-namespace", str, None, "the job's namespace, where it isn't the default one", "NAMESPACE")


def job_of(given: Namespace, name: str | None) -> JobName | None:
    return None if name is None else JobName(namespace=given.job_namespace, name=name)


def number(text: str) -> int:
    if not text.strip().isdigit() or int(text) < 1:
        raise ValueError(f"{text!r} is no number of rows: write 1 or more")
    return int(text)
