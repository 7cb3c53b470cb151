"""`--of`: whose dead letters a command is about, a writer's, a forwarder's or those of drivers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from headwater.cli.flags import Flags, no_such
from headwater.cli.forward.arguments import add_state, state_directory
from headwater.cli.spool.arguments import add_directory, local_places
from headwater.cli.store import MAIN, open_given_store, opened_stores
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.forwarders.state import ForwarderState
    from headwater.journal import DeadLetterLog
    from headwater.lineage.bulk import BulkLineageMeta, DeadLetter
    from headwater.lineage.bulk.dead_letters import DeadLetters

WRITER: Final = "writer"
FORWARDER: Final = "forwarder"
DRIVER: Final = "driver"
_WAYS: Final = f"{WRITER}, {FORWARDER}:NAME, {DRIVER} or {DRIVER}:LISTENER"


class LetterOwner(Protocol):
    """Has dead letters. Each has a name, as `headwater dead-letter list` shows it."""

    def letters(self, *, are_dropped_too: bool = False) -> Generator[tuple[str, DeadLetter], None, None]:
        """Yield the letters that wait with their names, the oldest first."""
        ...

    def get(self, name: str) -> DeadLetter:
        """Return a letter; an UnknownDeadLetterError if there is none of this name."""
        ...

    def retry(self, names: Sequence[str]) -> Iterable[tuple[str, str | None]]:
        """Try letters again. Yield the name of each, and why it still waits, None if it doesn't."""
        ...

    def drop(self, names: Sequence[str]) -> None: ...


class ForwarderLetters:
    """Those of a forwarder, in its state. Whoever runs the forwarder sends the ones that are to be retried."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def letters(self, *, are_dropped_too: bool = False) -> Generator[tuple[str, DeadLetter], None, None]:
        from headwater.lineage.bulk import DeadLetterState  # noqa: PLC0415

        with closing(self._letters.dead_letters(None)) as found:
            yield from (each for each in found if are_dropped_too or each[1].state is not DeadLetterState.DROPPED)

    def get(self, name: str) -> DeadLetter:
        from headwater.consumers.dead_letters import UnknownDeadLetterError  # noqa: PLC0415

        if (letter := self._letters.dead_letter(name)) is None:
            raise UnknownDeadLetterError(name)
        return letter

    def retry(self, names: Sequence[str]) -> Iterable[tuple[str, str | None]]:
        from headwater.lineage.bulk import DeadLetterState  # noqa: PLC0415

        for name in names:
            self.get(name)
        self._letters.mark_dead_letters(names, DeadLetterState.RETRY)
        return [(name, None) for name in names]

    def drop(self, names: Sequence[str]) -> None:
        from headwater.lineage.bulk import DeadLetterState  # noqa: PLC0415

        self._letters.mark_dead_letters(names, DeadLetterState.DROPPED)


class Whose(NamedTuple):
    """What `--of` says."""

    kind: str
    name: str = ""


def add_owner(parser: Flags) -> None:
    """Add `--of`, and where the letters are that aren't in a store."""
    parser.flag("of", _whose, WRITER, f"whose dead letters: {_WAYS}", "OWNER")
    add_directory(parser)
    add_state(parser)


@contextmanager
def opened_letters(given: Namespace, *, is_retry: bool = False, readonly: bool = True) -> Generator[LetterOwner]:
    """Open the letters of the owner that `--of` names."""
    from headwater.consumers.dead_letters import LoggedLetters, StoredLetters  # noqa: PLC0415

    with ExitStack() as stack:

        def stores() -> Mapping[str, BulkLineageMeta]:
            if not is_retry:
                return {MAIN: stack.enter_context(open_given_store(given, readonly=readonly)).bulk}
            return {name: store.bulk for name, store in stack.enter_context(opened_stores(given)).items()}

        if given.of.kind == WRITER:
            yield StoredLetters(stores())
        elif given.of.kind == FORWARDER:
            yield ForwarderLetters(stack.enter_context(_forwarder_state(given)).letters)
        else:
            yield LoggedLetters(_logs(local_places(given), given.of.name), stores)


def _logs(spools: Iterable[Path], listener: str) -> list[tuple[str, DeadLetterLog]]:
    """Return the logs of all listeners, or of one, in all directories of spools."""
    from headwater.journal import DeadLetterLog  # noqa: PLC0415
    from headwater.listeners.bus.delivery import DIRECTORY  # noqa: PLC0415

    there = [path for spool in spools for path in sorted((spool / DIRECTORY).glob("*")) if path.is_dir()]
    found = [(path.name, DeadLetterLog(path)) for path in there if listener in {"", path.name}]
    if listener and not found:
        names = sorted({path.name for path in there})
        advice = no_such("listener", listener, names) if names else "no listener has dead letters"
        raise ConfigurationError(f"{advice} there: name the drivers' directory of spools by --spool-dir")
    return found


def _forwarder_state(given: Namespace) -> ForwarderState:
    from headwater.forwarders.state import ForwarderState, check_name  # noqa: PLC0415

    directory, name = state_directory(given), check_name(given.of.name)
    if not (directory / f"{name}.db").exists():
        there = sorted(path.stem for path in directory.glob("*.db"))
        advice = no_such("forwarder", name, there) if there else "no forwarder ever ran"
        raise ConfigurationError(f"{advice} with {directory}: name the directory that it runs with by --state")
    return ForwarderState(directory, name)


def forwarder_note(given: Namespace) -> str:
    """Say when a forwarder sends what was marked for a retry."""
    from headwater.forwarders.state import ForwarderLock  # noqa: PLC0415

    name = given.of.name
    lock = ForwarderLock(state_directory(given), name)
    is_free = lock.acquire()
    lock.release()
    return f"{name} sends them {f'when it runs next: headwater forward run {name} …' if is_free else 'now'}"


def _whose(text: str) -> Whose:
    kind, has_name, name = text.partition(":")
    if (kind, bool(has_name), bool(name)) not in {
        (WRITER, False, False),
        (FORWARDER, True, True),
        (DRIVER, False, False),
        (DRIVER, True, True),
    }:
        raise ValueError(f"{text!r} has no dead letters: write {_WAYS}")
    return Whose(kind, name)
