"""`headwater forward status` and `list`: what forwarders do, and which there are."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, no_such
from headwater.cli.forward.arguments import (
    ForwardFlags,
    add_forwarders,
    add_state,
    configured_values,
    state_directory,
)
from headwater.cli.output import CommandOutput, age_of
from headwater.errors import ConfigurationError, PluginError

if TYPE_CHECKING:
    from headwater.forwarders.status import ForwarderStatus

_SHOWN: Final = 60
_RUNNING: Final = "running"


def _names(parser: Flags) -> None:
    parser.word("names", str, "which forwarders; all that ever ran with this state, unless named", "NAME", "*")


@command(
    """Show what forwarders do, how far they are, and what they wait for.

It reads what their processes wrote into --state, at most two seconds ago. Exit code 1 if one of them isn't running, or
waits for its bus or its target.""",
    "headwater forward status",
    "headwater forward status datahub --state /var/lib/headwater/forwarders -o json",
    flags=[add_state, _names],
    parser=ForwardFlags,
)
def status(given: Namespace, output: CommandOutput) -> int:
    found = _statuses(given)
    is_text = given.output == "text"
    columns = ("name", "type", "state", "lag", "rate", "sent", "dead letters", "last error", "sent until")
    rows = [
        (
            *(each.name, each.type, each.state, each.lag, each.rate, each.sent, each.dead_letters),
            _shorten(each.last_error) if is_text else each.last_error,
            age_of(each.sent_until) if is_text else each.sent_until,
        )
        for each in found
    ]
    output.table("forwarders", columns, rows)
    if is_text:
        _give_details(output, found)
    else:
        output.table("waits", ("name", "waiting for", "postponed", "process", "started"), _waits(found))
    _give_lost(output, found)
    return Exit.DONE if all(each.state == _RUNNING for each in found) else Exit.FAILED


@command(
    "List the forwarders that are installed, and those that --config or --option configures.",
    "headwater forward list",
    "headwater forward list --option mine.type=audit:AuditForwarder -o json",
    flags=[add_forwarders],
    parser=ForwardFlags,
)
def list_forwarders(given: Namespace, output: CommandOutput) -> int:
    from headwater.forwarders.api import GROUP  # noqa: PLC0415
    from headwater.plugins import names  # noqa: PLC0415

    rows = [(name, error is None, error) for name in names(GROUP) for error in [_fault(name)]]
    output.table("types", ("type", "usable", "why not"), rows, "Installed types")
    configured = configured_values(given)
    about = [(name, values.get("type", name), len(values)) for name, values in configured.items()]
    output.table("forwarders", ("name", "type", "keys"), about, "Configured forwarders")
    return Exit.DONE


def _fault(name: str) -> str | None:
    """Return why an installed type can't be used."""
    from headwater.forwarders.configuration import load_forwarder  # noqa: PLC0415

    try:
        load_forwarder(name)
    except PluginError as e:
        return str(e)
    return None


def _statuses(given: Namespace) -> list[ForwarderStatus]:
    from headwater.forwarders.status import read_statuses  # noqa: PLC0415

    directory = state_directory(given)
    found = {each.name: each for each in read_statuses(directory)} if directory.is_dir() else {}
    for name in given.names:
        if name not in found:
            advice = no_such("forwarder", name, found) if found else "no forwarder ever ran"
            raise ConfigurationError(f"{advice} with {directory}: name the directory that it runs with by --state")
    return [found[name] for name in given.names] if given.names else list(found.values())


def _give_details(output: CommandOutput, found: Sequence[ForwarderStatus]) -> None:
    for each in found:
        if each.waiting_for:
            output.note(f"{each.name} waits for {each.waiting_for}")
        if each.postponed:
            output.note(f"{each.name} tries {each.postponed} events again that its target failed on")
        if each.dead_letters:
            output.note(f"see what {each.name} could not send: headwater dead-letter list --of forwarder:{each.name}")


def _waits(found: Sequence[ForwarderStatus]) -> list[tuple[object, ...]]:
    return [(each.name, each.waiting_for, each.postponed, each.process, each.started_at) for each in found]


def _give_lost(output: CommandOutput, found: Sequence[ForwarderStatus]) -> None:
    """Say what the bus lost, where it lost anything."""
    rows = [
        (each.name, lost.gap.partition.number, lost.gap.first, lost.gap.end, lost.gap.reason.value, lost.found_at)
        for each in found
        for lost in each.lost
    ]
    if rows:
        columns = ("name", "partition", "first offset", "next offset", "reason", "found")
        output.table("lost records", columns, rows, "The bus no longer had these records when they were to be read")


def _shorten(words: str | None) -> str | None:
    if words is None or len(words) <= _SHOWN:
        return words
    return f"{words[: _SHOWN - 1]}…"
