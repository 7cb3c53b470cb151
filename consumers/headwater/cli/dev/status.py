"""`headwater dev status`: what runs on this machine, and how it is.

What is printed when it runs: how to configure Spark, and how to ask the store.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Final

from headwater.cli.commands import command
from headwater.cli.dev.home import DevState, Home, Part, Phase, add_home
from headwater.cli.dev.supervisor import probe
from headwater.cli.exits import Exit
from headwater.cli.output import CommandOutput
from headwater.local.addresses import query_fault
from headwater.local.kafka import metadata_fault
from headwater.local.process_identity import ProcessIdentity

DATABASES = ("postgres", "mariadb")


def spark_conf(broker: str, topic: str) -> dict[str, str]:
    """Return what a driver needs; the topic where it isn't the usual one."""
    from headwater.publishers.kafka.config import DEFAULT_TOPIC  # noqa: PLC0415

    conf = {"spark.headwater.enabled": "true", "spark.headwater.listeners": "kafka"}
    conf["spark.headwater.kafka.bootstrap.servers"] = broker
    if topic != DEFAULT_TOPIC:
        conf["spark.headwater.kafka.topic"] = topic
    return conf


def as_file(conf: Mapping[str, str]) -> str:
    width = max(map(len, conf))
    return "".join(f"{key:<{width}}  {value}\n" for key, value in conf.items())


def store_of(state: DevState) -> str:
    return next((part.address for name, part in state.parts.items() if name in DATABASES), "")


def broker_of(state: DevState) -> str:
    return state.parts["kafka"].address if "kafka" in state.parts else ""


def addresses(home: Home, state: DevState) -> dict[str, object]:
    """Return where everything is, by the names of variables."""
    writer = state.parts.get("writer")
    return {
        "HOME": str(home.path),
        "KAFKA": broker_of(state),
        "HEADWATER_STORE": store_of(state),
        "WRITER": writer.address if writer else "",
        "SPARK_CONF": str(home.conf),
    }


def instruct(output: CommandOutput, home: Home, state: DevState) -> None:
    """Give the addresses, and print what to paste."""
    output.record("addresses", addresses(home, state), "It runs")
    output.note(
        "\nInstall headwater into the Python of the Spark driver, and put into spark-defaults.conf, or give by --conf:"
    )
    output.note("")
    output.note(home.conf.read_text() if home.conf.exists() else "")
    output.note(f"Check it:  headwater doctor --properties-file {shlex.quote(str(home.conf))}\n")
    output.note("Ask it:\n")
    output.note(f"export HEADWATER_STORE={shlex.quote(store_of(state))}")
    output.note("headwater job runs")
    output.note("headwater table history CATALOG.DATABASE.TABLE")
    output.note("headwater lineage upstream CATALOG.DATABASE.TABLE --commit")


_COLUMNS: Final = ("part", "state", "process", "address", "restarts", "log", "fault")
_METRIC: Final = "headwater_writer_"
_WELL: Final = "well"


@command(
    """Show what `headwater dev up` has running on this machine, where, and how it is: each server is asked.

Exit code 0 if all is well, 75 if something starts or doesn't answer just now, 1 if nothing runs.""",
    "headwater dev status",
    "headwater dev status -o json",
    flags=[add_home],
)
def status(given: Namespace, output: CommandOutput) -> int:
    home = Home.of(given.home)
    state = home.state()
    if state is None or not state.has_supervisor:
        return _nothing_runs(home, state, output)
    faults = {name: fault for name, part in state.parts.items() if part.is_ready and (fault := _fault(name, part))}
    rows = [(name, *_row(part, name in faults), faults.get(name)) for name, part in state.parts.items()]
    output.outcome(f"{state.phase.value} since {state.since}", {"phase": state.phase, "since": state.since})
    output.record("addresses", addresses(home, state))
    output.table("servers", _COLUMNS, rows)
    writer = state.parts.get("writer")
    if writer is not None and writer.is_ready:
        output.record("writer", dict(_figures(writer)))
    is_well = state.phase is Phase.RUNNING and all(row[1] == _WELL for row in rows)
    return Exit.DONE if is_well else Exit.TRY_AGAIN


def _nothing_runs(home: Home, state: DevState | None, output: CommandOutput) -> int:
    words = [f"nothing runs in {home.path}"]
    if state is not None:
        if state.phase is not Phase.STOPPED:
            pid = state.supervisor.get("pid")
            words.append(f"its supervisor (process {pid}) was killed: `headwater dev up` starts it again")
        if state.fault:
            words.append(f"it ended by itself: {state.fault}")
        words += [
            f"{name} of it still runs (process {process.pid}): it ends itself, or by `headwater dev down`"
            for name, process, _ in state.orphans()
        ]
    fault = None if state is None else state.fault or None
    output.outcome("\n".join(words), {"phase": Phase.STOPPED, "home": home.path, "fault": fault})
    return Exit.FAILED


def _row(part: Part, is_away: bool) -> tuple[str, int | None, str, int, str]:
    process = ProcessIdentity.read(part.process)
    return (
        _state(part, process, is_away),
        process.pid if process else None,
        _shown_address(part),
        part.restarts,
        part.log,
    )


def _state(part: Part, process: ProcessIdentity | None, is_away: bool) -> str:
    if not part.is_ready:
        return "starting"
    if process is not None and not process.is_running:
        return "ended"
    return "doesn't answer" if is_away else _WELL


def _fault(name: str, part: Part) -> str | None:
    """Return what is wrong when it is asked something real."""
    if name == "kafka":
        return metadata_fault({"bootstrap.servers": part.address})
    if name == "writer":
        return probe(f"{part.address}/ready")[1] or None
    return query_fault(part.address)


def _shown_address(part: Part) -> str:
    """Return the address without the password, which stands in the store's URL already."""
    return part.address.rpartition("@")[2]


def _figures(writer: Part) -> Iterator[tuple[str, object]]:
    """Yield its metrics that are plain numbers, by their own names."""
    text, fault = probe(f"{writer.address}/metrics")
    if fault:
        yield "fault", fault
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name.startswith(_METRIC) and "{" not in name and not name.endswith(("_sum", "_count")):
            yield name.removeprefix(_METRIC).removesuffix("_total"), float(value) if "." in value else int(value)
