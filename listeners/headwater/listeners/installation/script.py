"""Running a script as `python script.py` and `python -m module` do, in this interpreter, and knowing how it ends."""

from __future__ import annotations

import atexit
import builtins
import io
import signal
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final, NoReturn

from headwater.config.spark_submit import spark_properties
from headwater.errors import TerminalError
from headwater.listeners import hook
from headwater.listeners.installation.contexts import contexts
from headwater.listeners.jobs.run_end import exit_code_of

_MAIN: Final = "__main__"


class ScriptError(TerminalError):
    """What is to be run can't be found, or isn't Python."""


@dataclass(frozen=True)
class Program:
    """A script or a module that can be run."""

    load: Callable[[], CodeType]
    """Errors in its syntax are its own, so it isn't compiled before it is run."""
    path: str
    """Becomes `sys.argv[0]`."""
    folder: str
    """Becomes `sys.path[0]`."""
    spec: ModuleSpec | None = None


def parse_command(words: Sequence[str]) -> tuple[Program, Sequence[str]]:
    """What `job.py argument…` or `-m module argument…` means: the program, and its arguments. A ScriptError if it
    can't be found."""
    if words[0] != "-m":
        return find_script(words[0]), words[1:]
    if len(words) == 1:
        raise ScriptError("say which module behind -m")
    return find_module(words[1]), words[2:]


def find_script(path: str) -> Program:
    """What `python path` runs: a file, or a folder or archive with a `__main__.py`."""
    file_name = str(Path(path).absolute())
    if Path(path).is_dir() or zipfile.is_zipfile(path):
        spec = PathFinder.find_spec(_MAIN, [file_name])
        if spec is None:
            raise ScriptError(f"can't find a {_MAIN}.py in {path}")
        return _program_of_spec(spec, folder=file_name, shown=path)
    try:
        with io.open_code(file_name) as file:
            source = file.read()
    except OSError as e:
        raise ScriptError(f"can't open {path}: {e.strerror}") from e
    return Program(
        lambda: compile(source, file_name, "exec", dont_inherit=True), path, str(Path(path).resolve().parent)
    )


def find_module(name: str) -> Program:
    """What `python -m name` runs; looked for from the working directory, which becomes its `sys.path[0]`."""
    folder = str(Path.cwd())
    _put_first(folder)
    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{name}.{_MAIN}")
    except (ImportError, ValueError) as e:
        raise ScriptError(f"can't find the module {name}: {e}") from e
    if spec is None:
        raise ScriptError(f"there is no module {name} that can be run: for a package write a {name}/{_MAIN}.py")
    return _program_of_spec(spec, folder=folder, shown=spec.origin or name)


def run(
    program: Program,
    arguments: Sequence[str],
    configuration: Mapping[str, str],
    *,
    judge: Callable[[int], int] = lambda code: code,
) -> NoReturn:
    """Run it as the main program with headwater enabled in the SparkContexts that it makes, and end as it ends, by a
    SystemExit. How its runs ended is reported when the interpreter ends, with its threads and what it registered.

    `judge` is called with the script's exit code when it is through, and returns the one to end with."""
    apply_configuration({hook.ENABLED: "true", **configuration})
    hook.watch()
    exits = contexts.exits
    exits.is_end_awaited = True
    sys.argv = [program.path, *arguments]
    _put_first(program.folder)
    try:
        exec(program.load(), _main_module(program).__dict__)  # noqa: S102 - running it is what was asked for
    except SystemExit as e:
        end = _judge_end(e, judge)
        exits.known_end = exits.end_of(end)
        raise end from None
    except BaseException as e:  # noqa: BLE001 - as the interpreter itself does
        exits.known_end = replace(exits.end_of(e), exit_code=None if isinstance(e, KeyboardInterrupt) else 1)
        _show(e)
        exits.final_signal = signal.SIGINT if isinstance(e, KeyboardInterrupt) else None
        raise _judge_end(SystemExit(1), judge) from None
    end = _judge_end(SystemExit(0), judge)
    exits.known_end = exits.end_of(end if end.code else None)
    raise end


def _judge_end(end: SystemExit, judge: Callable[[int], int]) -> SystemExit:
    code = exit_code_of(end)
    judged = judge(code)
    return end if judged == code else SystemExit(judged)


def apply_configuration(configuration: Mapping[str, str], submitted: Sequence[str] = ()) -> None:
    """Start JVMs with this configuration until this process ends: what the script itself says goes before it.
    `submitted` are further flags of spark-submit."""
    stack = ExitStack()
    stack.enter_context(spark_properties(configuration, submitted))
    atexit.register(stack.close)  # before Spark registers its end, and so behind it


def _program_of_spec(spec: ModuleSpec, *, folder: str, shown: str) -> Program:
    def load() -> CodeType:
        code = getattr(spec.loader, "get_code", lambda _: None)(spec.name)
        if not isinstance(code, CodeType):
            raise ScriptError(f"{shown} isn't written in Python")
        return code

    return Program(load, shown, folder, spec)


def _main_module(program: Program) -> ModuleType:
    """A new `__main__`, which stays: threads and exit handlers still use it when the script is through."""
    main = ModuleType(_MAIN)
    main.__file__ = str(Path(program.path).absolute()) if program.spec is None else program.spec.origin
    main.__spec__ = program.spec
    if program.spec is not None:
        main.__loader__ = program.spec.loader
        main.__package__ = program.spec.parent
    vars(main)["__builtins__"] = builtins
    sys.modules[_MAIN] = main
    return main


def _put_first(folder: str) -> None:
    """In the place of what stands there for `headwater` itself; with `python -P` nothing does."""
    if not getattr(sys.flags, "safe_path", False) and sys.path[:1] != [folder]:
        sys.path[:1] = [folder]


def _show(error: BaseException) -> None:
    """The traceback that the script would have had without us."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    try:
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
    except Exception:  # noqa: BLE001 - somebody's hook is broken
        sys.__excepthook__(type(error), error, traceback)
