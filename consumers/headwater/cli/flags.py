"""Flags of the command line: each can also be given by an environment variable, which its help names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off", ""})


class _Many(NamedTuple):
    variable: str
    convert: Callable[[str], Any]


class Flags(argparse.ArgumentParser):
    """A parser whose flags read HEADWATER_<NAME> where they aren't given, and that knows what was meant by a slip."""

    def __init__(self, program: str, description: str, epilog: str | None = None) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(program, description=description, epilog=epilog, allow_abbrev=False, formatter_class=layout)
        self._many: dict[str, _Many] = {}

    def flag(
        self, name: str, convert: Callable[[str], T], default: str | None, text: str, metavar: str | None = None
    ) -> None:
        """Add `--name`; `convert` raises ValueError with what is wrong, for a flag and a variable alike."""
        variable, found = self.variable(name), self.found(name)
        value = default if found is None else found
        shown = _shown(f"{text} [{variable}{'' if default is None else f', default {default}'}]")
        converter = _converter(name, variable, convert)
        self.add_argument(f"--{name}", type=converter, default=value, help=shown, metavar=metavar)

    def flags(self, name: str, convert: Callable[[str], T], text: str, metavar: str) -> None:
        """Add `--name` that can be given several times; in the variable each value is a line."""
        variable = self.variable(name)
        converter = _converter(name, variable, convert)
        self._many[name.replace("-", "_")] = _Many(variable, converter)
        shown = _shown(f"{text}; can be given several times [{variable}, a line for each]")
        self.add_argument(f"--{name}", type=converter, action="append", help=shown, metavar=metavar)

    def switch(self, name: str, text: str) -> None:
        """Add `--name` that takes no value; its variable is true or false."""
        variable = self.variable(name)
        value = (self.found(name) or "false").strip().lower()
        if value not in _TRUE | _FALSE:
            self.error(f"{variable} is neither true nor false")
        self.add_argument(f"--{name}", action="store_true", default=value in _TRUE, help=_shown(f"{text} [{variable}]"))

    def variable(self, name: str) -> str:
        """The environment variable that help names."""
        return variable_of(name)

    def found(self, name: str) -> str | None:
        """What is to hold where the flag isn't given."""
        return os.environ.get(self.variable(name))

    def action(self, actions: Mapping[str, str], text: str) -> None:
        """Add the positional `action`, one of these, and what it is given."""
        named = one_of(actions, "action")
        metavar = f"{{{','.join(actions)}}}"
        self.add_argument("action", type=_argument(named), metavar=metavar, help=f"{text}; --help behind it tells more")
        self.add_argument("arguments", nargs=argparse.REMAINDER, help="what the action is given")

    def parse_args(self, args: Sequence[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Ends the process where something is wrong, as argparse does."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(self._too_much(unknown[0]))
        for name, many in self._many.items():
            if getattr(parsed, name) is None:
                setattr(parsed, name, self._from_variable(name.replace("_", "-"), many))
        return parsed

    def _from_variable(self, name: str, many: _Many) -> list[Any]:
        try:
            return [many.convert(line) for line in (self.found(name) or "").splitlines() if line.strip()]
        except argparse.ArgumentTypeError as error:
            self.error(str(error))

    def _too_much(self, word: str) -> str:
        if not word.startswith("-"):
            return f"nothing is known to do with {word!r}"
        there = [option for option in self._option_string_actions if option.startswith("--")]
        return no_such("flag", word.partition("=")[0], there)


def variable_of(name: str) -> str:
    """The environment variable that stands for a flag."""
    return f"HEADWATER_{name.upper().replace('-', '_')}"


def one_of(choices: Collection[str], what: str = "value") -> Callable[[str], str]:
    """A converter that accepts the named words only."""

    def convert(given: str) -> str:
        if given not in choices:
            raise ValueError(no_such(what, given, choices))
        return given

    return convert


def no_such(what: str, given: str, there: Collection[str]) -> str:
    """Words for what there isn't, with the nearest that there is."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed for a slip of the pen only

    near = get_close_matches(given, there, n=1)
    return f"no {what} {given!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(there)}")


def pair(text: str) -> tuple[str, str]:
    """`KEY=VALUE`, for a flag that takes a property."""
    key, is_pair, value = text.partition("=")
    if not is_pair or not key.strip():
        raise ValueError(f"{text!r} isn't KEY=VALUE")
    return key.strip(), value


def _converter(name: str, variable: str, convert: Callable[[str], T]) -> Callable[[str], T]:
    return _argument(convert, f" (given as --{name} or {variable})")


def _argument(convert: Callable[[str], T], how: str = "") -> Callable[[str], T]:
    """argparse keeps the words of its own error only."""

    def converted(given: str) -> T:
        try:
            return convert(given)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{error}{how}") from error

    return converted


def _shown(text: str) -> str:
    return text.replace("%", "%%")
