"""What changes lineage, by an event: it is deleted, it expires, datasets are one; and what is gone is purged."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from datetime import datetime, timezone
from getpass import getuser
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from headwater.cli.answers import add_namespace, job_of, open_connection
from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.flags import Flags, moment, one_of
from headwater.cli.lineage.publishing import add_bus, publish_or_store
from headwater.cli.output import CommandOutput
from headwater.cli.store import add_store, open_given_store
from headwater.errors import ConfigurationError
from headwater.events.clock import micros_of
from headwater.events.names import DatasetId

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.events.administration import LineageDeleted
    from headwater.events.names import CatalogId, JobName

T = TypeVar("T")
_SCOPES = ("tables", "data")


def _delete(parser: Flags) -> None:
    text = "tables: which tables the job reads and writes; data: which snapshots it read and made"
    parser.flag("scope", one_of(_SCOPES, "scope"), None, text, "{tables,data}")
    parser.flag("job", str, None, "the job; an application or a block with all of its steps", "NAME")
    parser.flag("run", UUID, None, "only what this run reported", "UUID")
    parser.flag("before", moment, None, "only what was reported before this time, else until now", "TIME")


@command(
    """Delete the lineage that a job reported, all of its steps included. What runs report from now on stays.

With --bus the deletion is an event for every store that is filled from there; without it --store alone changes.""",
    "headwater lineage delete --scope tables --job orders_etl --dry-run",
    "headwater lineage delete --scope data --job orders_etl --before 90d --yes",
    flags=[add_bus, add_namespace, _delete, add_erasing],
)
def delete(given: Namespace, output: CommandOutput) -> int:
    from headwater.events.administration import LineageScope  # noqa: PLC0415
    from headwater.lineage.maintenance.deletion import delete_job  # noqa: PLC0415

    job = job_of(given, given.job)
    if job is None:
        raise ConfigurationError("which job? Name it by --job")
    if given.scope is None:
        raise ConfigurationError("which lineage of it? Say --scope tables or --scope data")
    if given.store is not None:
        _in_store(given, lambda connection, _: _check_names(connection, job, given.run))
    before = given.before or datetime.now(timezone.utc)
    draft = delete_job(LineageScope(given.scope.upper()), job, before=before, run=given.run, by=getuser())
    return _carry_out(given, draft, output)


def _check_names(connection: Connection, job: JobName, run: UUID | None) -> None:
    from headwater.lineage.questions.name_checks import (  # noqa: PLC0415
        check_job,
        check_run,
        job_key,
    )

    check_job(connection, job_key(job))
    if run is not None:
        check_run(connection, run)


def _expire(parser: Flags) -> None:
    parser.flag("older-than", moment, None, "all that is older, such as 90d", "AGE")
    parser.flag("catalog", str, None, "only what concerns tables of this catalog", "NAME")
    parser.flag("dataset", str, None, "instead of --older-than: only what concerns this table …", "TABLE")
    parser.flag("up-to-snapshot", _snapshot, None, "… up to this snapshot of it", "SNAPSHOT")


@command(
    """Let data lineage expire by its age, or with the snapshots that have expired. Table lineage stays.

What is reported late of that time is refused as well; answers say up to when data lineage is gone.""",
    "headwater lineage expire --older-than 90d --dry-run",
    "headwater lineage expire --older-than 90d --catalog lake --yes",
    "headwater lineage expire --dataset sales.daily --up-to-snapshot 4711",
    flags=[add_bus, _expire, add_erasing],
)
def expire(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.maintenance.deletion import expire_before, expire_snapshots  # noqa: PLC0415
    from headwater.lineage.questions.name_checks import (  # noqa: PLC0415
        check_snapshot,
        resolve_table,
    )

    if (given.older_than is None) is (given.dataset is None):
        raise ConfigurationError("say --older-than AGE, or --dataset TABLE with --up-to-snapshot SNAPSHOT")
    if given.dataset is None:
        catalog = None if given.catalog is None else _in_store(given, _catalog)
        draft = expire_before(given.older_than, catalog=catalog, by=getuser())
        return _carry_out(given, draft, output)
    if given.up_to_snapshot is None:
        raise ConfigurationError("up to which snapshot of it? Name it by --up-to-snapshot")

    def drafted(connection: Connection, _: Namespace) -> LineageDeleted:
        about = resolve_table(connection, given.dataset)
        check_snapshot(connection, about, given.up_to_snapshot)
        dataset = DatasetId(namespace=about.dataset.namespace, name=about.dataset.name)
        now = datetime.now(timezone.utc)
        return expire_snapshots(connection, dataset, given.up_to_snapshot, before=now, by=getuser())

    return _carry_out(given, _in_store(given, drafted), output)


def _purge(parser: Flags) -> None:
    parser.flag("older-than", moment, None, "records of runs that are older too, such as 400d", "AGE")


@command(
    """Remove from the disk what was deleted or has expired. Nothing that is visible changes.

With --older-than, old records of runs go too: runs and their settings, which tables they used, failed statements, and
which events arrived. The newest run of each job stays, and what is needed to say that something is missing.""",
    "headwater store purge --dry-run",
    "headwater store purge --yes",
    "headwater store purge --older-than 400d --yes",
    flags=[add_store, _purge, add_erasing],
)
def purge(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.maintenance.aging import count_old, remove_old  # noqa: PLC0415
    from headwater.lineage.maintenance.partitions import drop_empty_partitions  # noqa: PLC0415
    from headwater.lineage.maintenance.purge import count_erasable  # noqa: PLC0415
    from headwater.lineage.maintenance.purge import purge as purge_store  # noqa: PLC0415

    before = None if given.older_than is None else micros_of(given.older_than)
    with open_given_store(given, readonly=False) as store:
        commits = count_erasable(store.engine)
        old = 0 if before is None else count_old(store.engine, before)
        fields = {"store": store.target.words, "commits to remove": commits}
        old_fields = {} if before is None else {"old records of runs": old}
        output.record("purge", {**fields, **old_fields}, "To remove from the disk")

        def work() -> tuple[str, dict[str, object]]:
            gone = purge_store(store.engine)
            rows = {"commits": gone.commits, "reads": gone.reads, "writes": gone.writes, "edges": gone.edges}
            if before is not None:
                rows.update(remove_old(store.engine, before))
                rows["empty partitions"] = len(drop_empty_partitions(store.engine, given.older_than))
            words = ", ".join(f"{number} rows of {name}" for name, number in rows.items() if name != "empty partitions")
            return f"removed {words}", {"removed": rows}

        what = f"{commits} commits" + ("" if before is None else f" and {old} old records of runs")
        is_nothing = not commits and not old and before is None
        return erase(given, output, f"{what} will be removed for good: remove them?", work, is_nothing=is_nothing)


def _unify(parser: Flags) -> None:
    parser.flag("into", str, None, "what they are from now on", "DATASET")
    parser.flag("reason", str, "", "why, for those who look at it later", "TEXT")
    parser.word("others", str, "NAMESPACE|NAME, or with --store any name of a table", "OTHER", "+")


@command(
    """Say that several datasets are one: two hosts of one server, two paths to one directory.

Answers about one of them follow the others from then on. This can't be taken back.""",
    "headwater table unify 'hdfs://nn1|/w/orders' --into 'hdfs://prod|/w/orders' --reason 'nn1 is a member of prod'",
    flags=[add_bus, _unify, add_erasing],
)
def unify(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.maintenance.deletion import unify as drafted  # noqa: PLC0415

    if given.into is None:
        raise ConfigurationError("into which? Name the dataset by --into")
    datasets = [_dataset(given, text) for text in (*given.others, given.into)]
    draft = drafted(datasets[:-1], datasets[-1], reason=given.reason, by=getuser())
    rows = [(draft.dataset, other) for other in draft.others]
    output.table("datasets", ("is from now on", "was"), rows)
    question = "Unify them? It can't be taken back."
    return erase(given, output, question, lambda: (publish_or_store(given, draft), {}))


def _dataset(given: Namespace, text: str) -> DatasetId:
    namespace, bar, name = text.partition("|")
    if bar:
        return DatasetId(namespace=namespace, name=name)
    if given.store is None:
        raise ConfigurationError(f"{text!r} has to be looked up: name the store by --store, or write NAMESPACE|NAME")
    return _in_store(given, lambda connection, _: _find_dataset(connection, text))


def _find_dataset(connection: Connection, text: str) -> DatasetId:
    from headwater.lineage.questions.names import find_dataset  # noqa: PLC0415

    found = find_dataset(connection, text)
    return DatasetId(namespace=found.namespace, name=found.name)


def _in_store(given: Namespace, question: Callable[[Connection, Namespace], T]) -> T:
    with open_connection(given) as connection:
        return question(connection, given)


def _carry_out(given: Namespace, draft: LineageDeleted, output: CommandOutput) -> int:
    hidden = _count_hidden(given, draft)
    fields = {
        "job": draft.of_job,
        "run": draft.of_run,
        "dataset": draft.dataset,
        "up to snapshot": draft.up_to_snapshot,
        "catalog": draft.catalog.location if draft.catalog else None,
        "reported before": draft.before,
        "facts that it hides": hidden,
    }
    title = f"{'Data' if draft.scope.value == 'DATA' else 'Table'} lineage to delete"
    output.record("deletion", {name: value for name, value in fields.items() if value is not None}, title)
    many = "how many facts it hides isn't known without --store" if hidden is None else f"{hidden} facts will be hidden"
    return erase(given, output, f"{many}: delete them?", lambda: (publish_or_store(given, draft), {}))


def _count_hidden(given: Namespace, draft: LineageDeleted) -> int | None:
    from headwater.lineage.maintenance.deletion import count_hidden  # noqa: PLC0415

    return None if given.store is None else _in_store(given, lambda connection, _: count_hidden(connection, draft))


def _snapshot(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} isn't a snapshot: it is a number") from None


def _catalog(connection: Connection, given: Namespace) -> CatalogId:
    """Return the catalog of this name; an error lists them where there are several."""
    from sqlalchemy import select  # noqa: PLC0415

    from headwater.events.names import CatalogId  # noqa: PLC0415
    from headwater.lineage.questions.name_checks import check_catalog  # noqa: PLC0415
    from headwater.lineage.rows import tables as t  # noqa: PLC0415
    from headwater.lineage.sql.tables import table_of  # noqa: PLC0415

    name, place = table_of(t.CATALOG_NAME), table_of(t.CATALOG)
    chosen = select(place.c.type, place.c.location).join_from(name, place, name.c.catalog_id == place.c.id)
    check_catalog(connection, given.catalog)
    found = connection.execute(chosen.where(name.c.name == given.catalog)).all()
    if len(found) != 1:
        several = ", ".join(f"{each.type} at {each.location}" for each in found)
        raise ConfigurationError(f"one catalog has to be called {given.catalog!r}, and there are: {several}")
    return CatalogId(type=found[0].type, location=found[0].location)
