"""`headwater run`: a script as `python` runs it, with headwater in its Spark driver, and its exit known."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.cli.flags import Flags, pair
from headwater.cli.output import Output

_DESCRIPTION = """Run a PySpark script with headwater in its driver.

As `python job.py …` does it, and with the same exit code, but headwater is enabled whatever the configuration says by
default, and knows how the run ended: FINISHED, FAILED or KILLED. Without it a normal end is told as ENDED, because the
exit code of an interpreter can't be seen from inside."""
_FLAGS_WITH_VALUE = {"--conf"}


def main(arguments: Sequence[str], output: Output) -> int:  # noqa: ARG001 - the script speaks for itself
    """Never returns: ends as the script ends."""
    from headwater.listeners.installation import script  # noqa: PLC0415 - not for --help

    parser = build_parser()
    own, target = split(arguments)
    parsed = parser.parse_args(own)
    if not target:
        parser.error("say what to run: headwater run job.py, or headwater run -m package.job")
    try:
        program, rest = script.of_command(target)
    except script.ScriptError as e:
        parser.error(str(e))
    script.run(program, rest, dict(parsed.conf))


def build_parser() -> Flags:
    parser = Flags("headwater run", _DESCRIPTION)
    parser.usage = "headwater run [--conf KEY=VALUE]… (job.py | -m MODULE) [ARGUMENT…]"
    parser.flags(
        "conf", pair, "a Spark property, as spark-submit takes it; what the script says goes before it", "KEY=VALUE"
    )
    return parser


def split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Our own flags, and the script or `-m module` with all that is its own, however it looks."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] not in {"-m", "-", "--"}:
        at += 2 if arguments[at] in _FLAGS_WITH_VALUE else 1
    own, rest = arguments[:at], arguments[at:]
    return own, rest[1:] if rest[:1] == ["--"] else rest
