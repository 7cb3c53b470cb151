"""A mistyped name is an error, whatever it is of and whichever command is asked.

It walks the tree of commands: a command or flag that comes has to say here what a wrong name of it looks like, or that
it is no name of something in a store. Answers to right names are in the tests of each command.
"""

from __future__ import annotations

from argparse import Action
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from headwater.cli.app import main, parser_of
from headwater.cli.commands import Leaf, walk
from headwater.cli.exits import Exit
from headwater.events import AlterTable, Committed, CreateTable, Input, JobName, JobStarted, Output, Table
from headwater.events.catalog import CreateBranch
from headwater.events.changes import RenameColumn
from headwater.events.scalars import Format
from headwater.events.tables import Column
from headwater.lineage.store import open_store
from headwater.testing.examples import CONTEXT
from tests.kit.lineage.scripted_producer import ScriptedProducer, place, store

pytestmark = pytest.mark.slow

RUN: Final = str(UUID(int=1001))
STRUCT: Final = '{"type":"struct","fields":[{"name":"city","type":"string","nullable":true,"metadata":{}}]}'

IN_DEFAULT: Final = "one of that name is in the namespace default"
WRONG: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("lineage upstream", "table"): ("sales.dayly", "did you mean lake.sales.daily?"),
    ("lineage upstream", "column"): (
        "sales.daily --column totl",
        "no column 'totl' of lake.sales.daily; did you mean total?",
    ),
    ("lineage upstream", "branch"): ("sales.daily --branch adit", "did you mean audit?"),
    ("lineage upstream", "job"): ("sales.daily --job rolup", "did you mean rollup?"),
    ("lineage downstream", "table"): (
        "sales.orders.amuont",
        "no column 'amuont' of lake.sales.orders; did you mean amount?",
    ),
    ("lineage downstream", "column"): ("sales.orders --column address.ctiy", "did you mean city?"),
    ("lineage downstream", "branch"): ("sales.daily@3 --branch adit", "did you mean audit?"),
    ("lineage downstream", "job"): ("sales.orders --job rolup", "did you mean rollup?"),
    ("lineage path", "source"): ("sales.order sales.daily", "did you mean lake.sales.orders?"),
    ("lineage path", "table"): ("sales.orders sales.dayly", "did you mean lake.sales.daily?"),
    ("lineage delete", "job"): ("--scope data --dry-run --job rolup", "did you mean rollup?"),
    ("lineage delete", "run"): (f"--scope data --dry-run --job rollup --run {UUID(int=1002)}", f"did you mean {RUN}?"),
    ("lineage expire", "catalog"): ("--older-than 1d --dry-run --catalog laek", "did you mean lake?"),
    ("lineage expire", "dataset"): ("--dataset sales.dayly --up-to-snapshot 3", "did you mean lake.sales.daily?"),
    ("lineage expire", "up_to_snapshot"): ("--dataset sales.daily --up-to-snapshot 99", "its newest are 103"),
    ("table jobs", "table"): ("sales.dayly", "did you mean lake.sales.daily?"),
    ("table uses", "table"): ("sales.dayly", "did you mean lake.sales.daily?"),
    ("table late", "table"): ("sales.dayly", "did you mean lake.sales.daily?"),
    ("table history", "table"): ("sales.dayly", "did you mean lake.sales.daily?"),
    ("table history", "snapshots"): (
        "sales.daily 103..104",
        "no snapshot '104' of lake.sales.daily; did you mean 103?",
    ),
    ("table checkpoint", "snapshot"): ("sales.dayly@103", "did you mean lake.sales.daily?"),
    ("table names", "table"): ("sales.dayly", "did you mean lake.sales.daily?"),
    ("branch list", "table"): ("sales.dayly --recorded", "did you mean lake.sales.daily?"),
    ("table unify", "others"): ("sales.dayly --into a|b", "did you mean lake.sales.daily?"),
    ("table unify", "into"): ("a|b --into sales.dayly", "did you mean lake.sales.daily?"),
    ("job tables", "job"): ("rolup", "did you mean rollup?"),
    ("job tables", "job_namespace"): ("rollup --job-namespace prod", IN_DEFAULT),
    ("job runs", "job"): ("rolup", "did you mean rollup?"),
    ("job runs", "job_namespace"): ("rollup --job-namespace prod", IN_DEFAULT),
    ("job runs", "table"): ("--table sales.dayly", "did you mean lake.sales.daily?"),
    ("job runs", "run"): (f"--run {UUID(int=1002)}", f"did you mean {RUN}?"),
    ("gap list", "job"): ("--job rolup", "did you mean rollup?"),
    ("gap list", "job_namespace"): (
        "--job rollup --job-namespace prod",
        IN_DEFAULT,
    ),
    ("gap list", "table"): ("--table sales.dayly", "did you mean lake.sales.daily?"),
    ("lineage delete", "job_namespace"): (
        "--scope data --dry-run --job rollup --job-namespace prod",
        IN_DEFAULT,
    ),
    ("version show", "table"): ("sales.dayly", "did you mean lake.sales.daily?"),
    ("version show", "branch"): ("sales.daily --branch adit", "knows no branch 'adit'"),
    ("version check", "tables"): ("sales.daily sales.odrers", "did you mean lake.sales.orders?"),
    ("version align", "tables"): ("sales.daily sales.odrers", "did you mean lake.sales.orders?"),
    ("version align", "at"): ("sales.daily sales.orders --at sales.odrers@1", "did you mean lake.sales.orders?"),
    ("version align", "data_version"): (
        "sales.daily sales.orders --data-version shop@1",
        "no data version 1 of 'shop'",
    ),
    ("version list", "group"): ("shop", "no group 'shop'"),
    ("correct plan", "table"): ("sales.dayly@103", "did you mean lake.sales.daily?"),
    ("correct plan", "only"): ("sales.daily@103 --only sales.dayly", "did you mean lake.sales.daily?"),
    ("rollback to", "table"): ("sales.dayly@103 --dry-run", "did you mean lake.sales.daily?"),
    ("rollback to", "data_version"): ("--data-version shop@1 --dry-run", "no data version 1 of 'shop'"),
    ("correct begin", "table"): ("sales.dayly@103", "did you mean lake.sales.daily?"),
    ("correct begin", "only"): ("sales.daily@103 --only sales.dayly", "did you mean lake.sales.daily?"),
    ("correct sql", "correction"): ("c-1 SELECT", "knows no correction c-1: no correction is under way"),
    ("correct run", "correction"): ("c-1", "knows no correction c-1: no correction is under way"),
    ("correct diff", "correction"): ("c-1", "knows no correction c-1: no correction is under way"),
    ("correct abort", "correction"): ("c-1 --yes", "knows no correction c-1: no correction is under way"),
    ("correct show", "correction"): ("c-1", "knows no correction c-1: no correction is under way"),
    ("correct switch", "correction"): ("c-1 --dry-run", "knows no correction c-1: no correction is under way"),
    ("validate", "what"): ("sales.dayly@3 --run job.py", "did you mean lake.sales.daily?"),
}
"""By command and flag: how it is called with a wrong name, and what is said then."""
SNAPSHOTS: Final = {
    "lineage upstream sales.daily@99": "no snapshot '99' of lake.sales.daily; its newest are 103",
    "lineage upstream sales.daily@99 --state": "no snapshot '99' of lake.sales.daily",
    "lineage upstream sales.daily@99.total": "no snapshot '99' of lake.sales.daily",
    "lineage upstream sales.daily@eod": "has no tag 'eod'",
    "lineage downstream sales.orders@99": "no snapshot '99' of lake.sales.orders",
    "table checkpoint sales.daily@99": "no snapshot '99' of lake.sales.daily",
    "correct plan sales.daily@99": "no snapshot '99' of lake.sales.daily",
    "rollback to sales.daily@99 --dry-run": "knows no snapshot 99 of lake.sales.daily",
    "lineage path sales.orders@99 sales.daily": "no snapshot '99' of lake.sales.orders",
    "lineage path sales.orders sales.daily@99": "no snapshot '99' of lake.sales.daily",
    "lineage path sales.orders@99 sales.daily@103": "no snapshot '99' of lake.sales.orders",
}
OF_OTHER_THINGS: Final = {
    "replay": {"group"},
    "reconcile": {"tables"},  # of a catalog, which has tables that no store has heard of
    **dict.fromkeys(
        ("branch create", "branch delete", "branch merge", "branch replace-main", "branch check-expiry"),
        frozenset({"table", "tag", "main"}),
    ),  # of Spark's catalogs, and of the table itself
    "store init": {"catalog"},  # it is given a name here
    "correct diff": {"table", "key", "ignore"},  # looked for among the correction's own
    "correct abort": {"dropped"},  # of a table that isn't there any more; another name changes nothing
    "validate": {"pin", "key", "ignore", "keep", "sink", "run", "group"},  # looked for when the plan is made
    "writer run": {"group"},  # of consumers of the bus
    "pipeline run": {"group"},
    "dead-letter show": {"into"},
}
"""Names that a store need not know."""
_NO_NAMES: Final = """
abort accept_loss aligned all allow anyway archive as_of available_now back basis batch before buckets bus by
catalog_conf catalog_store chain commands conf config copy dead_letters depth differences direct drain_seconds
drop_former dry_run fewest from health help kafka kafka_client keep_runs limit lineage_meta log_format log_level
look_back look_back_time master mode most_invalid name names no_maintenance no_switch of older_than option output
partial patience pause place print_config processes properties_file purge reason recorded repair retain rounds rows
samples scope scratch settled since spool_dir start state statement store store_option trigger until until_end wait with
writer_group yes
"""
NO_NAMES: Final = frozenset(_NO_NAMES.split())
"""Flags that name no table, column, job, run or snapshot. Dead letters and forwarders have their own errors."""


def named() -> Iterator[tuple[str, str]]:
    """Yield each command that asks a store, with each of its words and flags that may be a name."""
    for path, node in walk():
        if isinstance(node, Leaf):
            actions: list[Action] = parser_of(path, node)._actions
            command = " ".join(path)
            if any("--store" in each.option_strings for each in actions):
                own = NO_NAMES | OF_OTHER_THINGS.get(command, set())
                yield from ((command, each.dest) for each in actions if each.dest not in own)


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    producer = ScriptedProducer(1, "rollup")
    producer.emit(0, JobStarted, job_type="BATCH", user="ann")
    for name, columns in (("orders", {"amount": '"int"', "address": STRUCT}), ("daily", {"total": '"int"'})):
        table = Table(columns=tuple(Column(name=each, type=kind) for each, kind in columns.items()))
        known = place(name)
        about = {"context": CONTEXT, "identifier": known["table"], "dataset": known["dataset"], "generation": "1"}
        producer.emit(1, CreateTable, table=table, **about)
    producer.emit(1, CreateBranch, branch="audit", snapshot=103, **about)
    output = Output(**place("daily"), snapshot=103, made_from=(0,))
    producer.emit(2, Committed, barrier=1000, inputs=(Input(**place("orders"), snapshot=1),), outputs=(output,))
    url = f"sqlite:///{tmp_path / 'lineage.db'}"
    with open_store(url) as opened, opened.engine.begin() as connection:
        store(connection, producer)
    monkeypatch.setenv("HEADWATER_STORE", url)
    monkeypatch.chdir(tmp_path)
    return url


def test_each_command_that_takes_a_name_is_tried() -> None:
    asked = set(named())
    assert asked == WRONG.keys()
    every = {each.dest for path, node in walk() if isinstance(node, Leaf) for each in parser_of(path, node)._actions}
    assert every >= NO_NAMES


@pytest.mark.parametrize(("command", "flag"), WRONG, ids=lambda each: each.replace(" ", "-"))
@pytest.mark.usefixtures("url")
def test_a_wrong_name_is_an_error(command: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, hint = WRONG[command, flag]
    code = main([*command.split(), *words.split()])
    said = capsys.readouterr()
    assert (code, hint in said.err) == (Exit.CONFIGURATION, True), said.err
    assert "nothing is known" not in said.out


@pytest.mark.parametrize("words", SNAPSHOTS)
@pytest.mark.usefixtures("url")
def test_a_wrong_snapshot_is_an_error(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(words.split())
    said = capsys.readouterr()
    assert (code, SNAPSHOTS[words] in said.err) == (Exit.CONFIGURATION, True), said.err


def test_a_column_that_was_is_answered_as_such(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No error, as what was made from it is asked for when it is gone; and not as if it were there."""
    later = ScriptedProducer(2)
    known = place("orders")
    about = {"context": CONTEXT, "identifier": known["table"], "dataset": known["dataset"], "generation": "1"}
    renamed = Table(columns=(Column(name="price", type='"int"'),))
    later.emit(5, AlterTable, changes=(RenameColumn(path=("amount",), new_name="price"),), new_table=renamed, **about)
    with open_store(url) as opened, opened.engine.begin() as connection:
        store(connection, later)
    assert main(["lineage", "downstream", "sales.orders.amount"]) == Exit.DONE
    assert "amount is called price since 2026-03-01 12:05:00Z" in capsys.readouterr().out
    assert main(["lineage", "downstream", "sales.orders.address"]) == Exit.DONE
    assert "address is no column of the table any more since 2026-03-01 12:05:00Z" in capsys.readouterr().out


def test_a_snapshot_between_two_that_are_known_was_there(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Delta counts its versions: who wrote 102 isn't known, and that is what is answered."""

    later = ScriptedProducer(2)
    for minute, snapshot in ((3, 1), (4, 4)):
        written = Output(**place("counted", format=Format.DELTA), snapshot=snapshot, made_from=())
        later.emit(minute, Committed, barrier=minute, outputs=(written,), job=JobName(name="rollup"))
    with open_store(url) as opened, opened.engine.begin() as connection:
        store(connection, later)
    assert main(["lineage", "upstream", "sales.counted@2"]) == Exit.DONE
    assert "its writer is unknown" in capsys.readouterr().out
    assert main(["lineage", "upstream", "sales.counted@5"]) == Exit.CONFIGURATION
