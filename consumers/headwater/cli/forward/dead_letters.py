"""`headwater forward dead-letter`: events that a forwarder couldn't send, why, and what is to become of them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, limit, no_such, one_of
from headwater.cli.forward.arguments import ForwardFlags, add_state, state_directory
from headwater.cli.output import CommandOutput
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.forwarders.dead_letters import ForwarderLetter, LetterBox

_SHOWN: Final = 60
_BYTES: Final = 256
_PAGE: Final = 500


def _name(parser: Flags) -> None:
    parser.word("name", str, "which forwarder", "NAME")


def _numbers(parser: Flags) -> None:
    parser.word("numbers", count, "which letters, as `headwater forward dead-letter list` numbers them", "NUMBER", "*")
    parser.switch("all", "all that there are")


def _list(parser: Flags) -> None:
    from headwater.forwarders.dead_letters import LetterReason  # noqa: PLC0415

    reasons = [each.value for each in LetterReason]
    parser.flag("reason", one_of(reasons), None, f"only those of this reason: {', '.join(reasons)}", "REASON")


def _show(parser: Flags) -> None:
    parser.word("number", count, "which letter, as `headwater forward dead-letter list` numbers it", "NUMBER")
    parser.flag("into", Path, None, "write its bytes to this file; of an event in parts, the first part's", "FILE")


@command(
    "List the events that a forwarder could not send, the oldest first.",
    "headwater forward dead-letter list datahub",
    "headwater forward dead-letter list datahub --reason REFUSED --limit 50 -o json",
    flags=[add_state, _name, _list, limit(1000)],
    parser=ForwardFlags,
)
def list_letters(given: Namespace, output: CommandOutput) -> int:
    with _opened(given) as box:
        wanted = (each for each in _letters(box) if given.reason in {None, each.reason.value})
        found = list(islice(wanted, given.limit + 1))
    is_text = given.output == "text"
    rows = [
        (
            *(each.id, each.state, each.reason, each.kind, each.place, each.attempts),
            _shorten(each.error) if is_text else each.error,
        )
        for each in found[: given.limit]
    ]
    output.table("dead letters", ("number", "state", "reason", "kind", "place", "attempts", "why"), rows)
    if len(found) > given.limit:
        output.note(f"there are more than these {given.limit}: --limit shows more, --reason those of one reason")
    return Exit.DONE


@command(
    "Show one event that could not be sent.",
    "headwater forward dead-letter show datahub 7 --into event.avro",
    flags=[add_state, _name, _show],
    parser=ForwardFlags,
)
def show(given: Namespace, output: CommandOutput) -> int:
    with _opened(given) as box:
        letter = box.get(given.number)
    data = letter.records[0].data
    if given.into is not None:
        given.into.write_bytes(data)
    fields = {
        "number": letter.id,
        "state": letter.state,
        "reason": letter.reason,
        "why": letter.error,
        "kind": letter.kind,
        "event": str(letter.event) if letter.event else None,
        "place": letter.place,
        "attempts": letter.attempts,
        "parts": len(letter.records),
        "size": sum(len(each.data) for each in letter.records),
        "bytes": data[:_BYTES].hex(" ") + (" …" if len(data) > _BYTES else ""),
    }
    output.record("dead letter", fields)
    return Exit.DONE


@command(
    """Have events sent again that could not be sent: those that are numbered, or --all.

The process that runs the forwarder sends them, within a second, or when it runs next. What was sent is gone from the
list; what can't be sent again waits in it, with the new reason.""",
    "headwater forward dead-letter retry datahub --all",
    "headwater forward dead-letter retry datahub 7 9",
    flags=[add_state, _name, _numbers],
    parser=ForwardFlags,
)
def retry(given: Namespace, output: CommandOutput) -> int:
    with _opened(given) as box:
        numbers = _chosen(given, box)
        box.mark_for_retry(numbers)
    when = "now" if _is_running(given) else f"when it runs next: headwater forward run {given.name} …"
    output.outcome(f"{given.name} sends {len(numbers)} events again, {when}", {"retried": len(numbers)})
    return Exit.DONE


@command(
    "Give up events that could not be sent: they are removed for good.",
    "headwater forward dead-letter drop datahub 7 --yes",
    "headwater forward dead-letter drop datahub --all --dry-run",
    flags=[add_state, _name, _numbers, add_erasing],
    parser=ForwardFlags,
)
def drop(given: Namespace, output: CommandOutput) -> int:
    with _opened(given) as box:
        numbers = _chosen(given, box)
        rows = [(each.id, each.reason, each.kind, each.place) for each in map(box.get, numbers)]
        output.table("dead letters", ("number", "reason", "kind", "place"), rows, "To drop")

        def work() -> tuple[str, dict[str, object]]:
            box.drop(numbers)
            return f"dropped {len(numbers)}", {"dropped": len(numbers)}

        question = f"{len(numbers)} events will never be sent to {given.name}: drop them?"
        return erase(given, output, question, work, is_nothing=not numbers)


@contextmanager
def _opened(given: Namespace) -> Generator[LetterBox, None, None]:
    """Open the dead letters of the forwarder that is named."""
    from headwater.forwarders.dead_letters import LetterBox  # noqa: PLC0415
    from headwater.forwarders.state import ForwarderState, check_name  # noqa: PLC0415

    directory, name = state_directory(given), check_name(given.name)
    if not (directory / f"{name}.db").exists():
        there = sorted(each.stem for each in directory.glob("*.db"))
        advice = no_such("forwarder", name, there) if there else "no forwarder ever ran"
        raise ConfigurationError(f"{advice} with {directory}: name the directory that it runs with by --state")
    with ForwarderState(directory, name) as state:
        yield LetterBox(state)


def _chosen(given: Namespace, box: LetterBox) -> Sequence[int]:
    """Return the numbers that are given, each of which there is."""
    if given.all:
        return [each.id for each in _letters(box)]
    if not given.numbers:
        raise ConfigurationError(
            f"which one? Number it as `headwater forward dead-letter list {given.name}` does, or say --all"
        )
    return [box.get(number).id for number in given.numbers]


def _letters(box: LetterBox) -> Iterator[ForwarderLetter]:
    after = 0
    while page := box.letters(most=_PAGE, after=after):
        yield from page
        after = page[-1].id


def _is_running(given: Namespace) -> bool:
    from headwater.forwarders.state import ForwarderLock  # noqa: PLC0415

    lock = ForwarderLock(state_directory(given), given.name)
    is_free = lock.acquire()
    lock.release()
    return not is_free


def _shorten(words: str) -> str:
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
