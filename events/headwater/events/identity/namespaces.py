"""One name for many hosts: `namespaces.<logical> = host, host:port, *.pattern, /regular expression/`.

Strings can't tell that three brokers, two name nodes or a virtual IP are one system; whoever runs them can. A host that
two names claim is an error, found when the configuration is read wherever that can be decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from headwater.errors import ConfigurationError
from headwater.events.identity.hosts import Endpoint, endpoint
from headwater.events.identity.text import IdentityError

PREFIX: Final = "spark.headwater.namespaces."
_ENTRY = re.compile(r"\s*/(?:[^/\\]|\\.)*/\s*|[^,]+")
_GLOB = re.compile(r"(?P<host>[A-Za-z0-9_.*?-]{1,253})(?::(?P<port>[0-9]{1,5}))?")
_LOGICAL = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one entry matches. `glob` is None for a regular expression, which sees `host` and `host:port`."""

    glob: str | None
    port: int | None
    pattern: re.Pattern[str]

    def matches(self, host: str, port: int | None) -> bool:
        if self.glob is None:
            return bool(self.pattern.fullmatch(host) or (port and self.pattern.fullmatch(f"{host}:{port}")))
        return self.port in {None, port} and bool(self.pattern.fullmatch(host))

    def meets(self, other: _Rule) -> bool:
        """Whether some host surely matches both; of two regular expressions nobody can say."""
        if self.glob is None or other.glob is None:
            return any(a.plain is not None and b.matches(a.plain, a.port) for a, b in ((self, other), (other, self)))
        return (self.port is None or other.port in {None, self.port}) and _globs_meet(self.glob, other.glob)

    @property
    def plain(self) -> str | None:
        return self.glob if self.glob and not set(self.glob) & set("*?") else None


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The logical names of a configuration. Made by `parse` or `from_conf`; empty, every host is itself."""

    _rules: tuple[tuple[str, tuple[_Rule, ...]], ...] = ()

    @classmethod
    def parse(cls, lists: Mapping[str, str]) -> Namespaces:
        rules: dict[str, tuple[_Rule, ...]] = {}
        for logical, text in lists.items():
            name = _logical_name(logical)
            if name in rules:
                msg = f"namespaces.{logical} is there twice (names compare without case); join the two lists"
                raise ConfigurationError(msg)
            rules[name] = tuple(_rules(logical, text))
        _refuse_overlaps(rules)
        return cls(tuple(rules.items()))

    @classmethod
    def from_conf(cls, conf: Mapping[str, str], prefix: str = PREFIX) -> Namespaces:
        return cls.parse({key[len(prefix) :]: text for key, text in conf.items() if key.startswith(prefix)})

    def logical(self, where: Endpoint) -> str | None:
        """The one name under which a host is known, if any; a logical name is known under itself."""
        if any(name == where.host for name, _ in self._rules):
            return where.host
        found = [name for name, rules in self._rules if any(rule.matches(*where) for rule in rules)]
        if len(found) > 1:
            both = " and ".join(sorted(found))
            msg = f"host {where} belongs to namespaces {both}; make their patterns exclude each other"
            raise IdentityError(msg)
        return found[0] if found else None

    def expressions(self) -> Iterator[tuple[str, str]]:
        """Yield by regular expression of `host:port` the logical name of those that match it."""
        for name, rules in self._rules:
            for rule in rules:
                port = "(:[0-9]+)?" if rule.port is None else f":{rule.port}"
                yield f"(?:{rule.pattern.pattern}){port}", name


def _logical_name(text: str) -> str:
    name = text.lower()
    if not _LOGICAL.fullmatch(name):
        msg = f"namespaces.{text}: a logical name is letters, digits, dots, hyphens and underscores; rename it"
        raise ConfigurationError(msg)
    return name


def _rules(logical: str, text: str) -> Iterator[_Rule]:
    entries = [entry.strip() for entry in _ENTRY.findall(text)]
    commas = len(_ENTRY.sub("", text))
    if not entries or "" in entries or commas != len(entries) - 1:
        msg = f"namespaces.{logical} is empty or has an empty entry; list hosts or patterns with one comma between two"
        raise ConfigurationError(msg)
    for entry in entries:
        yield _regex_rule(logical, entry) if entry.startswith("/") else _host_rule(logical, entry)


def _regex_rule(logical: str, entry: str) -> _Rule:
    if len(entry) < 3 or not entry.endswith("/"):
        msg = f"namespaces.{logical}: {entry!r} isn't /a regular expression/; close it with a slash"
        raise ConfigurationError(msg)
    try:
        return _Rule(None, None, re.compile(entry[1:-1], re.IGNORECASE))
    except (re.error, RecursionError, OverflowError) as fault:
        msg = f"namespaces.{logical}: {entry!r} isn't a valid regular expression: {fault}"
        raise ConfigurationError(msg) from None


def _host_rule(logical: str, entry: str) -> _Rule:
    glob = _GLOB.fullmatch(entry)
    if glob and set(entry) & set("*?"):
        text, port = glob["host"].lower(), int(glob["port"]) if glob["port"] else None
        return _Rule(text, port, re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")))
    try:
        host, port = endpoint(entry)
    except IdentityError:
        msg = f"namespaces.{logical}: {entry!r} is neither host, host:port, a pattern with * and ?, nor /an expression/"
        raise ConfigurationError(msg) from None
    return _Rule(host, port, re.compile(re.escape(host)))


def _refuse_overlaps(rules: Mapping[str, tuple[_Rule, ...]]) -> None:
    for first, second in combinations(rules, 2):
        if any(a.meets(b) for a in rules[first] for b in rules[second]):
            msg = f"namespaces.{first} and namespaces.{second} claim the same hosts; make them exclude each other"
            raise ConfigurationError(msg)
    for name in rules:
        for other, patterns in rules.items():
            if other != name and any(rule.matches(name, rule.port) for rule in patterns):
                msg = f"namespaces.{other} claims {name!r}, another namespace's name; rename one or narrow the pattern"
                raise ConfigurationError(msg)


def _globs_meet(a: str, b: str) -> bool:
    """Whether some text matches both of two patterns of `*` and `?`."""
    seen = {(0, 0)}
    ahead = [(0, 0)]
    while ahead:
        i, j = ahead.pop()
        if i == len(a) and j == len(b):
            return True
        new = set(_steps(a, i, b, j)) - seen
        seen |= new
        ahead += new
    return False


def _steps(a: str, i: int, b: str, j: int) -> Iterator[tuple[int, int]]:
    star_a, star_b = a[i : i + 1] == "*", b[j : j + 1] == "*"
    if (star_a or star_b) and i < len(a):
        yield i + 1, j
    if (star_a or star_b) and j < len(b):
        yield i, j + 1
    if not (star_a or star_b) and i < len(a) and j < len(b) and (a[i] == b[j] or "?" in {a[i], b[j]}):
        yield i + 1, j + 1
