"""Flags that can also be written in a file and in the environment: for a command that runs for months.

A flag goes before its variable (`HEADWATER_WRITE_BATCH`, or shorter `HEADWATER_BATCH` where there is one value), that
before the file's key (`batch`), that before the default. A key or a variable that no flag has is an error that names
the nearest one.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from headwater.cli.flags import Flags, no_such, variable_of
from headwater.errors import ConfigurationError
from headwater.events.redaction import redact

T = TypeVar("T")
_FILE: Final = "config"
_SHOW: Final = "print-config"
_ALIASES: Final = {"stores": "store-of"}
"""A section of the file, and the flag that its keys are."""


class ConfiguredFlags(Flags):
    """Add the flags, then parse: what is in the file or the environment beside them is a fault then."""

    def __init__(self, program: str, description: str, epilog: str, arguments: Sequence[str]) -> None:
        super().__init__(program, description, epilog)
        self._prefix = f"{variable_of(program.removeprefix('headwater '))}_"
        self._names: list[str] = []
        self._several: set[str] = set()
        self._origins: dict[str, str] = {}
        self._arguments = arguments
        self._file: Mapping[str, Any] = {}
        self.flag(_FILE, Path, None, "a file in TOML with these flags as its keys", "FILE")
        self.switch(_SHOW, "show what all of it comes to, and end")
        self._file = _read(self._place()) if self._place() else {}

    def flag(
        self, name: str, convert: Callable[[str], T], default: str | None, text: str, metavar: str | None = None
    ) -> None:
        self._names.append(name)
        super().flag(name, convert, default, text, metavar)

    def flags(self, name: str, convert: Callable[[str], T], text: str, metavar: str) -> None:
        self._names.append(name)
        self._several.add(name)
        super().flags(name, convert, text, metavar)

    def switch(self, name: str, text: str) -> None:
        self._names.append(name)
        super().switch(name, text)

    def variable(self, name: str) -> str:
        return f"{self._prefix}{name.upper().replace('-', '_')}"

    def found(self, name: str) -> str | None:
        shorter = () if name in self._several else (variable_of(name),)  # HEADWATER_KAFKA is where a broker is
        for variable in (self.variable(name), *shorter):
            if variable in os.environ:
                self._origins[name] = variable
                return os.environ[variable]
        if name in self._file:
            self._origins[name] = str(self._place())
            return "\n".join(_lines(name, self._file[name]))
        return None

    def parse_args(self, args: Sequence[str] | None = None, namespace: None = None) -> Any:  # type: ignore[override]
        self._refuse_others()
        return super().parse_args(args, namespace)

    def told(self, given: Any) -> Iterator[tuple[str, str, str]]:
        """Each name, its value without secrets, and where that is from."""
        for name in self._names:
            if name not in {_FILE, _SHOW}:
                value = getattr(given, name.replace("-", "_"))
                yield name, _shown(value), self._origin(name)

    def _origin(self, name: str) -> str:
        is_flag = any(each.partition("=")[0] == f"--{name}" for each in self._arguments)
        return f"--{name}" if is_flag else self._origins.get(name, "default")

    def _place(self) -> Path | None:
        """The file has to be known before the flags are: their defaults are in it."""
        given: str | None = None
        for at, each in enumerate(self._arguments):
            name, is_one, value = each.partition("=")
            if name == f"--{_FILE}":
                given = value if is_one else next(iter(self._arguments[at + 1 :]), None)
        given = given or os.environ.get(self.variable(_FILE))
        return Path(given).expanduser() if given else None

    def _refuse_others(self) -> None:
        for key in self._file:
            if key not in self._names:
                raise ConfigurationError(f"{self._place()}: {no_such('key', key, self._names)}")
        known = [self.variable(name) for name in self._names]
        for variable in os.environ:
            if variable.startswith(self._prefix) and variable not in known:
                raise ConfigurationError(no_such("variable", variable, known))


def _read(place: Path | None) -> Mapping[str, Any]:
    if place is None:
        return {}
    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    try:
        read: Any = importlib.import_module(name)
    except ImportError as e:
        raise ConfigurationError(f"--config needs Python 3.11, or: pip install {name}") from e
    try:
        found: dict[str, Any] = read.loads(place.read_text("utf-8"))
    except OSError as e:
        raise ConfigurationError(f"{place} can't be read: {e.strerror}") from e
    except ValueError as e:
        raise ConfigurationError(f"{place} is no TOML: {e}") from e
    return {_ALIASES.get(key, key): value for key, value in found.items()}


def _lines(key: str, value: Any) -> Iterator[str]:
    """As a variable has it: of a list or a table, each in a line."""
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
        raise ConfigurationError(f"{key}: {type(value).__name__} means nothing here: write a text or a number")


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """A key with dots that isn't quoted is a table in a table."""
    for name, each in table.items():
        if isinstance(each, Mapping):
            yield from ((f"{name}.{further}", value) for further, value in _flat(each))
        else:
            yield name, each


def _shown(value: Any) -> str:
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
