"""`headwater dead-letters`: events that couldn't be stored, why, and what is to become of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import Output
from headwater.cli.store import add_store, add_stores, opened, opened_stores
from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of

if TYPE_CHECKING:
    from headwater.lineage.bulk import BulkLineageMeta, DeadLetter

ACTIONS: Final[Mapping[str, str]] = {
    "list": "those that wait; --all shows the others too",
    "show": "one, with what it is made of as far as that can be seen",
    "retry": "try to store them again, those that are named or --all that wait",
    "drop": "wait for them no longer; they stay to be looked at",
}
_SHOWN: Final = 60
_BYTES: Final = 256


class _Flags(Flags):
    def variable(self, name: str) -> str:
        """Where the rows of catalogs are is what the writer's own variable says."""
        return "HEADWATER_WRITE_STORE_OF" if name == "store-of" else super().variable(name)


def main(arguments: Sequence[str], output: Output) -> int:
    """Look after events that a writer or the listener jdbc couldn't store."""
    epilog = "\n".join(["actions:", *(f"  {name:<8}{text}" for name, text in ACTIONS.items())])
    parser = Flags("headwater dead-letters", str(main.__doc__), epilog)
    parser.action(ACTIONS, "what to do")
    parsed = parser.parse_args(arguments)
    own = _Flags(f"headwater dead-letters {parsed.action}", ACTIONS[parsed.action])
    (add_stores if parsed.action == "retry" else add_store)(own)
    own.switch("all", "all of them")
    if parsed.action == "list":
        from headwater.lineage.bulk import Reason  # noqa: PLC0415

        reasons = [each.value for each in Reason]
        own.flag("reason", one_of(reasons), None, f"those of a reason only: {', '.join(reasons)}", "REASON")
        own.flag("at-most", int, "1000", "so many, the oldest first", "N")
    if parsed.action == "show":
        own.flag("into", Path, None, "write the bytes of the one that is named to a file", "FILE")
    own.add_argument("names", nargs="*", metavar="NAME", help="what `list` calls them")
    given = own.parse_args(parsed.arguments)
    if parsed.action == "retry":
        with opened_stores(given) as stores:
            return _retry({name: store.bulk for name, store in stores.items()}, given, output)
    with opened(given, readonly=parsed.action != "drop") as store:
        return _DO[parsed.action](store.bulk, given, output)


def _list(store: BulkLineageMeta, given: Any, output: Output) -> int:
    from headwater.lineage.bulk import LetterState  # noqa: PLC0415

    state = None if given.all else LetterState.WAITING
    with closing(store.letters(state)) as each:
        wanted = ((name, letter) for name, letter in each if given.reason in {None, letter.reason.value})
        found = list(islice(wanted, given.at_most + 1))
    rows = [
        (
            name,
            letter.state.value,
            letter.reason.value,
            letter.kind,
            _place(letter),
            letter.attempts,
            _short(letter.words),
        )
        for name, letter in found[: given.at_most]
    ]
    output.table("Dead letters", ("name", "state", "reason", "kind", "place", "attempts", "why"), rows)
    if len(found) > given.at_most:
        output.note(f"there are more than these {given.at_most}: --at-most shows them, --reason those of a kind")
    return Exit.DONE


def _show(store: BulkLineageMeta, given: Any, output: Output) -> int:
    from headwater.consumers.letters import found  # noqa: PLC0415

    for name in _named(given):
        letter = found(store, name)
        if given.into is not None:
            given.into.write_bytes(letter.data)
        output.record(
            f"Dead letter {name}",
            {
                "state": letter.state.value,
                "reason": letter.reason.value,
                "why": letter.words,
                "kind": letter.kind,
                "event": str(letter.event) if letter.event else None,
                "place": _place(letter),
                "appended": None if letter.appended is None else moment_of(letter.appended).isoformat(),
                "attempts": letter.attempts,
                "headers": ", ".join(f"{key}={value.decode('utf-8', 'replace')}" for key, value in letter.headers)
                or None,
                "size": len(letter.data),
                "bytes": letter.data[:_BYTES].hex(" ") + (" …" if len(letter.data) > _BYTES else ""),
            },
        )
    return Exit.DONE


def _retry(stores: Mapping[str, BulkLineageMeta], given: Any, output: Output) -> int:
    from headwater.consumers.letters import retried  # noqa: PLC0415

    waiting = (name for store in stores.values() for name, _ in store.letters())
    names = list(dict.fromkeys(waiting)) if given.all else _named(given)
    outcomes = [(name, retried(stores, name)) for name in names]
    rows = [(name, "stored" if words is None else "waits", words) for name, words in outcomes]
    output.table("Tried again", ("name", "now", "why"), rows)
    return Exit.FAILED if any(words is not None for _, words in outcomes) else Exit.DONE


def _drop(store: BulkLineageMeta, given: Any, output: Output) -> int:
    from headwater.consumers.letters import dropped  # noqa: PLC0415

    names = [name for name, _ in store.letters()] if given.all else _named(given)
    for name in names:
        dropped(store, name)
    output.table("Dropped", ("name",), [(name,) for name in names])
    return Exit.DONE


_DO: Final[Mapping[str, Callable[[BulkLineageMeta, Any, Output], int]]] = {
    "list": _list,
    "show": _show,
    "drop": _drop,
}


def _named(given: Any) -> list[str]:
    if not given.names:
        raise ConfigurationError("which one? Name it as `headwater dead-letters list` does")
    return list(given.names)


def _place(letter: DeadLetter) -> str:
    topic = letter.topic_name or letter.partition.topic
    return f"{letter.source} {topic}/{letter.partition.number}@{letter.position}"


def _short(words: str) -> str:
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
