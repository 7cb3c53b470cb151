"""The console as a listener: what it looks like, and that nothing a stream does reaches the driver."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TextIO

import pytest

from headwater.publishers.console import ConsoleConfig, ConsoleFactory, ConsoleListener, LineWriter
from headwater.testing.examples import EXAMPLES
from headwater.testing.memory import MemoryContext

COMMIT = next(event for event in EXAMPLES if event.kind == "Committed")
GAP = next(event for event in EXAMPLES if event.kind == "Gap")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: TextIO, monkeypatch: pytest.MonkeyPatch, config: ConsoleConfig | None = None) -> bool:
    """Show one commit on this as standard error; whether all of it was written."""
    monkeypatch.setattr(sys, "stderr", stream)
    listener = ConsoleListener(config)
    listener.on_event(COMMIT)
    return listener.close(60)


def test_a_line_of_text_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    listener = ConsoleListener()
    listener.on_event(COMMIT)
    assert listener.close(60)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "2026-03-01 12:00:19.000Z  Committed         orders_etl.lake.sales.daily  lake.sales.daily OVERWRITE "
        "2781921774821920001→5179299526185056830 31,337 rows ← lake.sales.orders@8234827348273482734, "
        "lake.sales.customers@3051729675574597004, lake.sales.rates@7712340988123410055\n"
    )


def test_json_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    listener = ConsoleListener(ConsoleConfig(stream="stdout", format="json"))
    listener.on_event(COMMIT)
    listener.on_missed(3)
    assert listener.close(60)
    out, err = capsys.readouterr()
    printed, missed = map(json.loads, out.splitlines())
    assert (printed["kind"], printed["outputs"][0]["snapshot"]) == ("Committed", "5179299526185056830")
    assert missed == {"kind": None, "missed": "3"}
    assert err == ""


@pytest.mark.parametrize(
    ("stream", "color", "no_color", "expected"),
    [
        (Terminal, "auto", "", True),
        (Terminal, "auto", "1", False),
        (Terminal, "never", "", False),
        (io.StringIO, "auto", "", False),
        (io.StringIO, "always", "", True),
    ],
)
def test_colour_is_for_terminals(
    stream: Callable[[], io.StringIO], color: str, no_color: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    target = stream()
    assert shown(target, monkeypatch, ConsoleConfig.model_validate({"color": color}))
    assert ("\x1b[" in target.getvalue()) is expected


def closed() -> TextIO:
    stream = io.StringIO()
    stream.close()
    return stream


def closed_file() -> TextIO:
    stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [closed, closed_file, lambda: None])
def test_a_stream_that_is_gone_harms_nobody(stream: Callable[[], TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    assert not shown(stream(), monkeypatch), "it says that all was written"


def test_a_broken_pipe_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    raw = os.fdopen(writer, "wb", buffering=0)
    with io.TextIOWrapper(raw, encoding="utf-8", write_through=True) as stream:
        assert not shown(stream, monkeypatch)


def test_what_the_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with io.TextIOWrapper(os.fdopen(writer, "wb", buffering=0), encoding="ascii", write_through=True) as stream:
        assert shown(stream, monkeypatch)
    with os.fdopen(reader, "rb") as end:
        assert rb"\u2190 lake.sales.orders" in end.read()


@pytest.mark.slow
def test_an_interpreter_ends_though_nobody_reads() -> None:
    """Its standard error is a pipe that nobody ever empties, and the driver must not hang or crash on it."""
    program = (
        "from headwater.publishers.console import ConsoleListener;"
        "from headwater.testing.examples import EXAMPLES;"
        "listener = ConsoleListener();"
        "[listener.on_event(event) for _ in range(100) for event in EXAMPLES];"
        "print(listener.close(0.2))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.wait(timeout=60) == 0
        assert process.stdout
        assert process.stdout.read() == "False\n"


def test_what_could_not_be_written_is_reported_when_it_can_be() -> None:
    stream = io.StringIO()
    broken: list[bool] = [True]
    writer = LineWriter(lambda: None if broken[0] else stream, lambda count: f"missed {count}")
    for line in ("one", "two"):
        writer.write(line)
    assert writer.flush(60)
    broken[0] = False
    writer.write("three")
    assert not writer.close(60)
    assert stream.getvalue() == "missed 2\nthree\n"


def test_a_line_that_was_cut_off_is_not_continued_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk takes what it has room for, and refuses the rest."""
    write, room = os.write, [5]

    def limited(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(descriptor, data[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(os, "write", limited)
    with (tmp_path / "out").open("w", encoding="utf-8") as stream:
        writer = LineWriter(lambda: stream, lambda count: f"missed {count}")
        writer.write("a line that is cut off")
        writer.write("another")
        assert writer.flush(60)
        room[0] = 1000
        writer.write("next")
        assert not writer.close(60)
    assert (tmp_path / "out").read_text() == "a lin\nmissed 2\nnext\n"


def test_a_wrong_configuration_says_what_is_right() -> None:
    with ThreadPoolExecutor(1) as executor:
        for key, value, words in (
            ("stream", "paper", "spark.headwater.console.stream: .*'stderr' or 'stdout'"),
            ("colour", "never", r"did you mean spark\.headwater\.console\.color"),
        ):
            context = MemoryContext("console", {key: value}, executor)
            ConsoleFactory().create(context)
            assert re.search(words, context.problems[0][1])
