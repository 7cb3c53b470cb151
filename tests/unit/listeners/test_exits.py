"""What is seen of how a process ends, in processes of their own without Spark."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from typing import Any

import pytest

from headwater.events.jobs import JobStatus
from headwater.listeners.hosting.driver import end_of_jvm

# Who starts the tests in the background may have them ignore a hang-up, and children inherit that.
WATCH = """
import atexit, functools, os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from headwater.listeners.installation.exits import ExitWatcher
def say(what, ending): print([what, ending.status.value, ending.signal, ending.exit_code], flush=True)
exits = ExitWatcher(lambda ending: say("killed", ending))
atexit.register(lambda: say("exit", exits.end_at_exit()))
def leave(*a): print("mine", flush=True); sys.exit(4)
def stay(*a): print("mine", flush=True)
def fail(*a): raise ValueError("no")
class Leaving:
    def leave(self, *a): leave()
    def __call__(self, *a): leave()
def kill(number=15): os.kill(os.getpid(), number)
def stopping():
    try: kill(); kill()
    finally: say("stop", exits.end_at_stop() or exits.end_at_exit())
"""
TERM, HUP = signal.SIGTERM, signal.SIGHUP


def python(*lines: str) -> tuple[int, list[Any]]:
    """The exit code, and what was printed, lists as lists."""
    code = WATCH + "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    said = [ast.literal_eval(line) if line.startswith("[") else line for line in done.stdout.splitlines()]
    return done.returncode, said


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["leave", "Leaving()"])
def test_who_exits_out_of_a_handler_was_killed_by_the_signal(handler: str) -> None:
    code, said = python(f"signal.signal(15, {handler})", "exits.watch()", "kill()")
    assert (code, said) == (4, ["mine", ["exit", "KILLED", TERM, 4]])


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["leave", "Leaving().leave", "Leaving()", "functools.partial(leave, 1)"])
def test_a_handler_that_is_set_after_ours_is_seen_where_its_exception_is(handler: str) -> None:
    code, said = python("exits.watch()", f"signal.signal(15, {handler})", "stopping()")
    assert code == 4
    assert said[:2] == ["mine", ["stop", "KILLED", TERM, 4]]


@pytest.mark.slow
def test_what_a_handler_raises_that_nobody_handles_is_shown_and_ends_it_by_the_signal() -> None:
    code, said = python("exits.watch()", "signal.signal(1, fail)", "kill(1)")
    assert (code, said) == (1, [["exit", "KILLED", HUP, None]])


@pytest.mark.slow
def test_who_comes_back_from_a_handler_goes_on_and_nobody_knows_how_it_ends() -> None:
    code, said = python("signal.signal(15, stay)", "exits.watch()", "kill()", "sys.exit(3)")
    assert (code, said) == (3, ["mine", ["exit", "ENDED", None, None]])


@pytest.mark.slow
def test_who_goes_on_after_an_exit_out_of_a_handler_was_not_killed() -> None:
    lines = ["try: kill()", "except SystemExit: pass", "say('stop', exits.end_at_stop())"]
    code, said = python("signal.signal(15, leave)", "exits.watch()", *lines)
    assert (code, said) == (0, ["mine", ["stop", "ENDED", None, None], ["exit", "ENDED", None, None]])


@pytest.mark.slow
def test_without_a_handler_it_dies_of_the_signal() -> None:
    assert python("exits.watch()", "kill()") == (-TERM, [["killed", "KILLED", TERM, None]])


@pytest.mark.slow
def test_a_handler_of_theirs_that_calls_ours_decides() -> None:
    lines = ["old = signal.getsignal(15)", "signal.signal(15, lambda *a: (old(*a), stay()))", "kill()"]
    assert python("exits.watch()", *lines) == (0, ["mine", ["exit", "ENDED", None, None]])


@pytest.mark.slow
@pytest.mark.parametrize("second", [15, 1])
def test_a_second_signal_while_the_end_is_reported_waits_for_nothing(second: int) -> None:
    lines = [
        f"def tell(ending): kill({second}); say('told', ending)",
        "exits = ExitWatcher(tell)",
        "exits.watch()",
        "kill()",
    ]
    assert python(*lines) == (-second, [])


@pytest.mark.slow
def test_what_is_ignored_stays_ignored_and_all_is_given_back() -> None:
    lines = [
        "signal.signal(1, signal.SIG_IGN); signal.signal(15, leave)",
        "exits.watch(); exits.watch()",
        "print(signal.getsignal(1) is signal.SIG_IGN, signal.getsignal(15) is leave, signal.getsignal(15).__name__)",
        "exits.unwatch()",
        "print(signal.getsignal(15) is leave, sys.excepthook is sys.__excepthook__)",
    ]
    code, said = python(*lines)
    assert (code, said[:2]) == (0, ["True False leave", "True True"])


# How a run ended whose JVM ended by itself.


@pytest.mark.parametrize(
    ("code", "status", "exit_code", "number"),
    [
        (0, JobStatus.FINISHED, 0, None),
        (3, JobStatus.FAILED, 3, None),
        (-9, JobStatus.KILLED, 137, 9),
        (None, JobStatus.ENDED, 1, None),
    ],
)
def test_the_exit_code_of_a_jvm_says_how_the_run_ended(
    code: int | None, status: JobStatus, exit_code: int, number: int | None
) -> None:
    ending = end_of_jvm(code)
    assert (ending.status, ending.exit_code, ending.signal) == (status, exit_code, number)
