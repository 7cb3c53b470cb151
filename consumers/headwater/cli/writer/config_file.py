"""Flags that can also be written in a file: for a command that runs for months.

A flag goes before its variable, that before the file's key, that before the default. A key that there is no flag for is
an error that names the nearest one; so is a variable that begins as that of `--config` does, HEADWATER_WRITER_ say.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from headwater.cli.flags import Flags, no_such
from headwater.config import is_of_kubernetes, read_toml
from headwater.errors import ConfigurationError
from headwater.events.redaction import redact

_FILE: Final = "config"
_SHOW: Final = "print-config"


class FileFlags(Flags):
    """A command's parser that reads its flags from a file too."""

    further_keys: ClassVar[Collection[str]] = ()
    """Keys of the file that aren't flags of this command."""

    def __init__(self, program: str, description: str, epilog: str | None = None) -> None:
        super().__init__(program, description, epilog)
        self.arguments: Sequence[str] = ()
        self._place: Path | None = None
        self._file: Mapping[str, Any] = {}
        self._declare_file()

    def _declare_file(self) -> None:
        self.flag(_FILE, Path, None, "a file in TOML with these flags as its keys", "FILE")
        self.switch(_SHOW, "show what holds and where it is from, and end")

    def found(self, name: str) -> str | None:
        found = super().found(name)
        if found is None and name in self._file:
            return "\n".join(_lines(name, self._file[name]))
        return found

    def parse_args(self, args: Sequence[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Read the file first: the defaults of the flags are in it."""
        self.arguments = list(args or ())
        finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        finder.add_argument(f"--{_FILE}")
        place = vars(finder.parse_known_args(self.arguments)[0])[_FILE] or super().found(_FILE)
        if place:
            self._place = Path(place).expanduser()
            self._file = read_toml(self._place, "--config")
        self._refuse_others()
        return super().parse_args(args, namespace)

    def rows(self, given: Any) -> Iterator[tuple[str, str, str]]:
        """Yield each name, its value without secrets, and where that is from."""
        for name in self.declared:
            if name not in {_FILE, _SHOW, "output"}:
                yield name, _shown_value(getattr(given, name.replace("-", "_"))), self._origin(name)

    def file_value(self, key: str) -> Any:
        """Return what the file has for a key; None if there is no file, or it doesn't have the key."""
        return self._file.get(key)

    @property
    def file_place(self) -> str:
        """Where the file is, for messages."""
        return str(self._place)

    def _origin(self, name: str) -> str:
        if any(argument.partition("=")[0] == f"--{name}" for argument in self.arguments):
            return f"--{name}"
        if super().found(name) is not None:
            return self.variables[name]
        return str(self._place) if name in self._file else "default"

    def _refuse_others(self) -> None:
        there = [key for key in dict.fromkeys([*self.declared, *self.further_keys]) if key not in {_FILE, _SHOW}]
        for key in self._file:
            if key not in there:
                raise ConfigurationError(f"{self._place}: {no_such('key', key, there)}")
        prefix = self.variables[_FILE].removesuffix(_FILE.upper())
        known = [each for each in self.variables.values() if each.startswith(prefix)]
        for variable in os.environ:
            if variable.startswith(prefix) and variable not in known and not is_of_kubernetes(variable):
                raise ConfigurationError(no_such("variable", variable, known))


def _lines(key: str, value: Any) -> Iterator[str]:
    """Yield a value as a variable has it: of a list or a table, each in a line."""
    if isinstance(value, Mapping):
        for name, each in _flat(value):
            yield from (f"{name}={text}" for text in _lines(key, each))
    elif isinstance(value, list):
        for each in value:
            yield from _lines(key, each)
    elif isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, (str, int, float)):
        yield str(value)
    else:
        raise ConfigurationError(f"{key}: {type(value).__name__} can't be a value here: write a text or a number")


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """A key with dots that isn't quoted is a table in a table."""
    for name, each in table.items():
        if isinstance(each, Mapping):
            yield from ((f"{name}.{further}", value) for further, value in _flat(each))
        else:
            yield name, each


def _shown_value(value: Any) -> str:
    if isinstance(value, list):
        pairs = [each if isinstance(each, tuple) else (None, each) for each in value]
        return ", ".join(_safe(name, str(text)) for name, text in pairs)
    if isinstance(value, tuple):
        return ":".join(map(str, value))
    return "" if value is None else str(redact(str(value)))


def _safe(name: str | None, text: str) -> str:
    if name is None:
        return str(redact(text))
    return f"{name}={redact({name: text})[name]}"
