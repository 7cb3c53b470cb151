"""`headwater conformance`: judges a producer's OpenLineage events against scenarios whose truth is known."""

from __future__ import annotations

import sys
import threading
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput
from headwater.cli.service import stopping_on_signals

if TYPE_CHECKING:
    from headwater.conformance.model import ScenarioStep
    from headwater.conformance.verdicts import Finding


@command(
    "List the scenarios: small jobs of Spark, with what is true of each step.",
    "headwater conformance list",
)
def list_scenarios(_given: Namespace, output: CommandOutput) -> int:
    from headwater.conformance.model import load_scenarios  # noqa: PLC0415 - it imports pydantic

    rows = [(name, len(each.steps), each.title, each.hard) for name, each in load_scenarios().items()]
    output.table("scenarios", ("scenario", "steps", "title", "hard because"), rows)
    return Exit.DONE


def _scenario(parser: Flags) -> None:
    parser.word("scenario", str, "its name, as `headwater conformance list` has it", "SCENARIO")


@command(
    "Show a scenario: its script, and what is true of each step.",
    "headwater conformance show merge",
    flags=[_scenario],
)
def show(given: Namespace, output: CommandOutput) -> int:
    from headwater.conformance.collecting import script_text  # noqa: PLC0415
    from headwater.conformance.model import load_scenario  # noqa: PLC0415

    scenario = load_scenario(given.scenario)
    script = script_text(given.scenario)
    output.record("scenario", {"title": scenario.title, "hard because": scenario.hard}, given.scenario)
    for name, step in scenario.steps.items():
        output.record(f"step {name}", _truth(step), f"Step {name}: {step.does}")
    output.outcome(f"\n{script}", {"script": script})
    return Exit.DONE


def _truth(step: ScenarioStep) -> dict[str, object]:
    """What is said of the step; what isn't said of it isn't judged."""
    truth = step.model_dump(exclude_defaults=True, by_alias=True, exclude={"does"})
    lines = {
        key: [f"{name}: {_text(each)}" for name, each in value.items()] if isinstance(value, dict) else value
        for key, value in truth.items()
    }
    return {key.replace("_", " "): value for key, value in lines.items()}


def _text(value: object) -> str:
    return " + ".join(map(str, value)) or "nothing" if isinstance(value, tuple) else str(value)


def _directory(parser: Flags) -> None:
    parser.word("directory", Path, "a new or an empty one", "DIR")


@command(
    """Write the scripts of all scenarios into a directory. They need pyspark and Iceberg's package only.

Run them with your producer of lineage in the driver, on this machine.""",
    "headwater conformance script scenarios",
    flags=[_directory],
)
def script(given: Namespace, output: CommandOutput) -> int:
    from headwater.conformance.collecting import write_scripts  # noqa: PLC0415

    runner = write_scripts(given.directory.expanduser())
    submit = (
        "spark-submit --master 'local[2]' --packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0 "
        f"--conf … {runner} --to played"
    )
    words = f"The scripts are in {runner.parent}. Run them with your producer's settings:\n\n  {submit}\n\nThen:\n\n"
    then = "headwater conformance judge --events events.ndjson --observed played"
    output.outcome(f"{words}  {then}", {"directory": str(runner.parent), "run": submit, "judge": then})
    return Exit.DONE


def _require(given: Namespace, value: object, advice: str) -> None:
    """End the process where a flag is missing that has no default."""
    if not value:
        given.parser.error(advice)


def _add_strict(parser: Flags) -> None:
    parser.flags("events", str, "a file or directory of events, or a URL that has them", "FILE|URL|DIR")
    parser.flag("observed", Path, None, "the directory that run.py was given by --to", "DIR")
    parser.flags("scenario", str, "only this one", "SCENARIO")
    parser.switch("strict", "end with 1 also where something was missed")


@command(
    """Judge the OpenLineage events of any producer: which facts of each scenario were seen, missed, wrong, or silent.

Files have an event on each line, or a list of them. It ends with 1 where anything is wrong.""",
    "headwater conformance judge --events events.ndjson --observed played",
    "headwater conformance judge --events events.ndjson --observed played --scenario merge --strict -o json",
    flags=[_add_strict],
)
def judge_events(given: Namespace, output: CommandOutput) -> int:
    from headwater.conformance import judge, load_scenario, load_scenarios, read_observations  # noqa: PLC0415
    from headwater.conformance.collecting import read_events  # noqa: PLC0415
    from headwater.conformance.verdicts import Verdict  # noqa: PLC0415

    _require(given, given.events, "--events names the events, a file say")
    _require(given, given.observed, "--observed names the directory that run.py was given by --to")
    names = given.scenario
    scenarios = {name: load_scenario(name) for name in names} if names else load_scenarios()
    observations = read_observations(given.observed)
    events, others = read_events(given.events)
    findings = judge(scenarios, observations, events)
    if others:
        output.note(f"{others} documents are no events of OpenLineage, or have no time, and were passed over")
    if not_played := sorted(scenarios.keys() - observations.keys()):
        output.note(f"not played, so not judged: {', '.join(not_played)}")
    broken = [each for name, each in observations.items() if name in scenarios and each.error]
    for each in broken:
        output.note(f"{each.scenario} broke off when it was played, so it isn't judged: {_last_line(each.error)}")
    _show(findings, output, is_for_programs=given.output == "json")
    bad = {Verdict.WRONG, *((Verdict.MISSED, Verdict.SILENT) if given.strict else ())}
    has_failed = bool(broken) or any(finding.verdict in bad for finding in findings)
    return Exit.FAILED if has_failed else Exit.DONE


def _last_line(text: str | None) -> str:
    return (text or "").strip().rpartition("\n")[2]


def _show(findings: list[Finding], output: CommandOutput, *, is_for_programs: bool) -> None:
    """People see what isn't as it should be; programs get every fact."""
    from headwater.conformance.verdicts import (  # noqa: PLC0415
        Verdict,
        scores,
    )

    shown = [finding for finding in findings if is_for_programs or finding.verdict is not Verdict.SEEN]
    rows = [(each.verdict.value, each.scenario, each.step, each.fact, each.reason) for each in shown]
    title = "Facts that weren't seen"
    output.table("facts", ("verdict", "scenario", "step", "fact", "reason"), rows, title)
    counts = [
        (score.scenario, score.facts, score.seen, score.missed, score.wrong, score.silent) for score in scores(findings)
    ]
    output.table("scores", ("scenario", "facts", "seen", "missed", "wrong", "silent"), counts)


def _add_target_file(parser: Flags) -> None:
    parser.flag("address", _address, "127.0.0.1:5000", "where to listen; port 0 is any free one", "HOST:PORT")
    parser.flag("to", Path, None, "each event becomes a line of this file", "FILE")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise ValueError(f"{text!r} isn't HOST:PORT")
    return host, int(port)


@command(
    """Collect the events of a producer that sends over HTTP, until Ctrl-C or SIGTERM.

It answers 201 to what is posted to any path, /api/v1/lineage say.""",
    "headwater conformance listen --to events.ndjson",
    "headwater conformance listen --address 127.0.0.1:5055 --to events.ndjson",
    flags=[_add_target_file],
)
def listen(given: Namespace, output: CommandOutput) -> int:
    from headwater.conformance.collecting import EventCollector  # noqa: PLC0415

    _require(given, given.to, "--to names the file that events are written to")
    stop = threading.Event()
    host, port = given.address
    with stopping_on_signals(stop.set, "written"), EventCollector(host, port, given.to.expanduser()) as collector:
        output.note(f"Listening at http://{host}:{collector.port}; Ctrl-C ends it.")
        sys.stdout.flush()
        stop.wait()
    output.outcome(f"{collector.count} events are in {given.to}", {"events": collector.count, "file": str(given.to)})
    return Exit.DONE
