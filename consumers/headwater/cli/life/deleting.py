"""`headwater delete-table-lineage`, `headwater delete-data-lineage`, `headwater expire`, `headwater purge`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from getpass import getuser
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from headwater.cli.asking.giving import add_job, flags_of, job_of, moment, output_of, time_text
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.life.telling import add_bus, confirmed, tell
from headwater.cli.output import OUTPUTS, Output
from headwater.cli.store import opened
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.events.administration import LineageDeleted
    from headwater.events.names import CatalogId

T = TypeVar("T")


def delete_table_lineage(arguments: Sequence[str], output: Output) -> int:
    """Delete which tables a job reads and writes, all of its steps included. Data lineage stays, and so does what runs
    tell from now on."""
    return _delete("delete-table-lineage", "TABLES", str(delete_table_lineage.__doc__), arguments, output)


def delete_data_lineage(arguments: Sequence[str], output: Output) -> int:
    """Delete which snapshots a job read and made, all of its steps included. Table lineage stays, and so does what runs
    tell from now on."""
    return _delete("delete-data-lineage", "DATA", str(delete_data_lineage.__doc__), arguments, output)


def _delete(command: str, scope: str, words: str, arguments: Sequence[str], output: Output) -> int:
    from headwater.events.administration import LineageScope  # noqa: PLC0415
    from headwater.lineage.life import delete_job  # noqa: PLC0415

    parser = _flags(command, words)
    add_job(parser)
    parser.flag("job", str, None, "the job, an application or a block with all of its steps", "NAME")
    parser.flag("run", UUID, None, "only what this run told", "UUID")
    parser.flag("before", moment, None, "only what was told before (default: now)", "TIME")
    given = parser.parse_args(arguments)
    job = job_of(given, given.job)
    if job is None:
        raise ConfigurationError("which job? Name it by --job")
    before = given.before or datetime.now(timezone.utc)
    draft = delete_job(LineageScope(scope), job, before=before, run=given.run, by=getuser())
    return _carry_out(given, draft, output_of(given, output))


def expire(arguments: Sequence[str], output: Output) -> int:
    """Let data lineage expire by its age, or with the snapshots that have expired. Table lineage stays. What is told
    late of that time is refused as well; answers say up to when data lineage is gone."""
    from headwater.lineage.life import expire_before, expire_snapshots  # noqa: PLC0415

    parser = _flags("expire", str(expire.__doc__))
    parser.flag("older-than", moment, None, "all that is older, 90d say", "AGE")
    parser.flag("catalog", str, None, "only what concerns tables of this catalog, by its name", "NAME")
    parser.flag("dataset", str, None, "instead: only what concerns this table …", "TABLE")
    parser.flag("up-to-snapshot", _snapshot, None, "… up to this snapshot of it", "SNAPSHOT")
    given = parser.parse_args(arguments)
    if (given.older_than is None) is (given.dataset is None):
        raise ConfigurationError("say --older-than AGE, or --dataset TABLE with --up-to-snapshot SNAPSHOT")
    if given.dataset is None:
        catalog = None if given.catalog is None else _in_store(given, _catalog)
        draft = expire_before(given.older_than, catalog=catalog, by=getuser())
        return _carry_out(given, draft, output_of(given, output))
    if given.up_to_snapshot is None:
        raise ConfigurationError("up to which snapshot of it? Name it by --up-to-snapshot")

    def drafted(connection: Connection, _: Namespace) -> LineageDeleted:
        from headwater.events.names import DatasetId  # noqa: PLC0415
        from headwater.lineage.questions.names import find_dataset  # noqa: PLC0415

        found = find_dataset(connection, given.dataset)
        dataset = DatasetId(namespace=found.namespace, name=found.name)
        now = datetime.now(timezone.utc)
        return expire_snapshots(connection, dataset, given.up_to_snapshot, before=now, by=getuser())

    return _carry_out(given, _in_store(given, drafted), output_of(given, output))


def purge(arguments: Sequence[str], output: Output) -> int:
    """Remove from the disk what was deleted or has expired. Nothing that is visible changes."""
    from headwater.lineage.life import purge as purged  # noqa: PLC0415

    given = flags_of("purge", str(purge.__doc__)).parse_args(arguments)
    with opened(given, readonly=False) as store:
        gone = purged(store.engine)
    rows = [("commits", gone.commits), ("reads", gone.reads), ("writes", gone.writes), ("edges", gone.edges)]
    output_of(given, output).table("Removed", ("rows of", "number"), rows)
    return Exit.DONE


def _flags(command: str, words: str) -> Flags:
    parser = Flags(f"headwater {command}", words)
    add_bus(parser)
    parser.flag("format", one_of(OUTPUTS), None, "how results look, as --output before the command", "{text,json}")
    parser.switch("dry-run", "only say how much it would hide")
    parser.switch("yes", "don't ask")
    return parser


def _in_store(given: Namespace, question: Callable[[Connection, Namespace], T]) -> T:
    with opened(given) as store, store.engine.connect() as connection:
        return question(connection, given)


def _carry_out(given: Namespace, draft: LineageDeleted, output: Output) -> int:
    count = _hidden(given, draft)
    shown = {
        "job": draft.of_job,
        "run": draft.of_run,
        "dataset": draft.dataset,
        "up to snapshot": draft.up_to_snapshot,
        "catalog": draft.catalog.location if draft.catalog else None,
        "told before": time_text(draft.before),
        "facts that it hides": count,
    }
    output.record(_title(draft), {name: value for name, value in shown.items() if value is not None})
    if given.dry_run:
        output.note("nothing was done")
        return Exit.DONE
    many = "how many facts it hides isn't known without --store" if count is None else f"{count} facts will be hidden"
    if not confirmed(given, f"{many}: delete them?"):
        output.note("nothing was done")
        return Exit.FAILED
    output.note(tell(given, draft))
    return Exit.DONE


def _title(draft: LineageDeleted) -> str:
    return f"{'Data' if draft.scope.value == 'DATA' else 'Table'} lineage to delete"


def _hidden(given: Namespace, draft: LineageDeleted) -> int | None:
    from headwater.lineage.life import hidden_by  # noqa: PLC0415

    if given.store is None:
        return None
    with opened(given) as store, store.engine.connect() as connection:
        return hidden_by(connection, draft)


def _snapshot(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no snapshot: it is a number") from None


def _catalog(connection: Connection, given: Namespace) -> CatalogId:
    """The one of this name; an error that lists them where there are several."""
    from sqlalchemy import select  # noqa: PLC0415

    from headwater.events.names import CatalogId  # noqa: PLC0415
    from headwater.lineage.rows import tables as t  # noqa: PLC0415
    from headwater.lineage.sql.tables import table_of  # noqa: PLC0415

    name, place = table_of(t.CATALOG_NAME), table_of(t.CATALOG)
    chosen = select(place.c.type, place.c.location).join_from(name, place, name.c.catalog_id == place.c.id)
    found = connection.execute(chosen.where(name.c.name == given.catalog)).all()
    if len(found) != 1:
        several = ", ".join(f"{each.type} at {each.location}" for each in found) or "none"
        raise ConfigurationError(f"one catalog has to be called {given.catalog!r}, and there are: {several}")
    return CatalogId(type=found[0].type, location=found[0].location)
