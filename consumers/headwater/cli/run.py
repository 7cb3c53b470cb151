"""`headwater run`: a script, a server or a main class with headwater in its Spark driver, and its end known."""

from __future__ import annotations

import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, pair
from headwater.cli.output import CommandOutput
from headwater.config import from_file
from headwater.errors import ConfigurationError
from headwater.terminal import printable_lines

if TYPE_CHECKING:
    from headwater.lens import Lens, SessionLenses

_DESCRIPTION: Final = """Run something with headwater in its Spark driver: a PySpark script, a Spark Connect server, the
Thrift server, or a main class of Java or Scala.

A script runs as `python job.py …` does it, and with the same exit code, but headwater is enabled whatever the
configuration says by default, and knows how the run ended: FINISHED, FAILED or KILLED. Without it a normal end is
reported as ENDED, because the exit code of an interpreter can't be seen from inside.

A server runs until SIGTERM, Ctrl-C or SIGHUP stops it; both servers can be in one driver. Flags of headwater stand
before the script; all that stands behind it is the script's. Runs that were made are listed by `headwater job runs`."""
_USAGE: Final = """headwater run [--properties-file FILE] [--conf KEY=VALUE]… (job.py | -m MODULE) [ARGUMENT…]
       headwater run [--conf KEY=VALUE]… (--connect | --thrift)… [--port PORT] [-- FLAG-OF-SPARK-SUBMIT…]
       headwater run [--conf KEY=VALUE]… --class NAME app.jar [ARGUMENT…]"""
_FLAGS_WITH_VALUE: Final = {
    "--conf",
    "--properties-file",
    "--class",
    "--port",
    "--output",
    "-o",
    "--pin",
    "--redirect",
    "--allow",
    "--lens",
}
_TAG: Final = "spark.headwater.tags.lens"
_PORTS: Final = {"connect": "spark.connect.grpc.binding.port", "thrift": "spark.hadoop.hive.server2.thrift.port"}
"""The servers, and the property that says where each listens."""
_MOST_PORTS: Final = 65_535


def _flags(parser: Flags) -> None:
    parser.usage = _USAGE
    add_properties(parser)
    parser.switch("connect", "host a Spark Connect server")
    parser.switch("thrift", "host the Thrift server, for JDBC and ODBC clients")
    parser.flag("port", _port, None, "where the server listens, else Spark's own default", "PORT")
    parser.flags("pin", table_and_version, "read this table at this version (docs/lens.md)", "TABLE@VERSION")
    parser.flags("redirect", pair, "read and write the second table or namespace in place of the first", "TABLE=TABLE")
    parser.flags(
        "allow", str, "let this table or path be read and written as it is now; * stands for anything", "TABLE"
    )
    parser.flag("lens", str, "lens", "what the lens is called in errors and in the run's tags", "NAME")
    parser.flag("class", _checked_name, None, "the main class, in the jar that follows", "NAME")


def add_properties(parser: Flags) -> None:
    """Add the flags that take Spark properties."""
    text = "a Spark property, as spark-submit takes it; what the script sets wins"
    parser.flags("conf", pair, text, "KEY=VALUE")
    text = "a file of Spark properties, such as spark-defaults.conf; --conf wins"
    parser.flag("properties-file", Path, None, text, "FILE")


def properties_of(given: Namespace) -> dict[str, str]:
    """Return the Spark properties that the flags give."""
    return {**(from_file(given.properties_file) if given.properties_file else {}), **dict(given.conf)}


def split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Our own flags, and what is to be run with all that is its own, however it looks."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] not in {"-m", "-", "--"}:
        at += 2 if arguments[at] in _FLAGS_WITH_VALUE else 1
    own, rest = arguments[:at], arguments[at:]
    return own, rest[1:] if rest[:1] == ["--"] else rest


@command(
    _DESCRIPTION,
    "headwater run job.py 2026-01-31",
    "headwater run --conf spark.headwater.listeners=log -m mycompany.jobs.nightly",
    "headwater run --pin lake.ods.orders@8 --redirect lake.dws=scratch.dws job.py",
    "headwater run --connect --port 15002",
    "headwater run --class com.acme.Orders app.jar 2026-01-31",
    flags=[_flags],
    split=split,
    is_stream=True,
)
def run(given: Namespace, output: CommandOutput) -> int:
    """Never returns: ends as what it runs ends."""
    parser, target = given.parser, given.target
    servers = [name for name in _PORTS if getattr(given, name)]
    main_class: str | None = vars(given)["class"]  # a word of Python's
    if servers and main_class is not None:
        parser.error(f"--{servers[0]} and --class: a driver hosts one or the other")
    if given.port is not None and len(servers) != 1:
        both = "for both servers say " + " and ".join(_PORTS.values()) + " by --conf"
        parser.error(f"--port is that of one server; {both}" if servers else "--port is for --connect or --thrift")
    lens = _lens(given)
    if lens is not None and (servers or main_class is not None):
        parser.error(
            "--pin, --redirect and --allow are for scripts: a server's or a main class's sessions have no lens"
        )
    if servers:
        _serve(parser, servers, given, target, output)
    if main_class is not None:
        _run_class(parser, main_class, given, target)
    _run_script(parser, given, target, lens)


def _lens(given: Namespace) -> Lens | None:
    if not (given.pin or given.redirect or given.allow):
        return None
    from headwater.lens import Lens  # noqa: PLC0415 - not for --help

    pins, redirects = once_each("--pin", given.pin), once_each("--redirect", given.redirect)
    return Lens(name=given.lens, pins=pins, redirects=redirects, allowed=tuple(given.allow))


def table_and_version(text: str) -> tuple[str, str]:
    """Read `TABLE@VERSION`, for a flag that pins a table."""
    table, _, version = text.rpartition("@")
    if not table or not version:
        raise ValueError(f"{text!r} isn't TABLE@VERSION, such as lake.ods.orders@8")
    return table, version


def once_each(flag: str, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return what a flag says of each table. A ConfigurationError if it says two things of one."""
    found: dict[str, str] = {}
    for name, what in pairs:
        if found.setdefault(name, what) != what:
            raise ConfigurationError(f"{flag} says two things of {name}, {found[name]} and {what}: which one is meant?")
    return found


def _serve(
    parser: Flags, servers: Sequence[str], given: Namespace, target: Sequence[str], output: CommandOutput
) -> NoReturn:
    from headwater.listeners import hosting  # noqa: PLC0415 - not for --help

    if target and not target[0].startswith("-"):
        parser.error(f"a server is hosted alone: what would {target[0]} do? Behind -- stand flags of spark-submit")
    made: dict[str, Callable[[], hosting.HostedServer]] = {
        "connect": hosting.ConnectServer,
        "thrift": hosting.ThriftServer,
    }
    port = {} if given.port is None else {_PORTS[servers[0]]: str(given.port)}
    launch = hosting.Launch({**properties_of(given), **port}, target)

    starting = list(servers)

    def ready(name: str, address: str) -> None:
        output.record(starting.pop(0), {"address": address}, name)
        if not starting:
            output.finish()  # it is served until somebody stops it

    hosting.serve([made[name]() for name in servers], launch, ready)


def _run_class(parser: Flags, name: str, given: Namespace, target: Sequence[str]) -> NoReturn:
    from headwater.listeners import hosting  # noqa: PLC0415 - not for --help

    if not target:
        parser.error(f"say the jar that {name} is in: headwater run --class {name} app.jar")
    hosting.run_class(hosting.MainClass(name, target[0], target[1:]), hosting.Launch(properties_of(given)))


def _run_script(parser: Flags, given: Namespace, target: Sequence[str], lens: Lens | None) -> NoReturn:
    from headwater.listeners.installation import script  # noqa: PLC0415 - not for --help
    from headwater.listeners.installation.contexts import contexts  # noqa: PLC0415

    if not target:
        parser.error(
            "say what to run: headwater run job.py, headwater run -m package.job, --connect, --thrift or --class"
        )
    try:
        program, rest = script.parse_command(target)
    except script.ScriptError as e:
        hint = "; runs are listed by `headwater job runs`" if target[0] == "list" else ""
        parser.error(f"{e}{hint}")
    configuration = properties_of(given)
    if lens is None:
        script.run(program, rest, configuration)
    from headwater.lens import SessionLenses, put_into_sessions, refuse_remote_sessions  # noqa: PLC0415

    refuse_remote_sessions("headwater run")
    asked, lenses = lens, list[SessionLenses]()

    def put(_: object) -> None:
        lenses.append(put_into_sessions(asked))

    contexts.on_begin.append(put)
    script.run(program, rest, {_TAG: lens.name, **configuration}, judge=lambda code: _list_refusals(lenses, code))


def _list_refusals(lenses: Sequence[SessionLenses], code: int) -> int:
    """List what was refused to a script, which may have caught the errors and gone on. Returns the exit code: a script
    that went on without something did less than it does without the lens, and that isn't success."""
    threads: Any = threading
    threads._shutdown()  # noqa: SLF001 - waits for the script's threads, as the interpreter does when that is through
    try:
        found = [message for lens in lenses for message in lens.refusals()]
    except Exception as e:  # noqa: BLE001 - the script ended the JVM
        found = [f"something, perhaps: what it was can't be asked any more ({type(e).__name__})"]
    if not found:
        return code
    went_on = ". The script went on without it, so it did less here than it does without the lens" if not code else ""
    lines = [f"headwater: {len(found)} refused under the lens{went_on}:", *found]
    print("\n  ".join(printable_lines(line) for line in lines), file=sys.stderr)
    return code or Exit.JOB_FAILED


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_PORTS:
        raise ValueError(f"{text!r} is no port: a number from 1 to {_MOST_PORTS}")
    return int(text)


def _checked_name(text: str) -> str:
    if not text.strip():
        raise ValueError("a class has a name, as com.acme.Main")
    return text.strip()
