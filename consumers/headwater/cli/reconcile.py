"""`headwater reconcile`: commits that stand in tables' own logs and that nobody reported."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from headwater.cli.answers import A_TABLE, open_connection, snapshot_text
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, moment, pair
from headwater.cli.lineage.publishing import add_bus, publish_or_store_stamped
from headwater.cli.output import CommandOutput
from headwater.errors import ConfigurationError, HeadwaterError

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from sqlalchemy import Connection

    from headwater.consumers.reconcile.comparison import ComparedCommit
    from headwater.consumers.reconcile.model import TableLog
    from headwater.consumers.reconcile.table_logs import CatalogSettings
    from headwater.lineage.questions.datasets import Dataset

_UNREADABLE: Final = 2
"""The exit code where a table's log couldn't be read: whether it has differences isn't known."""
_TABLE_COLUMNS: Final = (
    *("table", "format", "commits in its log", "unknown", "repaired before", "unsettled", "unconfirmed", "deleted"),
    "error",
)
_COMMIT_COLUMNS: Final = ("table", "snapshot", "branch", "kind", "made at", "parent", "status", "generation")


@dataclass
class _Comparison:
    """What came out for one table."""

    dataset: Dataset
    log: TableLog | None = None
    compared: list[ComparedCommit] = field(default_factory=list)
    error: str | None = None


def _arguments(parser: Flags) -> None:
    parser.word("tables", str, f"tables of the store: {A_TABLE}", "TABLE", "*")
    parser.switch("all", "all tables of the store that keep a log")
    parser.switch("repair", "report the unknown commits, as events of their own kind")
    text = "a commit must be so old to be unknown: the event of a younger one may be on its way"
    parser.flag("settled", moment, "10m", text, "AGE")
    parser.flag("since", moment, None, "only commits since this time, or of so many days", "TIME")
    parser.flags("place", pair, "where the files of a namespace are, such as s3://lake=/mnt/lake", "NAMESPACE=URI")
    text = "a property of an Iceberg catalog for pyiceberg, such as lake.uri=http://rest:8181"
    parser.flags("catalog-conf", pair, text, "CATALOG.KEY=VALUE")


@command(
    """Find commits that stand in tables' own logs (Iceberg, Delta, Paimon, Hudi) and that nobody reported.

Writers without headwater and lost spools leave such commits. With --repair each becomes an event: its output is
exact, and what it read isn't known. A driver's own event of the same commit counts more, whichever comes first.

Exit code 0 if every commit is known, 1 if commits are unknown (or were, before --repair), 2 if a table's log can't be
read.""",
    "headwater reconcile sales.daily",
    "headwater reconcile --all --settled 1h -o json",
    "headwater reconcile --all --repair",
    "headwater reconcile sales.daily --place s3://lake=/mnt/lake",
    "headwater reconcile sales.daily --catalog-conf lake.type=rest --catalog-conf lake.uri=http://rest:8181",
    flags=[add_bus, _arguments],
)
def reconcile(given: Namespace, output: CommandOutput) -> int:
    if given.all is bool(given.tables):
        raise ConfigurationError("which tables? Name them, or say --all")
    with open_connection(given) as connection:
        found = _compare_all(connection, given)
    _give(found, output)
    unknown = [(each, one) for each in found for one in each.compared if one.status.value == "UNKNOWN"]
    if given.repair and unknown:
        from headwater.consumers.reconcile.comparison import reconciled_event  # noqa: PLC0415
        from headwater.events.names import DatasetId  # noqa: PLC0415

        events = []
        for each, one in unknown:
            dataset = DatasetId(namespace=each.dataset.namespace, name=each.dataset.name)
            if each.log is not None:
                events.append(reconciled_event(dataset, each.log, one.commit))
        where = publish_or_store_stamped(given, events)
        output.outcome(f"reported {len(events)} commits: {where}", {"repaired": len(events)})
    if any(each.error for each in found):
        return _UNREADABLE
    return Exit.FAILED if unknown else Exit.DONE


def _compare_all(connection: Connection, given: Namespace) -> list[_Comparison]:
    from headwater.consumers.reconcile.comparison import (  # noqa: PLC0415
        compare,
        datasets_with_logs,
        names_of,
        settled_until,
    )
    from headwater.consumers.reconcile.table_logs import FORMATS, read_table_log  # noqa: PLC0415
    from headwater.events.clock import micros_of, wall_micros  # noqa: PLC0415
    from headwater.events.names import DatasetId  # noqa: PLC0415
    from headwater.lineage.questions.datasets import load_datasets  # noqa: PLC0415
    from headwater.lineage.questions.names import find_dataset  # noqa: PLC0415

    if given.all:
        datasets = list(load_datasets(connection, datasets_with_logs(connection, FORMATS)).values())
    else:
        datasets = [find_dataset(connection, text) for text in given.tables]
    now = wall_micros()
    until = settled_until(connection, now, now - micros_of(given.settled))
    since = 0 if given.since is None else micros_of(given.since)
    places, catalogs, found = dict(given.place), _catalogs(given), []
    for dataset in datasets:
        names, had_others = names_of(connection, dataset.key)
        if given.all and not names and had_others:
            continue  # it was dropped
        one = _Comparison(dataset)
        found.append(one)
        try:
            identity = DatasetId(namespace=dataset.namespace, name=dataset.name)
            one.log = read_table_log(identity, names, places, catalogs)
        except ConfigurationError:
            raise
        except HeadwaterError as error:
            one.error = str(error)
            continue
        compared = compare(connection, dataset.key, one.log, until)
        one.compared = [each for each in compared if each.commit.time >= since]
    return found


def _catalogs(given: Namespace) -> CatalogSettings:
    found: dict[str, dict[str, str]] = {}
    for key, value in given.catalog_conf:
        catalog, dot, name = key.partition(".")
        if not dot:
            raise ConfigurationError(f"--catalog-conf {key}={value} names no catalog: write CATALOG.KEY=VALUE")
        found.setdefault(catalog, {})[name] = value
    return found


def _give(found: list[_Comparison], output: CommandOutput) -> None:
    from headwater.consumers.reconcile.comparison import CommitStatus as S  # noqa: PLC0415

    tables = []
    for each in found:
        many = {status: sum(one.status is status for one in each.compared) for status in S}
        form = None if each.log is None else each.log.format.value
        counts = [many[status] for status in (S.UNKNOWN, S.RECONCILED, S.UNSETTLED, S.UNCONFIRMED, S.DELETED)]
        tables.append((each.dataset.label, form, len(each.compared), *counts, each.error))
    output.table("tables", _TABLE_COLUMNS, tables)
    shown = {S.UNKNOWN, S.UNSETTLED, S.UNCONFIRMED}
    commits = [_row(each, one) for each in found for one in each.compared if one.status in shown]
    output.table("commits", _COMMIT_COLUMNS, commits, "Commits that nobody reported, or not yet")
    if any(one.status is S.UNCONFIRMED for each in found for one in each.compared):
        output.note("UNCONFIRMED: only the catalog knows whether the newest metadata is current; see --catalog-conf")


def _row(each: _Comparison, one: ComparedCommit) -> tuple[object, ...]:
    from headwater.events.clock import moment_of  # noqa: PLC0415

    commit = one.commit
    generation = None if each.log is None or each.log.generation is None else str(each.log.generation)
    numbers = (snapshot_text(commit.snapshot), commit.branches[0] if commit.branches else "held back")
    made = (commit.kind.value, moment_of(commit.time), snapshot_text(commit.parent))
    return (each.dataset.label, *numbers, *made, one.status.value, generation)
