"""The two looks of a command's results, and flags with their environment variables."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from uuid import UUID

import pytest

from headwater.cli.flags import Flags, count, moment, one_of, pair
from headwater.cli.output import OUTPUTS, JsonOutput, TextOutput, shown

ROWS = [("orders", 12, None), ("a long name", 3, 2.5)]


class Color(Enum):
    RED = "red"


NOON = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)


def test_text_tables_are_aligned_and_numbers_stand_right() -> None:
    out = io.StringIO()
    TextOutput(out).table("tables", ["name", "rows", "share"], ROWS, "Tables of etl")
    assert out.getvalue().splitlines() == [
        "Tables of etl",
        "  name         rows  share",
        "  orders         12      -",
        "  a long name     3    2.5",
    ]


def test_text_of_an_empty_table_says_so() -> None:
    out = io.StringIO()
    TextOutput(out).table("tables", ["name", "rows"], [])
    assert out.getvalue() == "Tables\n  none\n"


def test_text_records() -> None:
    out = io.StringIO()
    TextOutput(out).record("job", {"name": "orders_etl", "run": None})
    assert out.getvalue() == "Job\n  name  orders_etl\n  run   -\n"


def test_json_is_one_document_and_notes_stay_out_of_it() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = JsonOutput(out, err)
    output.note("working")
    output.record("job", {"name": "ü", "last run": NOON, "HEADWATER_STORE": "u", "took": timedelta(minutes=2)}, "A job")
    output.table("failed tables", ["name", "rows", "share"], ROWS, "What failed")
    output.outcome("it is done", {"is done": True, "path": Path("/x"), "ids": (UUID(int=1),), "why": Color.RED})
    assert out.getvalue() == "", "nothing is printed before the answer is whole"
    output.finish()
    output.finish()
    output.error(ValueError("no"))
    (line,) = out.getvalue().splitlines()
    assert json.loads(line) == {
        "job": {"name": "ü", "last_run": "2026-01-02T12:00:00Z", "HEADWATER_STORE": "u", "took": 120.0},
        "failed_tables": [dict(zip(("name", "rows", "share"), row, strict=True)) for row in ROWS],
        "is_done": True,
        "path": "/x",
        "ids": ["00000000-0000-0000-0000-000000000001"],
        "why": "red",
    }
    *notes, error = err.getvalue().splitlines()
    assert notes == ["working", "it is done"]
    assert json.loads(error) == {"error": "ValueError", "message": "no"}


@pytest.mark.parametrize(("has_failed", "expected"), [(False, "{}\n"), (True, "")])
def test_an_answer_without_anything_is_a_document_too_unless_it_failed(has_failed: bool, expected: str) -> None:
    out = io.StringIO()
    JsonOutput(out).finish(has_failed=has_failed)
    assert out.getvalue() == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (False, "-"),
        (True, "yes"),
        ([], "-"),
        (["a", 1], "a, 1"),
        (NOON, "2026-01-02T12:00:00Z"),
        (timedelta(days=3, hours=4, minutes=9), "3 d 4 h"),
        (0, "0"),
    ],
)
def test_values_as_people_read_them(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_row_of_the_wrong_width_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="zip"):
        OUTPUTS[name](io.StringIO(), io.StringIO()).table("t", ["a", "b"], [(1, 2), (3,)])


def parser() -> Flags:
    flags = Flags("program", "does things")
    flags.flag("batch-size", int, "5", "how many at once, 100 % of them")
    flags.flag("look", one_of(["plain", "rich"]), "plain", "how it looks")
    flags.flag("store", str, None, "where it is")
    return flags


def test_a_flag_beats_its_variable_beats_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parser().parse_args([]).store is None
    monkeypatch.setenv("HEADWATER_STORE", "u")
    assert parser().parse_args([]).store == "u"
    assert parser().parse_args(["--store", "v"]).store == "v"
    monkeypatch.setenv("HEADWATER_STORE", "")
    assert parser().parse_args([]).store is None, "an empty variable says nothing"


def test_only_flags_of_the_list_have_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_BATCH_SIZE", "7")
    monkeypatch.setenv("HEADWATER_LOOK", "odd")
    assert (parser().parse_args([]).batch_size, parser().parse_args([]).look) == (5, "plain")


def test_the_help_names_variables_and_defaults() -> None:
    text = " ".join(parser().format_help().split())
    assert "100 % of them [default 5]" in text
    assert "where it is [HEADWATER_STORE]" in text


def test_flags_are_not_guessed_from_their_beginnings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(["--batch", "9"])
    assert "--batch" in capsys.readouterr().err


def full_parser() -> Flags:
    made = parser()
    made.flags("kafka", pair, "how", "KEY=VALUE")
    made.switch("loud", "how loud")
    return made


def test_many_values_come_from_a_variable_too(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"batch_size": 5, "look": "plain", "store": None, "kafka": [], "loud": False}
    assert vars(full_parser().parse_args([])) == nothing
    monkeypatch.setenv("HEADWATER_WRITER_KAFKA", "a=1,2\n\nb=x y\n")
    monkeypatch.setenv("HEADWATER_LOUD", "yes")
    found = full_parser().parse_args([])
    assert (found.kafka, found.loud) == ([("a", "1,2"), ("b", "x y")], False)
    given = full_parser().parse_args(["--kafka", "c=", "--kafka", "d=1"])
    assert given.kafka == [("c", ""), ("d", "1")], "what is given goes before the variable"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--loock", "rich"], "no flag '--loock'; did you mean '--look'?"),
        (["--batchsize=7"], "no flag '--batchsize'; did you mean '--batch-size'?"),
        (["--zzz"], "no flag '--zzz'; there are: --help, --batch-size, --look, --store, --kafka, --loud"),
        (["--look", "plian"], "argument --look: no value 'plian'; did you mean 'plain'?"),
        (["word"], "program takes no 'word'; see program --help"),
        (["--kafka", "x"], "argument --kafka: 'x' isn't KEY=VALUE (given as --kafka or HEADWATER_WRITER_KAFKA)"),
    ],
)
def test_a_slip_of_the_pen_is_reported_with_what_was_meant(
    given: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        full_parser().parse_args(given)
    assert f"error: {words}" in capsys.readouterr().err


def test_a_wrong_variable_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HEADWATER_WRITER_KAFKA", "x")
    with pytest.raises(SystemExit, match="2"):
        full_parser().parse_args([])
    assert "'x' isn't KEY=VALUE (given as --kafka or HEADWATER_WRITER_KAFKA)" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["yesterday", "2026", "", "-3d", "1 fortnight"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="isn't a time: write 2026-03-01"):
        moment(text)


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "²"])
def test_what_is_no_number_of_things(text: str) -> None:
    with pytest.raises(ValueError, match="write 1 or more"):
        count(text)
