"""`headwater status`: what runs on this machine, and how it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import Output
from headwater.cli.whole.home import Home, Part, Phase, State, add_home
from headwater.cli.whole.telling import addresses
from headwater.cli.whole.writer import asked
from headwater.local.database import query_fault
from headwater.local.identity import Identity
from headwater.local.kafka import metadata_fault

_COLUMNS: Final = ("part", "state", "process", "address", "restarts", "log")
_METRIC: Final = "headwater_writer_"
_WELL: Final = "well"


def main(arguments: Sequence[str], output: Output) -> int:
    """Say what `headwater up` has running on this machine, where, and how it is: each server is asked.

    Exit code 0 if all is well, 75 if something starts or is away just now, 1 if nothing runs."""
    parser = Flags("headwater status", str(main.__doc__))
    add_home(parser)
    given = parser.parse_args(arguments)
    home = Home.of(given.home)
    state = home.state()
    if state is None or not state.has_keeper:
        return _told_nothing(home, state, output)
    faults = {name: fault for name, part in state.parts.items() if part.is_ready and (fault := _fault(name, part))}
    rows = [(name, *_row(part, name in faults)) for name, part in state.parts.items()]
    output.record(f"{state.phase.value} since {state.since}", addresses(home, state))
    output.table("\nServers", _COLUMNS, rows)
    for name, fault in faults.items():
        output.note(f"{name}: {fault}")
    writer = state.parts.get("writer")
    if writer is not None and writer.is_ready:
        output.record("\nWriter", dict(_figures(writer)))
    is_well = state.phase is Phase.RUNNING and all(row[1] == _WELL for row in rows)
    return Exit.DONE if is_well else Exit.TRY_AGAIN


def _told_nothing(home: Home, state: State | None, output: Output) -> int:
    output.note(f"nothing runs in {home.path}")
    if state is None:
        return Exit.FAILED
    if state.phase is not Phase.STOPPED:
        output.note(f"its keeper (process {state.keeper.get('pid')}) was killed: `headwater up` starts it again")
    if state.fault:
        output.note(f"it ended by itself: {state.fault}")
    for name, process, _ in state.left():
        output.note(f"{name} of it is still there (process {process.pid}): it ends itself, or by `headwater down`")
    return Exit.FAILED


def _row(part: Part, is_away: bool) -> tuple[str, int | None, str, int, str]:
    process = Identity.read(part.process)
    return _state(part, process, is_away), process.pid if process else None, _shown(part), part.restarts, part.log


def _state(part: Part, process: Identity | None, is_away: bool) -> str:
    if not part.is_ready:
        return "starting"
    if process is not None and not process.is_there:
        return "ended"
    return "away" if is_away else _WELL


def _fault(name: str, part: Part) -> str | None:
    """What is wrong when it is asked something real."""
    if name == "kafka":
        return metadata_fault({"bootstrap.servers": part.address})
    if name == "writer":
        return asked(f"{part.address}/ready")[1] or None
    return query_fault(part.address)


def _shown(part: Part) -> str:
    """Without the password, which stands in the store's URL already."""
    return part.address.rpartition("@")[2]


def _figures(writer: Part) -> Iterator[tuple[str, object]]:
    """Its metrics that are plain numbers, in its own words."""
    text, fault = asked(f"{writer.address}/metrics")
    if fault:
        yield "fault", fault
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name.startswith(_METRIC) and "{" not in name and not name.endswith(("_sum", "_count")):
            yield name.removeprefix(_METRIC).removesuffix("_total"), float(value) if "." in value else int(value)
