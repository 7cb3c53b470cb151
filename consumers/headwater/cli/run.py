"""`headwater run`: a script, a server or a main class with headwater in its Spark driver, and its end known."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import NoReturn

from headwater.cli.flags import Flags, pair
from headwater.cli.output import Output

_DESCRIPTION = """Run something with headwater in its Spark driver: a PySpark script, a Spark Connect server, the
Thrift server, or a main class of Java or Scala.

A script runs as `python job.py …` does it, and with the same exit code, but headwater is enabled whatever the
configuration says by default, and knows how the run ended: FINISHED, FAILED or KILLED. Without it a normal end is told
as ENDED, because the exit code of an interpreter can't be seen from inside.

A server runs until SIGTERM, Ctrl-C or SIGHUP stops it; both servers can be in one driver."""
_USAGE = """headwater run [--conf KEY=VALUE]… (job.py | -m MODULE) [ARGUMENT…]
       headwater run [--conf KEY=VALUE]… (--connect | --thrift)… [--port PORT] [-- FLAG-OF-SPARK-SUBMIT…]
       headwater run [--conf KEY=VALUE]… --class NAME app.jar [ARGUMENT…]"""
_FLAGS_WITH_VALUE = {"--conf", "--class", "--port"}
_PORTS = {"connect": "spark.connect.grpc.binding.port", "thrift": "spark.hadoop.hive.server2.thrift.port"}
"""The servers, and the property that says where each listens."""
_MOST_PORTS = 65_535


def main(arguments: Sequence[str], output: Output) -> int:
    """Never returns: ends as what it runs ends."""
    parser = build_parser()
    own, target = split(arguments)
    parsed = parser.parse_args(own)
    servers = [name for name in _PORTS if getattr(parsed, name)]
    main_class: str | None = getattr(parsed, "class")  # a word of Python's
    if servers and main_class is not None:
        parser.error(f"--{servers[0]} and --class: a driver hosts one or the other")
    if parsed.port is not None and len(servers) != 1:
        both = "for both servers say " + " and ".join(_PORTS.values()) + " by --conf"
        parser.error(f"--port is that of one server; {both}" if servers else "--port is for --connect or --thrift")
    if servers:
        _serve(parser, servers, parsed, target, output)
    if main_class is not None:
        _run_class(parser, main_class, parsed, target)
    _run_script(parser, parsed, target)


def _serve(parser: Flags, servers: Sequence[str], parsed: Namespace, target: Sequence[str], output: Output) -> NoReturn:
    from headwater.listeners import hosting  # noqa: PLC0415 - not for --help

    if target and not target[0].startswith("-"):
        parser.error(f"a server is hosted alone: what would {target[0]} do? Behind -- stand flags of spark-submit")
    made: dict[str, Callable[[], hosting.Server]] = {"connect": hosting.Connect, "thrift": hosting.Thrift}
    port = {} if parsed.port is None else {_PORTS[servers[0]]: str(parsed.port)}
    launch = hosting.Launch({**dict(parsed.conf), **port}, target)

    def ready(name: str, address: str) -> None:
        output.record(name, {"address": address})
        sys.stdout.flush()

    hosting.serve([made[name]() for name in servers], launch, ready)


def _run_class(parser: Flags, name: str, parsed: Namespace, target: Sequence[str]) -> NoReturn:
    from headwater.listeners import hosting  # noqa: PLC0415 - not for --help

    if not target:
        parser.error(f"say the jar that {name} is in: headwater run --class {name} app.jar")
    hosting.run_class(hosting.MainClass(name, target[0], target[1:]), hosting.Launch(dict(parsed.conf)))


def _run_script(parser: Flags, parsed: Namespace, target: Sequence[str]) -> NoReturn:
    from headwater.listeners.installation import script  # noqa: PLC0415 - not for --help

    if not target:
        parser.error(
            "say what to run: headwater run job.py, headwater run -m package.job, --connect, --thrift or --class"
        )
    try:
        program, rest = script.of_command(target)
    except script.ScriptError as e:
        parser.error(str(e))
    script.run(program, rest, dict(parsed.conf))


def build_parser() -> Flags:
    parser = Flags("headwater run", _DESCRIPTION)
    parser.usage = _USAGE
    parser.flags(
        "conf", pair, "a Spark property, as spark-submit takes it; what the script says goes before it", "KEY=VALUE"
    )
    parser.switch("connect", "host a Spark Connect server")
    parser.switch("thrift", "host the Thrift server, which JDBC and ODBC clients come to")
    parser.flag("port", _port, None, "where the server listens, else Spark's own default", "PORT")
    parser.flag("class", _named, None, "the main class, in the jar that follows", "NAME")
    return parser


def split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Our own flags, and what is to be run with all that is its own, however it looks."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] not in {"-m", "-", "--"}:
        at += 2 if arguments[at] in _FLAGS_WITH_VALUE else 1
    own, rest = arguments[:at], arguments[at:]
    return own, rest[1:] if rest[:1] == ["--"] else rest


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_PORTS:
        raise ValueError(f"{text!r} is no port: a number from 1 to {_MOST_PORTS}")
    return int(text)


def _named(text: str) -> str:
    if not text.strip():
        raise ValueError("a class has a name, as com.acme.Main")
    return text.strip()
