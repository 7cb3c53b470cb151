"""Flags of the command line: declared one by one, read from the command, from a variable where they have one, checked.

Which flags have an environment variable is the list VARIABLES and nothing else: where something is (connections and
files) and secrets. What a command does, leaves out or erases is never decided by a variable.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
PREFIX: Final = "HEADWATER_"
VARIABLES: Final = {
    "store": "HEADWATER_STORE",
    "lineage-meta": "HEADWATER_STORE_LINEAGE_META",
    "catalog-store": "HEADWATER_CATALOG_STORES",
    "bus": "HEADWATER_BUS",
    "archive": "HEADWATER_ARCHIVE",
    "kafka": "HEADWATER_WRITER_KAFKA",
    "config": "HEADWATER_WRITER_CONFIG",
    "properties-file": "HEADWATER_PROPERTIES_FILE",
    "spool-dir": "HEADWATER_SPOOL_DIR",
    "home": "HEADWATER_DEV_HOME",
}
"""By flag, of all commands but those with a table of their own. Kubernetes sets `<SERVICE>_PORT`,
`<SERVICE>_SERVICE_HOST` and the like in each pod: none is called so."""
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off", ""})


class Arity(Enum):
    """How many values a flag takes."""

    NONE = "a switch"
    ONE = "one value"
    MANY = "one value each time it is given"


class Declared(NamedTuple):
    """A flag as it was declared."""

    arity: Arity
    convert: Callable[[str], Any]
    variable: str | None


class Flags(argparse.ArgumentParser):
    """The parser of one command: names the nearest flag for an unknown one, and in the help the variable of each."""

    variables: ClassVar[Mapping[str, str]] = VARIABLES
    """The variable of each flag that has one."""

    def __init__(self, program: str, description: str, epilog: str | None = None) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(program, description=description, epilog=epilog, allow_abbrev=False, formatter_class=layout)
        self.declared: dict[str, Declared] = {}

    def flag(
        self,
        name: str,
        convert: Callable[[str], T],
        default: str | None,
        text: str,
        metavar: str | None = None,
        *,
        short: str | None = None,
    ) -> None:
        """Add `--name`; `convert` raises ValueError with what is wrong."""
        words = self._declare(name, Arity.ONE, convert, text, default)
        names = [f"-{short}", f"--{name}"] if short else [f"--{name}"]
        converter = self._converter(name, convert)
        self.add_argument(*names, type=converter, default=default, help=words, metavar=metavar)

    def flags(self, name: str, convert: Callable[[str], T], text: str, metavar: str) -> None:
        """Add `--name` that can be given several times; in a variable each value is a line."""
        words = self._declare(name, Arity.MANY, convert, f"{text}; can be given several times", None)
        converter = self._converter(name, convert)
        self.add_argument(f"--{name}", type=converter, action="append", help=words, metavar=metavar)

    def switch(self, name: str, text: str, *, short: str | None = None) -> None:
        """Add `--name` that takes no value."""
        words = self._declare(name, Arity.NONE, _is_true, text, None)
        self.add_argument(*([f"-{short}"] if short else []), f"--{name}", action="store_true", help=words)

    def word(
        self,
        name: str,
        convert: Callable[[str], T],
        text: str,
        metavar: str | None = None,
        nargs: str | None = None,
    ) -> None:
        """Add a word that is given by its place."""
        self.add_argument(name, type=self._converter(name, convert), help=text, metavar=metavar, nargs=nargs)

    def found(self, name: str) -> str | None:
        """Return what holds where the flag isn't given: what its variable says; an empty one says nothing."""
        variable = self.declared[name].variable
        return (variable and os.environ.get(variable)) or None

    def parse_args(self, args: Sequence[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """End the process where something is wrong, as argparse does."""
        several = {}
        for name, declared in self.declared.items():
            found = self.found(name)
            if declared.arity is Arity.MANY:
                several[name] = found
            elif found is not None:
                self.set_defaults(**{_attribute(name): found if declared.arity is Arity.ONE else self._switch(name)})
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(self._too_much(unknown[0]))
        for name, found in several.items():
            if getattr(parsed, _attribute(name)) is None:
                setattr(parsed, _attribute(name), self._lines(name, found or ""))
        return parsed

    def options(self) -> list[argparse.Action]:
        """Return what can be given by name, as shells complete it."""
        return [action for action in self._actions if action.option_strings]

    def _declare(self, name: str, arity: Arity, convert: Callable[[str], Any], text: str, default: str | None) -> str:
        """Return the text of the help."""
        variable = self.variables.get(name)
        self.declared[name] = Declared(arity, convert, variable)
        lines = ", a line for each" if arity is Arity.MANY else ""
        notes = [f"{variable}{lines}"] if variable else []
        notes += [f"default {default}"] if default is not None else []
        return (f"{text} [{', '.join(notes)}]" if notes else text).replace("%", "%%")

    def _converter(self, name: str, convert: Callable[[str], T]) -> Callable[[str], T]:
        """argparse keeps the words of its own error only."""
        how = f" (given as --{name} or {self.variables[name]})" if name in self.variables else ""

        def converted(given: str) -> T:
            try:
                return convert(given)
            except ValueError as error:
                raise argparse.ArgumentTypeError(f"{error}{how}") from error

        return converted

    def _switch(self, name: str) -> bool:
        try:
            return _is_true(self.found(name) or "")
        except ValueError as error:
            self.error(f"--{name}: {error}")

    def _lines(self, name: str, found: str) -> list[Any]:
        converter = self._converter(name, self.declared[name].convert)
        try:
            return [converter(line) for line in found.splitlines() if line.strip()]
        except argparse.ArgumentTypeError as error:
            self.error(str(error))

    def _too_much(self, word: str) -> str:
        if not word.startswith("-"):
            return f"{self.prog} takes no {word!r}; see {self.prog} --help"
        there = [option for option in self._option_string_actions if option.startswith("--")]
        return no_such("flag", word.partition("=")[0], there)


Adder: TypeAlias = Callable[[Flags], None]
"""Adds flags to a command's parser; a command is declared with several."""


def limit(default: int | None) -> Adder:
    """Return what adds `--limit`, for a command that gives a list."""
    given = None if default is None else str(default)

    def add(parser: Flags) -> None:
        parser.flag("limit", count, given, "at most so many", "N")

    return add


def one_of(choices: Collection[str], what: str = "value") -> Callable[[str], str]:
    """Return a converter that accepts the named words only."""

    def convert(given: str) -> str:
        if given not in choices:
            raise ValueError(no_such(what, given, choices))
        return given

    return convert


def no_such(what: str, given: str, there: Collection[str]) -> str:
    """Say that there is no such thing, and name the nearest that there is."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed for a slip of the pen only

    near = get_close_matches(given, there, n=1)
    return f"no {what} {given!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(there)}")


def pair(text: str) -> tuple[str, str]:
    """Read `KEY=VALUE`, for a flag that takes a property."""
    key, is_pair, value = text.partition("=")
    if not is_pair or not key.strip():
        raise ValueError(f"{text!r} isn't KEY=VALUE")
    return key.strip(), value


def is_number(text: str) -> bool:
    """Return whether this is a number of 0 or more that a store and Python's own functions can count to."""
    return text.isascii() and text.isdigit() and int(text) <= sys.maxsize


def whole_number(text: str) -> int:
    """Read a number that may be 0."""
    if not is_number(text.strip()):
        raise ValueError(f"{text!r} isn't a whole number: write 0 or more")
    return int(text)


def count(text: str) -> int:
    """Read a number of things, of which there is one at least."""
    if not (is_number(text.strip()) and int(text)):
        raise ValueError(f"{text!r} isn't a number of things: write 1 or more")
    return int(text)


def duration(text: str) -> timedelta:
    """Read how long something takes or lies back: 2h, 7d."""
    from headwater.config.units import seconds_of  # noqa: PLC0415 - it imports pydantic

    try:
        return timedelta(seconds=seconds_of(text))
    except OverflowError:
        raise ValueError(f"{text!r} is longer than any calendar: leave the flag out") from None


def moment(text: str) -> datetime:
    """Read a time, or how long ago it was: 2026-03-01T12:00 (UTC unless it says otherwise), 90d, 2 h."""
    try:
        found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        return _ago(text)
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _ago(text: str) -> datetime:
    from headwater.config.units import seconds_of  # noqa: PLC0415 - it imports pydantic

    if not text.strip()[-1:].isdigit():  # 2026 isn't meant as 2026 seconds ago
        with suppress(ValueError, OverflowError):
            return datetime.now(timezone.utc) - timedelta(seconds=seconds_of(text))
    ways = "2026-03-01, 2026-03-01T12:00 (in UTC), or how long ago it was: 90s, 15m, 2h, 7d"
    raise ValueError(f"{text!r} isn't a time: write {ways}")


def _is_true(text: str) -> bool:
    if text.strip().lower() not in _TRUE | _FALSE:
        raise ValueError(f"{text!r} is neither true nor false")
    return text.strip().lower() in _TRUE


def _attribute(name: str) -> str:
    return name.replace("-", "_")
