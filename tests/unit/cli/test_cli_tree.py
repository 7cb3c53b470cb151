"""The whole tree of commands: each has help, examples and outputs; which flags have variables; what shells complete."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from argparse import Action
from pathlib import Path

import pytest

from headwater.cli import main
from headwater.cli.app import leaf_parser, parser_of
from headwater.cli.commands import TREE, Group, Leaf, walk
from headwater.cli.exits import Exit
from headwater.cli.flags import VARIABLES
from headwater.cli.forward.arguments import ForwardFlags
from headwater.config import is_of_kubernetes
from headwater.events import Committed, Input, JobStarted, Output
from headwater.journal import LocalLog
from headwater.lineage.mapping import map_event
from headwater.lineage.store import open_store
from tests.kit.bus.left_spools import left_by_a_mistyped_name
from tests.kit.lineage.scripted_producer import ScriptedProducer, place

ROOT = Path(__file__).parents[3]
LEAVES = {path: node for path, node in walk() if isinstance(node, Leaf)}
GROUPS = {path: node for path, node in walk() if isinstance(node, Group)}
ERASE = {
    *(("branch", each) for each in ("delete", "merge", "replace-main")),
    ("correct", "abort"),
    ("dead-letter", "drop"),
    ("dev", "down"),
    ("lineage", "delete"),
    ("lineage", "expire"),
    ("lake", "expire"),
    *(("rollback", each) for each in ("to", "undo")),
    ("archive", "expire"),
    ("spool", "drop"),
    ("store", "purge"),
    ("table", "unify"),
    ("correct", "switch"),
}
"""These erase, or can't be taken back."""
LISTS = {
    ("branch", "list"),
    ("rollback", "list"),
    *(("table", each) for each in ("list", "jobs", "uses", "late", "history", "names", "checkpoint")),
    *(("job", each) for each in ("list", "tables", "runs")),
    *(("lineage", each) for each in ("upstream", "downstream")),
    *(("events", each) for each in ("cat", "tail")),
    *{("gap", "list"), ("dead-letter", "list"), ("spool", "status"), ("version", "list"), ("version", "check")},
    ("forward", "plan"),
}
ERASING = {"yes", "dry-run", "purge", "all", "direct", "until-end", "no-maintenance", "detach"}
FILTERS = {"job", "table", "run", "since", "until", "before", "older-than", "kind", "listener", "reason", "scope"}
each_leaf = pytest.mark.parametrize("path", list(LEAVES), ids=" ".join)


def options(path: tuple[str, ...]) -> list[Action]:
    return leaf_parser(path, LEAVES[path].load()).options()


@each_leaf
def test_each_command_says_what_it_does_with_examples(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    command, summary = LEAVES[path].load(), LEAVES[path].summary
    assert summary
    assert not summary.endswith(".")
    assert command.description[0].isupper()
    assert command.description.rstrip()[-1] in ".…" or path == ("completion",)
    assert command.examples
    with pytest.raises(SystemExit, match="0"):
        main([*path, "--help"])
    text = capsys.readouterr().out
    assert all(f"  {each}\n" in f"{text}\n" for each in command.examples)
    assert all(each.help for each in leaf_parser(path, command)._actions)
    assert {"-o", "--output"} <= {name for each in options(path) for name in each.option_strings}


@each_leaf
def test_each_example_can_be_typed(path: tuple[str, ...]) -> None:
    command = LEAVES[path].load()
    for example in command.examples:
        words = shlex.split(example.partition(" > ")[0])
        assert tuple(words[: len(path) + 1]) == ("headwater", *path)
        own = words[len(path) + 1 :]
        leaf_parser(path, command).parse_args(command.split(own)[0] if command.split else own)


@each_leaf
def test_a_flag_has_a_variable_by_the_list_alone_and_its_help_names_it(path: tuple[str, ...]) -> None:
    parser = leaf_parser(path, LEAVES[path].load())
    for option in parser.options():
        name = option.option_strings[-1].removeprefix("--")
        named = re.findall(r"HEADWATER_[A-Z_]+", option.help or "")
        assert named == ([parser.variables[name]] if name in parser.variables else []), name
        if name in parser.declared:
            assert parser.declared[name].variable == parser.variables.get(name)


def test_no_variable_stands_for_what_a_command_does_or_leaves_out() -> None:
    assert not ForwardFlags.variables.keys() & (ERASING | FILTERS)
    used = {option.option_strings[-1][2:] for path in LEAVES for option in options(path)}
    assert ForwardFlags.variables.keys() <= used
    assert used >= ERASING | FILTERS


def test_no_variable_is_called_as_kubernetes_calls_its_own() -> None:
    for variables in (VARIABLES, ForwardFlags.variables):
        assert all(name.startswith("HEADWATER_") and not is_of_kubernetes(name) for name in variables.values())
        assert len(set(variables.values())) == len(variables)


@each_leaf
def test_what_kubernetes_sets_for_services_changes_nothing(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Services called headwater, headwater-store, headwater-forward … are in each pod's environment."""
    command = LEAVES[path].load()
    words = shlex.split(command.examples[0].partition(" > ")[0])[len(path) + 1 :]
    own = command.split(words)[0] if command.split else words
    before = _plain(vars(leaf_parser(path, command).parse_args(own)))
    for service in ("HEADWATER", "HEADWATER_STORE", "HEADWATER_WRITER", "HEADWATER_FORWARD", "HEADWATER_BUS"):
        for name, value in {
            "SERVICE_HOST": "10.0.0.1",
            "SERVICE_PORT": "80",
            "SERVICE_PORT_HTTP": "80",
            "PORT": "tcp://10.0.0.1:80",
            "PORT_80_TCP": "tcp://10.0.0.1:80",
            "PORT_80_TCP_ADDR": "10.0.0.1",
        }.items():
            monkeypatch.setenv(f"{service}_{name}", value)
    assert _plain(vars(leaf_parser(path, command).parse_args(own))) == before


def _plain(given: dict[str, object]) -> str:
    """Times that are so long ago differ by the time between two calls."""
    return re.sub(r"0x[0-9a-f]+|datetime\.datetime\([^)]*\)", "", str(given))


def test_what_erases_asks_and_shows_and_nothing_else_does() -> None:
    for path in LEAVES:
        names = {name for each in options(path) for name in each.option_strings}
        assert ({"--yes", "--dry-run"} <= names) is (path in ERASE), path


def test_what_gives_a_list_has_a_limit() -> None:
    assert {path for path in LEAVES if any("--limit" in each.option_strings for each in options(path))} == LISTS


def test_nothing_but_run_executes() -> None:
    """`headwater run list` runs a script called list: runs are listed by `headwater job runs`."""
    executing = {path for path in LEAVES if path[-1] == "run"}
    others = {(group, "run") for group in ("writer", "pipeline", "archive", "forward", "correct")}
    assert executing == {("run",), *others}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("demmo", "`headwater demo`"),
        ("lineage upstrem", "`headwater lineage upstream`"),
        ("lineage up", "`headwater lineage upstream`"),
        ("history", "`headwater table history`"),
        ("upsteram", "`headwater lineage upstream`"),
        ("runs", "`headwater job runs`"),
        ("gaps", "`headwater gap`"),
        ("late", "`headwater table late`"),
        ("write", "`headwater writer`"),
        ("up", "`headwater dev up`"),
        ("purge", "`headwater store purge`"),
        ("delete-table-lineage", "`headwater lineage delete`"),
        ("dead-letters", "`headwater dead-letter`"),
        ("store late", "`headwater table late`"),
        ("zzzz", "there are: run, doctor, demo"),
    ],
)
def test_an_unknown_word_names_the_nearest_of_the_whole_tree(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    assert ended.value.code == Exit.USAGE
    said = capsys.readouterr().err.splitlines()[-1]
    assert meant in said.split(" or ")[0]


def test_several_of_that_name_are_all_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status"])
    said = capsys.readouterr().err
    assert all(f"`headwater {each} status`" in said for each in ("store", "spool", "dev"))


@pytest.mark.parametrize("group", list(GROUPS), ids=lambda path: " ".join(path) or "headwater")
def test_each_group_names_its_commands(group: tuple[str, ...]) -> None:
    text = parser_of(group, GROUPS[group]).format_help()
    assert all(f"  {name} " in text and child.summary in text for name, child in GROUPS[group].children.items())


def test_a_page_lists_all_commands_and_variables() -> None:
    page = (ROOT / "docs/command-line.md").read_text()
    assert [path for path in LEAVES if f"`headwater {' '.join(path)}" not in page] == []
    assert all(variable in page for variable in [*VARIABLES.values(), *ForwardFlags.variables.values()])


NO_DOCUMENT: dict[tuple[str, ...], str] = {
    ("run",): "it is what it runs that prints",
    ("events", "cat"): "a document for each event",
    ("events", "tail"): "a document for each event",
    ("dev", "up"): "it needs servers: tests/integration/test_cli_dev.py",
    ("demo",): "it needs Spark",
    **{
        ("branch", each): "it needs Spark: test_cli_branch.py"
        for each in ("create", "merge", "replace-main", "delete", "check-expiry")
    },
    ("conformance", "listen"): "it goes on until it is stopped: test_cli_conformance.py",
    ("conformance", "judge"): "it needs observations: test_cli_conformance.py",
    ("version", "show"): "it needs snapshots: test_cli_data_versions.py",
    ("version", "check"): "it needs snapshots: test_cli_data_versions.py",
    ("version", "align"): "it needs snapshots: test_cli_data_versions.py",
    ("version", "list"): "it needs a group: test_cli_data_versions.py",
    ("correct", "plan"): "it needs snapshots: test_cli_correct.py",
    **{("rollback", each): "it needs snapshots: test_cli_rollback.py" for each in ("to", "undo", "resume", "show")},
    **{
        ("correct", each): "it needs a correction: test_cli_corrections.py"
        for each in ("begin", "sql", "run", "diff", "abort", "show")
    },
    ("correct", "switch"): "it needs a correction: tests/matrix/test_correction_switch.py",
    ("validate",): "it needs a job: test_cli_validate.py",
    ("table", "diff"): "it needs Spark: tests/matrix/test_validate_streams.py",
    ("stream", "fork"): "it needs a checkpoint: tests/unit/versions/test_stream_forks.py",
    ("pipeline", "run"): "it needs Spark: tests/integration/test_spark_pipeline.py",
    ("lake", "compact"): "it needs Spark: tests/integration/test_lake_store.py",
    ("lake", "expire"): "it needs Spark: tests/integration/test_lake_store.py",
    ("dead-letter", "show"): "it needs a dead letter: test_cli_dead_letter.py",
}
FORWARDER = "p --state {tmp}/state --option p.file={tmp}/p --option p.type=tests.kit.forwarders.targets:Recorder"
ARGUMENTS: dict[tuple[str, ...], str] = {
    ("doctor",): "--conf spark.headwater.listeners=console --conf spark.headwater.spool.dir={tmp}/spools",
    ("replay",): "--drop-former",
    ("branch", "list"): "daily --recorded",
    ("lineage", "upstream"): "lake.sales.daily",
    ("lineage", "downstream"): "lake.sales.daily",
    ("lineage", "path"): "lake.sales.orders lake.sales.daily",
    ("lineage", "delete"): "--scope data --job etl --yes",
    ("lineage", "expire"): "--older-than 90d --dry-run",
    ("table", "jobs"): "lake.sales.daily",
    ("table", "uses"): "lake.sales.daily",
    ("table", "late"): "lake.sales.daily",
    ("table", "history"): "lake.sales.daily",
    ("table", "names"): "lake.sales.daily",
    ("table", "checkpoint"): "lake.sales.daily@3",
    ("table", "unify"): "a|b --into a|c --yes",
    ("job", "tables"): "etl",
    ("writer", "run"): "--bus log:{tmp}/log --until-end",
    ("forward", "run"): f"{FORWARDER} --bus log:{{tmp}}/log --until-end",
    ("forward", "status"): "--state {tmp}/state",
    ("forward", "test"): FORWARDER,
    ("forward", "plan"): f"{FORWARDER} --bus log:{{tmp}}/log --table daily",
    ("reconcile",): "--all",
    ("store", "purge"): "--yes",
    ("store", "compare"): "--with {tmp}/lineage.db",
    ("dead-letter", "retry"): "--all",
    ("dead-letter", "drop"): "--all --yes",
    ("spool", "verify"): "--spool-dir {tmp}/spools",
    ("spool", "status"): "--spool-dir {tmp}/spools",
    ("spool", "ship"): "--spool-dir {tmp}/spools --conf spark.headwater.listeners=console",
    ("spool", "rename"): "lgo log --spool-dir {tmp}/spools",
    ("spool", "drop"): "log --spool-dir {tmp}/spools --yes",
    ("dev", "status"): "--home {tmp}/home",
    ("dev", "down"): "--home {tmp}/home --purge --yes",
    ("archive", "run"): "--bus log:{tmp}/log --archive {tmp}/archive --until-end",
    ("conformance", "show"): "ctas",
    ("conformance", "script"): "{tmp}/scenarios",
    ("archive", "status"): "--archive {tmp}/archive",
    ("archive", "verify"): "--archive {tmp}/archive",
    ("archive", "compact"): "--archive {tmp}/archive",
    ("archive", "expire"): "--archive {tmp}/archive --older-than 400d --yes",
    ("completion",): "bash",
}


@pytest.mark.slow
def test_every_answer_is_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"{tmp_path}/lineage.db"
    monkeypatch.setenv("HEADWATER_STORE", store)
    producer = ScriptedProducer(1, "etl")
    producer.emit(0, JobStarted, job_type="BATCH")
    inputs, output = (
        (Input(**place("orders"), snapshot=9),),
        Output(**place("daily"), snapshot=3, made_from=(0,)),
    )
    producer.emit(1, Committed, barrier=1000, inputs=inputs, outputs=(output,))
    with open_store(store) as opened:
        opened.merge(row for event in producer.events for row in map_event(event))
    LocalLog.open(tmp_path / "log").writer().close()
    left_by_a_mistyped_name(tmp_path / "spools")
    for path in LEAVES:
        if path not in NO_DOCUMENT:
            arguments = ARGUMENTS.get(path, "").format(tmp=tmp_path).split()
            status = main([*path, *arguments, "-o", "json"])
            out = capsys.readouterr().out
            assert isinstance(json.loads(out), dict), (path, out)
            assert out.count("\n") == 1, path
            assert status in {Exit.DONE, Exit.FAILED, Exit.TRY_AGAIN, Exit.CONFIGURATION}


PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "command-line" not in page.name),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_flags_of_the_guide_are_there(page: Path) -> None:
    """In code, with `…` where something is left out."""
    text = page.read_text()
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in re.sub(r"\\\n\s*", "", block).splitlines()]
    code = [line.removeprefix("$ ") for line in lines] + re.findall(r"`([^`\n]+)`", text)
    for each in code:
        words = each.partition("#")[0].partition("|")[0].split() if re.match("headwater [a-z-]+( |$)", each) else []
        wrong = _wrong(words[1:])
        assert wrong is None, f"{each}: {wrong}"


def test_commands_that_messages_name_are_there() -> None:
    found = {}
    for room in ("events", "listeners", "publishers", "consumers"):
        for file in (ROOT / room).rglob("*.py"):
            for each in re.findall(r"`headwater ([a-z][^`\n]*)`", file.read_text()):
                found[file.name, each] = _wrong([word for word in each.split() if re.fullmatch("[a-z-]+", word)][:2])
    assert len(found) > 20
    assert {name: wrong for name, wrong in found.items() if wrong is not None} == {}


def _wrong(words: list[str]) -> str | None:
    node: Group | Leaf = TREE
    path: tuple[str, ...] = ()
    while isinstance(node, Group) and words and words[0] != "…":
        if words[0].startswith("-"):
            words = words[2:]
        elif words[0] not in node.children:
            return words[0]
        else:
            path, node, words = (*path, words[0]), node.children[words[0]], words[1:]
    if isinstance(node, Group) or path == ("run",):
        return None
    known = {name for option in options(path) for name in option.option_strings}
    given = [word.strip("[]").partition("=")[0] for word in words if word.strip("[").startswith("--")]
    return next((word for word in given if word not in known), None)


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_shells_are_given_is_their_language(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    assert all(path[-1] in text for path in LEAVES)
    assert "--up-to-snapshot" in text or "-l up-to-snapshot" in text
    if shutil.which(shell) is None:
        return  # its words are there; whether it likes them is seen where it is installed
    (tmp_path / "script").write_text(text)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


@pytest.mark.parametrize(
    ("typed", "expected", "missing"),
    [
        ("headwater li", {"lineage"}, {"demo"}),
        ("headwater lineage ", {"upstream", "delete"}, {"late"}),
        ("headwater -o json lineage u", {"upstream"}, set()),
        ("headwater lineage upstream --st", {"--store", "--state"}, {"--job"}),
        ("headwater lineage upstream -o ", {"text", "json", "dot", "mermaid", "html"}, {"--store"}),
        ("headwater lineage upstream -o j", {"json"}, {"dot"}),
        ("headwater completion -o ", {"text", "json"}, {"dot"}),
        ("headwater dev down --p", {"--purge"}, set()),
        ("headwater lineage delete --store ", set(), {"--job"}),
    ],
)
def test_bash_completes(
    typed: str, expected: set[str], missing: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    assert bash, "scripts of the repository need it"
    words = typed.split(" ")
    (tmp_path / "script").write_text(script("bash", capsys))
    asked = f"source {tmp_path}/script; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _headwater"
    done = subprocess.run(
        [bash, "-c", f'{asked}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    found = set(done.stdout.split())
    assert expected <= found
    assert not missing & found
