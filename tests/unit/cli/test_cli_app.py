"""The command line itself: what it says, and the exit code of every way to end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version

import pytest

from headwater.cli import main
from headwater.cli.commands import COMMANDS, Command
from headwater.cli.exits import MEANINGS, Exit
from headwater.cli.output import Output
from headwater.errors import ConfigurationError, TerminalError, TransientError


def speak(arguments: Sequence[str], output: Output) -> int:
    """A command that tells what it was given."""
    output.record("given", {"arguments": list(arguments)})
    return 0


def fail(arguments: Sequence[str], output: Output) -> int:
    """A command that fails in the way its argument names."""
    ways: dict[str, BaseException] = {
        "configuration": ConfigurationError("no such key"),
        "transient": TransientError("the broker is away"),
        "terminal": TerminalError("corrupt"),
        "interrupt": KeyboardInterrupt(),
        "pipe": BrokenPipeError(),
    }
    raise ways[arguments[0]]


@pytest.fixture(autouse=True)
def commands_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    here = sys.modules[__name__]
    monkeypatch.setitem(sys.modules, "cli_commands_for_tests", here)
    monkeypatch.setitem(COMMANDS, "speak", Command("cli_commands_for_tests:speak", "tell what was given"))
    monkeypatch.setitem(COMMANDS, "fail", Command("cli_commands_for_tests:fail", "fail"))


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"headwater {version('headwater')}\n"


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"  {name} " in text and command.summary in text for name, command in COMMANDS.items())
    assert all(str(code.value) in text and meaning in text for code, meaning in MEANINGS.items())
    assert "HEADWATER_OUTPUT" in text


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Exit)


def test_without_a_command_the_help_is_shown_and_the_usage_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == Exit.USAGE
    assert "commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "said"), [("demmo", "did you mean 'demo'?"), ("zzz", "there are: datasets, dead-letters")]
)
def test_an_unknown_command_names_the_nearest(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([typed])
    assert ended.value.code == Exit.USAGE
    assert said in capsys.readouterr().err


def test_a_command_gets_its_own_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--output", "json", "speak", "--output", "x", "--help"]) == 0
    assert capsys.readouterr().out == '{"title": "given", "record": {"arguments": ["--output", "x", "--help"]}}\n'


@pytest.mark.parametrize(
    ("way", "code", "said"),
    [
        ("configuration", Exit.CONFIGURATION, "headwater: no such key\n"),
        ("transient", Exit.TRY_AGAIN, "headwater: the broker is away\n"),
        ("terminal", Exit.FAILED, "headwater: corrupt\n"),
        ("interrupt", Exit.INTERRUPTED, ""),
    ],
)
def test_how_a_command_failed_is_told_by_the_code(
    way: str, code: Exit, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fail", way]) == code
    assert capsys.readouterr().err == said


def test_an_error_nobody_meant_keeps_its_traceback() -> None:
    with pytest.raises(KeyError):
        main(["fail", "unheard of"])


def test_an_output_nobody_reads_ends_quietly() -> None:
    program = (
        "import sys; from headwater.cli import app, commands; sys.modules['p'] = sys.modules['__main__'];"
        "say = lambda arguments, output: [output.note('x' * 1000) for _ in range(1000)] and 0;"
        "commands.COMMANDS['say'] = commands.Command('p:say', '');"
        "sys.exit(app.main(['say']))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == Exit.PIPE_CLOSED


def test_the_module_is_the_command() -> None:
    told = subprocess.check_output([sys.executable, "-m", "headwater.cli", "--version"], text=True)
    assert told == f"headwater {version('headwater')}\n"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_of_the_table_can_be_called(name: str) -> None:
    assert callable(COMMANDS[name].load())
