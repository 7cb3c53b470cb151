"""`headwater dead-letter`: events that couldn't be stored or delivered, why, and what is to become of them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, limit, one_of
from headwater.cli.forward.arguments import ForwardFlags
from headwater.cli.letter_owners import FORWARDER, LetterOwner, add_owner, forwarder_note, opened_letters
from headwater.cli.output import CommandOutput
from headwater.cli.store import add_store, add_stores
from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of

if TYPE_CHECKING:
    from headwater.lineage.bulk import DeadLetter

_SHOWN: Final = 60
_BYTES: Final = 256


def _names(parser: Flags) -> None:
    parser.word("names", str, "which ones, as `headwater dead-letter list` calls them", "NAME", "*")


def _all_waiting(parser: Flags) -> None:
    parser.switch("all", "all that wait")


def _list(parser: Flags) -> None:
    from headwater.lineage.bulk import DeadLetterReason  # noqa: PLC0415

    reasons = [reason.value for reason in DeadLetterReason]
    parser.switch("all", "also those that were dropped")
    parser.flag("reason", one_of(reasons), None, f"only those of this reason: {', '.join(reasons)}", "REASON")


def _show(parser: Flags) -> None:
    parser.word("name", str, "which one, as `headwater dead-letter list` calls it", "NAME")
    parser.flag("into", Path, None, "write its bytes to this file", "FILE")


@command(
    """List the events that a writer or the listener jdbc could not store and that wait, the oldest first.

--of names somebody else: a forwarder, or driver for what drivers' listeners refused.""",
    "headwater dead-letter list",
    "headwater dead-letter list --all --reason INVALID --limit 50 -o json",
    "headwater dead-letter list --of forwarder:datahub",
    flags=[add_owner, add_store, _list, limit(1000)],
    parser=ForwardFlags,
)
def list_letters(given: Namespace, output: CommandOutput) -> int:
    with opened_letters(given) as owner, closing(owner.letters(are_dropped_too=given.all)) as each:
        wanted = ((name, letter) for name, letter in each if given.reason in {None, letter.reason.value})
        found = list(islice(wanted, given.limit + 1))
    rows = [
        (
            *(name, letter.state, letter.reason, letter.kind),
            *(_place(letter), letter.attempts, _shorten(letter.error) if given.output == "text" else letter.error),
        )
        for name, letter in found[: given.limit]
    ]
    output.table("dead letters", ("name", "state", "reason", "kind", "place", "attempts", "why"), rows)
    if len(found) > given.limit:
        output.note(f"there are more than these {given.limit}: --limit shows more, --reason those of one reason")
    return Exit.DONE


@command(
    "Show one event that could not be stored or delivered, with what it is made of as far as that can be seen.",
    "headwater dead-letter show 0123456789abcdef0123456789abcdef --into event.avro",
    flags=[add_owner, add_store, _show],
    parser=ForwardFlags,
)
def show(given: Namespace, output: CommandOutput) -> int:
    with opened_letters(given) as owner:
        letter = owner.get(given.name)
    if given.into is not None:
        given.into.write_bytes(letter.data)
    headers = [f"{key}={value.decode('utf-8', 'replace')}" for key, value in letter.headers]
    fields = {
        "name": given.name,
        "state": letter.state,
        "reason": letter.reason,
        "why": letter.error,
        "kind": letter.kind,
        "event": str(letter.event) if letter.event else None,
        "place": _place(letter),
        "appended": None if letter.append_time is None else moment_of(letter.append_time),
        "attempts": letter.attempts,
        "headers": headers,
        "size": len(letter.data),
        "bytes": letter.data[:_BYTES].hex(" ") + (" …" if len(letter.data) > _BYTES else ""),
    }
    output.record("dead letter", fields)
    return Exit.DONE


@command(
    """Try again to store events that could not be stored: those that are named, or --all that wait.

What is stored is gone from the list. Exit code 1 if one of them still can't be stored. Those of drivers are stored as
a writer would. Those of a forwarder are sent by the process that runs it, within a second, or when it runs next.""",
    "headwater dead-letter retry --all",
    "headwater dead-letter retry --of driver --all",
    "headwater dead-letter retry --of forwarder:datahub --all",
    flags=[add_owner, add_stores, _all_waiting, _names],
    parser=ForwardFlags,
)
def retry(given: Namespace, output: CommandOutput) -> int:
    with opened_letters(given, is_retry=True, readonly=False) as owner:
        outcomes = list(owner.retry(_choose_names(given, owner)))
    is_sent_later = given.of.kind == FORWARDER
    success = "to be sent" if is_sent_later else "stored"
    rows = [(name, success if words is None else "waits", words) for name, words in outcomes]
    output.table("dead letters", ("name", "now", "why"), rows, "Tried again")
    if is_sent_later and rows:
        output.note(forwarder_note(given))
    return Exit.FAILED if any(words is not None for _, words in outcomes) else Exit.DONE


@command(
    """Give up events that could not be stored or sent: nothing tries it again.

They stay in the list with --all; those of drivers are removed.""",
    "headwater dead-letter drop 0123456789abcdef0123456789abcdef --yes",
    "headwater dead-letter drop --all --dry-run",
    flags=[add_owner, add_store, _all_waiting, _names, add_erasing],
    parser=ForwardFlags,
)
def drop(given: Namespace, output: CommandOutput) -> int:
    with opened_letters(given, readonly=given.dry_run) as owner:
        names = _choose_names(given, owner)
        letters = [(name, owner.get(name)) for name in names]
        rows = [(name, letter.reason, letter.kind, _place(letter)) for name, letter in letters]
        output.table("dead letters", ("name", "reason", "kind", "place"), rows, "To drop")

        verb = "sent" if given.of.kind == FORWARDER else "stored"

        def work() -> tuple[str, dict[str, object]]:
            owner.drop(names)
            return f"dropped {len(names)}", {"dropped": len(names)}

        return erase(given, output, f"{len(names)} events will never be {verb}: drop them?", work, is_nothing=not names)


def _choose_names(given: Namespace, owner: LetterOwner) -> Sequence[str]:
    """Return the names that are given, or those of all that wait."""
    if given.all:
        return list(dict.fromkeys(name for name, _ in owner.letters()))
    if not given.names:
        raise ConfigurationError("which one? Name it as `headwater dead-letter list` does, or say --all")
    names: Sequence[str] = given.names
    return list(dict.fromkeys(names))


def _place(letter: DeadLetter) -> str:
    topic = letter.topic_name or letter.partition.topic
    return f"{letter.source} {topic}/{letter.partition.number}@{letter.position}"


def _shorten(words: str) -> str:
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
