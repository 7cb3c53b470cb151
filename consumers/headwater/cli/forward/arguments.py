"""Which forwarders a command is about: from `--config`, `--option`, the environment, and what is installed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headwater.cli.flags import VARIABLES, Flags, no_such
from headwater.cli.writer.config_file import FileFlags
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.forwarders.configuration import ForwarderSettings

_TABLES: Final = "forwarders"
_KEYS: Final = (
    *("bus", "kafka", "option", "state", "start", "archive", "store", "writer-group"),
    *("health", "drain-seconds", "log-format", "log-level"),
    "until-end",
)
"""The flags of `headwater forward run`, which are keys of the file."""


class ForwardFlags(FileFlags):
    """The parser of a command that reads `[forwarders.NAME]` tables."""

    variables: ClassVar[Mapping[str, str]] = {
        **VARIABLES,
        "config": "HEADWATER_FORWARD_CONFIG",
        "kafka": "HEADWATER_FORWARD_KAFKA",
        "option": "HEADWATER_FORWARD_OPTIONS",
        "state": "HEADWATER_FORWARD_STATE",
    }
    further_keys: ClassVar[Collection[str]] = (_TABLES, *_KEYS)

    def _declare_file(self) -> None:
        self.flag(
            "config", Path, None, "a file in TOML: flags of `forward run`, and a table forwarders.NAME for each", "FILE"
        )


class ForwardRunFlags(ForwardFlags):
    """The same for the command whose flags the keys are."""

    def _declare_file(self) -> None:
        super()._declare_file()
        self.switch("print-config", "show what holds and where it is from, and end")


def add_forwarders(parser: Flags) -> None:
    """Add the flags that say which forwarders there are."""
    text = "an option of a forwarder, such as openlineage.url=https://marquez:5000"
    parser.flags("option", forwarder_option, text, "NAME.KEY=VALUE")
    add_state(parser)


def add_state(parser: Flags) -> None:
    """Add the flag that says where forwarders keep what they know."""
    text = "where forwarders keep their dead letters and what they know; of each machine its own"
    parser.flag("state", Path, None, text, "DIR")


def state_directory(given: Namespace) -> Path:
    """Return where the state is."""
    from headwater.forwarders.state import default_state_directory  # noqa: PLC0415

    return Path(given.state).expanduser() if given.state is not None else default_state_directory()


def forwarder_option(text: str) -> tuple[str, str]:
    """Read `NAME.KEY=VALUE`, and return `NAME.KEY` and the value."""
    path, is_pair, value = text.partition("=")
    name, _, key = path.partition(".")
    if not (is_pair and name.strip() and key.strip()):
        raise ValueError(f"{text!r} isn't NAME.KEY=VALUE: write datahub.url=http://gms:8080")
    return path.strip(), value


def configured_values(given: Namespace) -> dict[str, dict[str, str]]:
    """Return the keys of each forwarder that is configured. `--option` goes before the file."""
    found: dict[str, dict[str, str]] = {}
    tables = given.parser.file_value(_TABLES) or {}
    for name, table in tables.items() if isinstance(tables, Mapping) else []:
        if not isinstance(table, Mapping):
            raise ConfigurationError(
                f"{given.parser.file_place}: {_TABLES}.{name} isn't a table: write [{_TABLES}.{name}]"
            )
        found[name] = dict(_flat_values(f"{_TABLES}.{name}.", table))
    for path, value in given.option or ():
        name, _, key = path.partition(".")
        found.setdefault(name, {})[key] = value
    return found


def chosen_settings(given: Namespace, names: Sequence[str]) -> list[ForwarderSettings]:
    """Return the forwarders that are named, or all that are configured. One that is named alone is a type that is
    installed."""
    from headwater.forwarders.api import GROUP  # noqa: PLC0415
    from headwater.forwarders.configuration import read_settings  # noqa: PLC0415
    from headwater.plugins import names as installed_names  # noqa: PLC0415

    values = configured_values(given)
    there = list(dict.fromkeys([*values, *installed_names(GROUP)]))
    for name in names:
        if name not in there:
            own = f"One of your own has a type: --option {name}.type=package.module:Class"
            raise ConfigurationError(f"{no_such('forwarder', name, there)}. {own}")
    chosen = list(dict.fromkeys(names)) or list(values)
    if not chosen:
        table = f"[{_TABLES}.NAME] into the file that --config names"
        raise ConfigurationError(f"which forwarder? Name one of {', '.join(there)}, or write {table}")
    return [read_settings(name, values.get(name, {})) for name in chosen]


def _flat_values(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each key of a table with dots, and its value as text. A list has commas."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}.{further}", text) for further, text in _flat_values(f"{prefix}{key}.", value))
        elif isinstance(value, bool):
            yield key, str(value).lower()
        elif isinstance(value, (str, int, float)):
            yield key, str(value)
        elif isinstance(value, list) and all(isinstance(each, (str, int, float)) for each in value):
            yield key, ",".join(map(str, value))
        else:
            raise ConfigurationError(f"{prefix}{key}: write a text, a number or a list of texts")
