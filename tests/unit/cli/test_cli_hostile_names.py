"""Every command prints names, errors and headers of others so that a terminal only shows them.

The commands are enumerated: a new one is asked here with hostile names, or is listed with the reason why it shows none.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import headwater.cli
from headwater.cli import main
from headwater.cli.commands import Leaf, walk
from headwater.events import (
    AlterTable,
    CatalogOptionsDeclared,
    Committed,
    CreateTable,
    DatasetId,
    Event,
    Input,
    JobName,
    JobStarted,
    JobStatusChanged,
    Output,
    StatementFailed,
    Table,
    TableName,
)
from headwater.events.avro import Codec
from headwater.events.changes import AddColumn
from headwater.events.health import Gap, GapReason
from headwater.events.jobs import ErrorDetails, JobStatus, Sink
from headwater.events.keys import headers_of, key_of
from headwater.events.tables import Column
from headwater.journal import LocalLog
from headwater.lineage.bulk import BusPartition, DeadLetter, DeadLetterReason
from headwater.lineage.store import open_store
from headwater.terminal import printable, printable_json, printable_lines
from headwater.testing.examples import CONTEXT
from tests.kit.forwarders.process import RECORDER
from tests.kit.lineage.scripted_producer import ScriptedProducer

FORGED = "FORGED LINE"
HOSTILE = f"\x1b]52;c;eA==\x07\x1b[2J\r\u202e\x9b2J%%{{init: {{}}}}%%\u2028\nheadwater: {FORGED}"
JOB, TABLE = f"job{HOSTILE}", f"lake.db.t{HOSTILE}"
LEAVES = {path for path, node in walk() if isinstance(node, Leaf)}
ASKED: Mapping[str, tuple[str, ...]] = {
    "archive compact": ("--archive", "{archive}", "--before", "2999-01-01"),
    "archive expire": ("--archive", "{archive}", "--older-than", "9999d", "--yes"),
    "archive run": ("--bus", "log:{log}", "--archive", "{archive}", "--until-end"),
    "archive status": ("--archive", "{archive}"),
    "archive verify": ("--archive", "{archive}"),
    "conformance judge": ("--events", "{log}", "--observed", "{log}"),
    "dead-letter drop": ("--all", "--dry-run"),
    "dead-letter list": (),
    "dead-letter retry": ("--all",),
    "dead-letter show": ("{letter}",),
    "doctor": ("--conf", f"spark.headwater.job.name={JOB}", "--conf", f"spark.headwater.{HOSTILE}=1"),
    "events cat": ("--from", "log:{log}"),
    "events tail": ("--from", "log:{log}", "--from-start", "--limit", "5"),
    "forward list": ("--state", "{state}"),
    "forward plan": ("one", "--bus", "log:{log}", "--state", "{state}", "--table", "*", "{option}", "{file}"),
    "forward run": ("one", "--bus", "log:{log}", "--state", "{state}", "--until-end", "{option}", "{file}"),
    "forward status": ("--state", "{state}"),
    "forward test": ("one", "--state", "{state}", "{option}", "{file}"),
    "gap list": (),
    "job list": (),
    "job runs": (),
    "job tables": (JOB,),
    "lineage delete": ("--scope", "data", "--job", JOB, "--dry-run"),
    "lineage downstream": (TABLE,),
    "lineage expire": ("--older-than", "1d", "--catalog", f"lake{HOSTILE}", "--dry-run"),
    "lineage path": (f"lake.db.s{HOSTILE}", TABLE),
    "lineage upstream": (TABLE,),
    "reconcile": ("--all",),
    "replay": ("--from", "log:{log}", "--no-switch"),
    "spool drop": (f"kafka{HOSTILE}", "--spool-dir", "{spool}", "--dry-run"),
    "spool rename": (f"kafka{HOSTILE}", "kafka", "--spool-dir", "{spool}"),
    "spool ship": ("--spool-dir", "{spool}", "--conf", f"spark.headwater.listeners={HOSTILE}"),
    "spool status": ("--spool-dir", "{spool}"),
    "spool verify": ("--spool-dir", "{spool}"),
    "store compare": ("--with", "{empty}"),
    "store init": (),
    "store maintain": (),
    "store migrate": (),
    "store purge": ("--dry-run",),
    "store size": (),
    "branch list": (TABLE, "--recorded"),
    "correct plan": (f"{TABLE}@1",),
    "rollback list": (),
    "rollback to": (f"{TABLE}@1", "--chain", "--dry-run"),
    "correct list": (),
    "store status": (),
    "table checkpoint": (f"{TABLE}@1",),
    "table history": (TABLE,),
    "table jobs": (TABLE,),
    "table late": (TABLE,),
    "table list": (),
    "table names": (TABLE,),
    "table unify": (f"s3://lake|w/s{HOSTILE}", "--into", f"s3://lake|w/t{HOSTILE}", "--dry-run"),
    "table uses": (TABLE,),
    "version align": (TABLE, f"lake.db.s{HOSTILE}"),
    "version check": (TABLE, f"lake.db.s{HOSTILE}"),
    "version list": (),
    "version show": (TABLE,),
    "writer run": ("--bus", "log:{log}", "--until-end"),
}
"""By command, what it is asked with; those of a store are given one with hostile names."""
NOT_ASKED: Mapping[str, str] = {
    **dict.fromkeys(
        (f"branch {each}" for each in ("create", "delete", "merge", "replace-main", "check-expiry")),
        "needs Spark; its answer goes through the same output",
    ),
    **dict.fromkeys(
        (f"rollback {each}" for each in ("undo", "resume", "show")),
        "needs a roll-back; its answer goes through the same output and text as those of `rollback to`",
    ),
    **dict.fromkeys(
        (f"correct {each}" for each in ("begin", "sql", "run", "diff", "abort", "show")),
        "needs a correction, which needs Spark; its answer goes through the same output",
    ),
    "correct switch": "needs a correction, which needs Spark; its answer goes through the same output",
    "completion": "prints a script of ours",
    "conformance listen": "counts events",
    "conformance list": "shows scenarios of ours",
    "conformance script": "writes files of ours",
    "conformance show": "shows scenarios of ours",
    "demo": "shows its own tables",
    "dev down": "knows no names of others",
    "dev java-home": "prints a path of this installation",
    "dev status": "knows no names of others",
    "dev up": "knows no names of others",
    "help": "shows help",
    "lake compact": "needs Spark; shows the names of our tables",
    "lake expire": "needs Spark; shows the names of our tables",
    "pipeline run": "needs Spark; counts events",
    "run": "what is printed is the script's own",
    "validate": "needs Spark; its answer goes through the same output",
    "table diff": "needs Spark; its answer goes through the same output",
    "stream fork": "shows paths that its caller gave, and offsets through the same output",
    "version": "prints a number",
}
PRINTS = {
    "output.py": "is where words are printed",
    "erasing.py": "asks by `printable`",
    "replay_output.py": "shows numbers",
    "run.py": "lists refusals by `printable_lines`",
    "showing.py": "prints lines of `format_line` and `json_line`",
}
"""Modules of the command line that print themselves."""


def hostile_events() -> list[Event]:
    def name(word: str) -> str:
        return f"{word}{HOSTILE}"

    def place(word: str) -> dict[str, Any]:
        table = TableName(catalog="lake", database="db", table=name(word))
        return {"table": table, "dataset": DatasetId(namespace="s3://lake", name=f"w/{name(word)}"), "generation": "1"}

    producer = ScriptedProducer(1, JOB)
    producer.emit(0, JobStarted, job_type="BATCH", user=name("ann"))
    columns = (Column(name=name("id"), type='"long"'),)
    named = {"context": CONTEXT, "identifier": place("t")["table"], "dataset": place("t")["dataset"], "generation": "1"}
    producer.emit(1, CreateTable, table=Table(columns=columns, comment=name("c")), schema_id=0, **named)
    wider = Table(columns=(*columns, Column(name=name("b"), type='"date"')))
    producer.emit(
        1, AlterTable, changes=(AddColumn(path=(name("b"),), type='"date"'),), new_table=wider, schema_id=1, **named
    )
    step: dict[str, Any] = {"job": JobName(name=f"{JOB}.step"), "parent_job": JobName(name=JOB)}
    for barrier in (1, 2):
        inputs = (Input(**place("s"), snapshot=barrier),)
        output = Output(**place("t"), snapshot=barrier, schema_id=0, made_from=(0,))
        producer.emit(2 + barrier, Committed, barrier=barrier, inputs=inputs, outputs=(output,), **step)
    error = ErrorDetails(type=name("SparkException"), message=name("disk full"))
    producer.emit(7, StatementFailed, error=error, outputs=(Sink(**place("t")),), **step)
    producer.emit(8, Gap, reason=GapReason.CAPTURE_FAILED, detail=name("lost"))
    producer.emit(8, CatalogOptionsDeclared, context=CONTEXT, options={name("key"): name("value")})
    producer.emit(9, JobStatusChanged, status=JobStatus.FAILED, error=error)
    return producer.events


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A store, a local log, an archive, a spool and a forwarder's state, all with hostile names in them."""
    folder = tmp_path_factory.mktemp("hostile")
    with LocalLog.open(folder / "log").writer() as journal:
        for event in hostile_events():
            journal.append(Codec().encode(event), key=key_of(event), headers=headers_of(event, bytes(8)))
        journal.append(b"no event", key=HOSTILE.encode(), headers=((f"kind{HOSTILE}", HOSTILE.encode()),))
    found = {name: str(folder / name) for name in ("log", "archive", "state", "spool")}
    found |= {"option": "--option", "file": f"one.file={folder}/target", "store": f"{folder}/store.db"}
    found["empty"] = f"{folder}/empty.db"
    open_store(found["empty"]).close()
    (folder / "spool").mkdir()
    bus, until = ["--bus", f"log:{found['log']}"], "--until-end"
    assert main(["writer", "run", *bus, "--store", found["store"], until]) == 0
    assert main(["archive", "run", *bus, "--archive", found["archive"], until]) == 0
    refusing = ["--option", f"one.type={RECORDER}", "--option", found["file"], "--option", "one.refuse=Committed"]
    assert main(["forward", "run", "one", *bus, "--state", found["state"], until, *refusing]) == 0
    with open_store(f"sqlite:///{found['store']}") as store:
        ((found["letter"], letter),) = store.bulk.dead_letters()
        assert isinstance(letter, DeadLetter)
        assert letter.reason is DeadLetterReason.UNDECODABLE
        assert isinstance(letter.partition, BusPartition)
    return found


def words_of(command: str, places: Mapping[str, str]) -> list[str]:
    """The command's words; each place in braces stands for its path."""
    path = command.split()
    declared = {action.dest for action in parser_actions(path)}
    where = ["--store", places["store"]] if "store" in declared else []
    given = [
        re.sub(r"^(.*)\{(\w+)\}$", lambda found: found[1] + places[found[2]], each, flags=re.DOTALL)
        for each in ASKED[command]
    ]
    options = ["--option", f"one.type={RECORDER}"] if "--option" in given else []
    return [*path, *where, *given, *options]


def parser_actions(path: list[str]) -> Any:
    from headwater.cli.app import leaf_parser

    node = dict(walk())[tuple(path)]
    assert isinstance(node, Leaf)
    return leaf_parser(tuple(path), node.load())._actions


def offences(text: str) -> list[str]:
    """What a terminal would act on, and lines that nobody of ours wrote."""
    acted = [each for each in text if each not in "\n\t" and not each.isprintable() and each != "\xa0"]
    return acted + [line for line in text.splitlines() if line.startswith(f"headwater: {FORGED}")]


def test_each_command_is_asked_or_has_a_reason() -> None:
    leaves = {" ".join(path) for path in LEAVES}
    assert ASKED.keys() | NOT_ASKED.keys() >= leaves
    assert not ASKED.keys() & NOT_ASKED.keys()


@pytest.mark.slow
@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("command", ASKED)
def test_a_command_prints_nothing_that_a_terminal_acts_on(
    command: str, output: str, places: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        main(["-o", output, *words_of(command, places)])
    except SystemExit as e:
        pytest.fail(f"the command's words are wrong: {e}, {capfd.readouterr().err}")
    shown = capfd.readouterr()
    assert offences(shown.out) == []
    assert offences(shown.err) == []


@pytest.mark.slow
@pytest.mark.parametrize("output", ["dot", "mermaid", "html"])
def test_pictures_hold_names_as_they_are_read(
    output: str, places: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["-o", output, *words_of("lineage upstream", places)]) == 0
    shown = capfd.readouterr().out
    assert [each for each in offences(shown) if output != "html" or len(each) == 1] == [], "HTML joins lines itself"
    assert FORGED in shown
    assert output != "mermaid" or "%%{" not in shown


def test_words_are_printed_by_one_function_of_the_command_line() -> None:
    """Modules with a `print` or a `write` of their own are few, and listed with what they print."""
    found = set()
    folder = Path(inspect.getfile(headwater.cli)).parent
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                found.add(file.name)
    jobs = {each.name for each in (folder / "demo" / "jobs").glob("*.py")}
    assert found - jobs == PRINTS.keys()


def test_what_isnt_printable_is_shown_as_its_escape() -> None:
    assert printable(HOSTILE) == (
        r"\x1b]52;c;eA==\x07\x1b[2J\r\u202e\x9b2J%%{init: {}}%%\u2028\nheadwater: FORGED LINE"
    )
    assert printable("größe → 数 \xa0") == "größe → 数 \xa0"
    assert printable_lines("a\n\tb\x1b") == "a\n\tb\\x1b"
    assert printable_json({"a": "\u202e\x9b\U000e0001ö"}) == '{"a": "\\u202e\\u009b\\udb40\\udc01ö"}'
