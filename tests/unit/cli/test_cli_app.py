"""The command line itself: what it says, and the exit code of every way to end."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from argparse import Namespace
from importlib.metadata import version

import pytest

from headwater.cli import main
from headwater.cli.app import call
from headwater.cli.bus import bus_address
from headwater.cli.commands import TREE, Leaf, command
from headwater.cli.exits import MEANINGS, Exit
from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput
from headwater.cli.service import logging_as
from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.publishers.log import data_directory


def _word(parser: Flags) -> None:
    parser.word("word", str, "anything", "WORD")


@command("Say what was given.", "headwater speak hello", flags=[_word])
def speak(given: Namespace, output: CommandOutput) -> int:
    output.record("given", {"word": given.word})
    return 0


@command("Fail in the way that is named.", "headwater fail terminal", flags=[_word])
def fail(given: Namespace, output: CommandOutput) -> int:
    ways: dict[str, BaseException] = {
        "configuration": ConfigurationError("no such key"),
        "transient": TransientError("the broker is away"),
        "terminal": TerminalError("corrupt"),
        "interrupt": KeyboardInterrupt(),
        "pipe": BrokenPipeError(),
    }
    if given.word == "half":
        output.record("half", {"of": "it"})
        raise ways["transient"]
    raise ways[given.word]


@pytest.fixture(autouse=True)
def commands_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "headwater.cli.of_tests", sys.modules[__name__])
    monkeypatch.setitem(TREE.children, "speak", Leaf("of_tests:speak", "say what was given"))
    monkeypatch.setitem(TREE.children, "fail", Leaf("of_tests:fail", "fail"))


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_version(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == f"headwater {version('headwater')}\n"


def test_version_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["headwater"] == version("headwater")


def test_every_exit_code_has_a_meaning_which_the_help_tells(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(MEANINGS) == set(Exit)
    assert main(["help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {code.value} " in text and meaning in text for code, meaning in MEANINGS.items())


@pytest.mark.parametrize("words", [[], ["lineage"], ["-o", "json", "store"]])
def test_without_a_command_the_help_is_shown_and_the_usage_is_wrong(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == Exit.USAGE
    out, err = capsys.readouterr()
    assert (out, "commands:" in err) == ("", True)


@pytest.mark.parametrize("words", [["speak", "x"], ["speak", "--help"]])
def test_help_is_the_same_both_ways(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([words[0], "--help"])
    behind = capsys.readouterr().out
    assert main(["help", words[0]]) == 0
    assert capsys.readouterr().out == behind


def test_help_of_what_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "lineage", "upstrem"]) == Exit.CONFIGURATION
    assert "did you mean `headwater help lineage upstream`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "json", "speak", "x"],
        ["--output", "json", "speak", "x"],
        ["--output=json", "speak", "x"],
        ["speak", "-o", "json", "x"],
        ["speak", "x", "-ojson"],
        ["-o", "text", "speak", "x", "--output=json"],
    ],
)
def test_the_output_is_chosen_before_or_behind_the_command(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == {"given": {"word": "x"}}


@pytest.mark.parametrize("words", [["speak", "x", "-o", "dot"], ["-o", "dot", "speak", "x"], ["-o", "jsno", "speak"]])
def test_an_output_that_a_command_has_not(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "json" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("way", "code", "said"),
    [
        ("configuration", Exit.CONFIGURATION, "headwater: no such key\n"),
        ("transient", Exit.TRY_AGAIN, "headwater: the broker is away\n"),
        ("terminal", Exit.FAILED, "headwater: corrupt\n"),
        ("interrupt", Exit.INTERRUPTED, ""),
    ],
)
def test_how_a_command_failed_is_reported_by_the_code(
    way: str, code: Exit, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fail", way]) == code
    assert capsys.readouterr().err == said


def test_what_was_given_before_a_failure_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fail", "half", "-o", "json"]) == Exit.TRY_AGAIN
    out, err = capsys.readouterr()
    assert (json.loads(out), json.loads(err)["error"]) == ({"half": {"of": "it"}}, "TransientError")
    assert main(["fail", "terminal", "-o", "json"]) == Exit.FAILED
    assert capsys.readouterr().out == ""


def test_a_package_that_a_command_needs_and_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Where it is imported by the command's work, and not by its module."""

    @command("fails", "headwater fails")
    def fails(given: Namespace, output: CommandOutput) -> int:
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    assert call(("fails",), fails, [], None) == Exit.FAILED
    said = capsys.readouterr().err
    assert said.startswith("headwater: No module named 'pyarrow': install pyarrow into this Python")
    assert "Traceback" not in said


def test_the_users_own_log_is_a_bus_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert bus_address("log") == f"log:{data_directory()}"


def test_an_error_nobody_meant_keeps_its_traceback() -> None:
    with pytest.raises(KeyError):
        main(["fail", "unheard of"])


@pytest.mark.slow
def test_an_output_nobody_reads_ends_quietly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater.cli", "completion", "fish"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == Exit.PIPE_CLOSED


def test_the_module_is_the_command() -> None:
    printed = subprocess.check_output([sys.executable, "-m", "headwater.cli", "--version"], text=True)
    assert printed == f"headwater {version('headwater')}\n"


# The log of a process shows no secret, also where an error of somebody else's code holds one.


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_hides_secrets(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    with logging_as(form, "info"):
        error = RuntimeError("POST https://writer:hunter22@catalog/events failed")
        logging.getLogger("headwater.forwarders").warning("it failed on events", exc_info=error)
    shown = capsys.readouterr().err
    assert "RuntimeError: POST *********(redacted)" in shown, "what comes behind may belong to it"
    assert "hunter22" not in shown
