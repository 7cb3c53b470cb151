"""The two looks of a command's results, and flags with their environment variables."""

from __future__ import annotations

import io
import json
import re
from datetime import datetime, timezone

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of, pair, variable_of
from headwater.cli.output import OUTPUTS, JsonOutput, TextOutput

ROWS = [("orders", 12, None), ("a long name", 3, 2.5)]
NOON = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)


def test_text_tables_are_aligned_and_numbers_stand_right() -> None:
    out = io.StringIO()
    TextOutput(out).table("tables", ["name", "rows", "share"], ROWS)
    assert out.getvalue().splitlines() == [
        "tables",
        "  name         rows  share",
        "  orders         12      -",
        "  a long name     3    2.5",
    ]


def test_text_of_an_empty_table_says_so() -> None:
    out = io.StringIO()
    TextOutput(out).table("tables", ["name", "rows"], [])
    assert out.getvalue() == "tables\n  none\n"


def test_text_records() -> None:
    out = io.StringIO()
    TextOutput(out).record("job", {"name": "orders_etl", "run": None})
    assert out.getvalue() == "job\n  name  orders_etl\n  run   -\n"


def test_json_is_one_document_per_line_and_notes_stay_out_of_it() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = JsonOutput(out, err)
    output.note("working")
    output.record("job", {"name": "ü", "at": NOON})
    output.table("tables", ["name", "rows", "share"], ROWS)
    output.error(ValueError("no"))
    record, table = map(json.loads, out.getvalue().splitlines())
    assert record == {"title": "job", "record": {"name": "ü", "at": "2026-01-02 12:00:00+00:00"}}
    assert table["rows"] == [dict(zip(("name", "rows", "share"), row, strict=True)) for row in ROWS]
    note, error = err.getvalue().splitlines()
    assert note == "working"
    assert json.loads(error) == {"error": "ValueError", "message": "no"}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_row_of_the_wrong_width_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="zip"):
        OUTPUTS[name](io.StringIO(), io.StringIO()).table("t", ["a", "b"], [(1, 2), (3,)])


def parser() -> Flags:
    flags = Flags("program", "does things")
    flags.flag("batch-size", int, "5", "how many at once, 100 % of them")
    flags.flag("look", one_of(["plain", "rich"]), "plain", "how it looks")
    return flags


def test_a_flag_beats_its_variable_beats_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parser().parse_args([]).batch_size == 5
    monkeypatch.setenv(variable_of("batch-size"), "7")
    assert parser().parse_args([]).batch_size == 7
    assert parser().parse_args(["--batch-size", "9"]).batch_size == 9


@pytest.mark.parametrize("given", [["--look", "odd"], []])
def test_a_wrong_value_is_told_wherever_it_comes_from(
    given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWATER_LOOK", "odd")
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(given)
    assert "no value 'odd'; there are: plain, rich (given as --look or HEADWATER_LOOK)" in capsys.readouterr().err


def test_the_help_names_variables_and_defaults() -> None:
    text = " ".join(parser().format_help().split())
    assert "100 % of them [HEADWATER_BATCH_SIZE, default 5]" in text
    assert "[HEADWATER_LOOK, default plain]" in text


def test_flags_are_not_guessed_from_their_beginnings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(["--batch", "9"])
    assert "--batch" in capsys.readouterr().err


def full_parser() -> Flags:
    made = parser()
    made.flags("name", pair, "whom", "KEY=VALUE")
    made.switch("loud", "how loud")
    return made


def test_many_values_and_switches_come_from_variables_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert vars(full_parser().parse_args([])) == {"batch_size": 5, "look": "plain", "name": [], "loud": False}
    monkeypatch.setenv("HEADWATER_NAME", "a=1,2\n\nb=x y\n")
    monkeypatch.setenv("HEADWATER_LOUD", "yes")
    found = full_parser().parse_args([])
    assert (found.name, found.loud) == ([("a", "1,2"), ("b", "x y")], True)
    given = full_parser().parse_args(["--name", "c=", "--name", "d=1"])
    assert given.name == [("c", ""), ("d", "1")], "what is given goes before the variable"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--loock", "rich"], "no flag '--loock'; did you mean '--look'?"),
        (["--batchsize=7"], "no flag '--batchsize'; did you mean '--batch-size'?"),
        (["--zzz"], "no flag '--zzz'; there are: --help, --batch-size, --look, --name, --loud"),
        (["--look", "plian"], "no value 'plian'; did you mean 'plain'? (given as --look or HEADWATER_LOOK)"),
        (["word"], "nothing is known to do with 'word'"),
        (["--name", "x"], "'x' isn't KEY=VALUE (given as --name or HEADWATER_NAME)"),
    ],
)
def test_a_slip_of_the_pen_is_told_with_what_was_meant(
    given: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        full_parser().parse_args(given)
    assert f"error: {words}" in capsys.readouterr().err.replace("argument --look: ", "").replace(
        "argument --name: ", ""
    )


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("HEADWATER_NAME", "x", "'x' isn't KEY=VALUE (given as --name or HEADWATER_NAME)"),
        ("HEADWATER_LOUD", "perhaps", "HEADWATER_LOUD is neither true nor false"),
    ],
)
def test_a_wrong_variable_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit, match="2"):
        full_parser().parse_args([])
    assert words in capsys.readouterr().err


WORDS = [[], ["up"], ["events"], ["events", "cat"], ["events", "tail"], ["demo"], ["run"], ["spool"]] + [
    ["spool", action] for action in ("status", "verify", "ship", "rename", "drop")
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_flag_names_its_variable(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    text = capsys.readouterr().out.partition("options:")[2]
    flags = re.findall(r"^  (?:-h, )?--([a-z-]+)(.*?)(?=^  -|^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert "help" in dict(flags)
    for name, said in flags:
        assert name in {"help", "version"} or f"[{variable_of(name)}" in " ".join(said.split()), name


@pytest.mark.parametrize("words", [["evnets"], ["events", "tial"], ["spool", "lsit"], ["demo", "--x"], ["events"]])
def test_wrong_usage_has_one_exit_code(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == Exit.USAGE
