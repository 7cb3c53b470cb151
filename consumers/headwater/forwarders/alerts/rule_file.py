"""Reads a file of rules, and reports all its faults at once, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from pydantic import Field, ValidationError, field_validator

from headwater.config import Config, Seconds, read_config, read_toml, unknown
from headwater.errors import ConfigurationError
from headwater.forwarders.alerts.rules import RULES, Rule
from headwater.forwarders.webhook.options import HttpOptions

M = TypeVar("M", bound=Config)


class AlertWebhookOptions(HttpOptions):
    """A webhook that gets alerts as CloudEvents."""

    type: Literal["webhook"]
    request_timeout: Seconds = Field(default=10.0, gt=0, le=60)


class SlackOptions(HttpOptions):
    """Slack, or whatever takes its JSON."""

    type: Literal["slack"]
    request_timeout: Seconds = Field(default=10.0, gt=0, le=60)


class CommandOptions(Config):
    """A program that gets an alert as JSON on its standard input."""

    type: Literal["command"]
    command: tuple[str, ...] = Field(min_length=1)
    """The program and its arguments. There is no shell."""
    timeout: Seconds = Field(default=10.0, gt=0, le=60)

    @field_validator("command")
    @classmethod
    def _is_absolute(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if not command[0].startswith("/"):
            raise ValueError("write the program with its whole path, /usr/local/bin/page say")
        return command


DestinationOptions: TypeAlias = AlertWebhookOptions | SlackOptions | CommandOptions
_TYPES: Final[dict[str, type[DestinationOptions]]] = {
    "webhook": AlertWebhookOptions,
    "slack": SlackOptions,
    "command": CommandOptions,
}
_SECTIONS: Final = ("destinations", "rules")


@dataclass(frozen=True)
class RuleFile:
    """Rules, and the destinations that they name."""

    rules: tuple[Rule, ...]
    destinations: Mapping[str, DestinationOptions]


def read_rule_file(path: Path) -> RuleFile:
    """Return what the file says. A ConfigurationError names all that is wrong with it."""
    reader = _Reader(read_toml(path, "a file of rules"))
    found = reader.read()
    if reader.faults:
        raise ConfigurationError("; ".join(f"{path}: {fault}" for fault in reader.faults))
    return found


class _Reader:
    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self.faults: list[str] = []

    def read(self) -> RuleFile:
        self.faults += [unknown("key", key, _SECTIONS) for key in self._content if key not in _SECTIONS]
        destinations = dict(self._destinations())
        rules = tuple(self._rules())
        if not self.faults and not rules:
            self.faults.append("there is no rule in it: write one below [[rules]]")
        self._compare()
        return RuleFile(rules, destinations)

    def _compare(self) -> None:
        """Look at what rules say of each other and of destinations, also at those that have other faults."""
        tables = self._content.get("rules")
        listed = [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
        names = [str(each.get("name")) for each in listed if "name" in each]
        self.faults += [
            f"two rules are called {name}: rename one" for name in sorted(set(names)) if names.count(name) > 1
        ]
        declared = self._content.get("destinations")
        known = list(declared) if isinstance(declared, dict) else []
        for number, rule in enumerate(listed, 1):
            wanted = rule.get("to")
            for each in wanted if isinstance(wanted, list) else ():
                if each not in known:
                    place = _rule_place(number, rule.get("name"))
                    self.faults.append(f"{place}.to: {unknown('destination', str(each), known)}")

    def _destinations(self) -> Iterator[tuple[str, DestinationOptions]]:
        tables = self._content.get("destinations", {})
        if not isinstance(tables, dict):
            self.faults.append("destinations: write [destinations.<name>]")
            return
        for name, table in tables.items():
            where = f"destinations.{name}"
            kind = self._kind(table, "type", where, _TYPES)
            if kind is None:
                continue
            found = self._command(table, where) if kind == "command" else self._http(_TYPES[kind], table, where)
            if found is not None:
                yield name, found

    def _command(self, table: Mapping[str, Any], where: str) -> CommandOptions | None:
        return self._validated(CommandOptions, table, where)

    def _http(
        self, options: type[DestinationOptions], table: Mapping[str, Any], where: str
    ) -> DestinationOptions | None:
        try:
            return read_config(options, dict(_flat(table, where)), shown=f"{where}.")
        except ConfigurationError as e:
            self.faults.append(str(e))
            return None

    def _rules(self) -> Iterator[Rule]:
        tables = self._content.get("rules", [])
        if not isinstance(tables, list):
            self.faults.append("rules: write [[rules]], with two brackets")
            return
        for number, table in enumerate(tables, 1):
            name = table.get("name") if isinstance(table, dict) else None
            where = _rule_place(number, name)
            kind = self._kind(table, "when", where, RULES)
            found = None if kind is None else self._validated(RULES[kind], table, where)
            if found is not None:
                yield found

    def _kind(self, table: Any, key: str, where: str, known: Mapping[str, object]) -> str | None:
        kind = table.get(key) if isinstance(table, dict) else None
        if not isinstance(kind, str):
            self.faults.append(f"{where}.{key}: isn't there, and has to be one of {', '.join(known)}")
        elif kind not in known:
            self.faults.append(f"{where}.{key}: {unknown('kind', kind, known)}")
        else:
            return kind
        return None

    def _validated(self, model: type[M], table: Mapping[str, Any], where: str) -> M | None:
        model.model_rebuild()
        try:
            return model.model_validate(table)
        except ValidationError as e:
            for fault in e.errors(include_url=False, include_input=False):
                self.faults.append(_words(model, where, fault))
        return None


def _words(model: type[Config], where: str, fault: Any) -> str:
    path = ".".join(map(str, fault["loc"]))
    if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
        return f"{where}: {unknown('key', path, model.model_fields)}"
    if fault["type"] == "missing":
        return f"{where}.{path}: isn't there, and has to be"
    return f"{where}.{path}: {fault['msg'].removeprefix('Value error, ')}".replace(".: ", ": ")


def _rule_place(number: int, name: object) -> str:
    return f"rules[{number}] ({name})" if isinstance(name, str) else f"rules[{number}]"


def _flat(table: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Yield a table's keys as they stand in other configurations, with dots."""
    for key, value in table.items():
        if isinstance(value, dict):
            for name, each in _flat(value, f"{where}.{key}"):
                yield f"{key}.{name}", each
        elif isinstance(value, (str, int, float)):
            yield key, str(value)
        else:
            raise ConfigurationError(f"{where}.{key}: {type(value).__name__} can't be a value here: write a text")
