"""Where flat keys come from: files, the environment, the command line; and which of them wins."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from headwater.config.model import Config, Keys, unknown
from headwater.errors import ConfigurationError

_OF_KUBERNETES: Final = re.compile(
    r".*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SEPARATOR: Final = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_CONTINUED: Final = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's cache directory of headwater; it may begin with `~`."""
    own, shared = environment.get("HEADWATER_CACHE"), environment.get("XDG_CACHE_HOME")
    if own:
        return Path(own)
    return Path(shared, "headwater") if shared else Path("~", ".cache", "headwater")


def layered(*layers: Mapping[str, str | None]) -> dict[str, str]:
    """One configuration out of several, key by key; the later win: `layered(defaults, file, environment, flags)`.
    None, a flag that wasn't given say, leaves what was there."""
    return {key: value for layer in layers for key, value in layer.items() if value is not None}


def from_file(path: Path | str, *, is_strict: bool = True) -> dict[str, str]:
    """The keys in a file that is written as spark-defaults.conf is, in UTF-8.

    A line is `key value`, `key = value` or `key: value`; `#` or `!` begins a line that is a comment; a backslash at its
    end joins a line with the next one, and one before a character takes from it what it means here. A key that
    stands there twice is a fault. Without `is_strict` what Java reads without a word is no fault: of a key that stands
    there twice the last value holds.
    """
    try:
        text = Path(path).read_text("utf-8-sig", "strict" if is_strict else "replace")
    except OSError as e:
        raise ConfigurationError(f"{path} can't be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise ConfigurationError(f"{path} isn't UTF-8: byte {e.start} is wrong") from e
    found: dict[str, tuple[str, int]] = {}
    for number, line in _lines(text):
        match = _SEPARATOR.fullmatch(line)
        key, value = (_unescape(part) for part in match.groups()) if match else ("", "")
        if not key and is_strict:
            raise ConfigurationError(f"{path}, line {number}: a key is missing: write key = value")
        if key in found and is_strict:
            raise ConfigurationError(f"{path}, line {number}: {key} is in line {found[key][1]} already: remove one")
        found[key] = (value, number)
    return {key: value for key, (value, _) in found.items() if key}


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return what is in a file of TOML; `what` says in an error who needs a library that reads it."""
    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    try:
        reader: Any = importlib.import_module(name)
    except ImportError as e:
        raise ConfigurationError(f"{what} needs Python 3.11, or: pip install {name}") from e
    try:
        found: dict[str, Any] = reader.loads(path.read_text("utf-8"))
    except OSError as e:
        raise ConfigurationError(f"{path} can't be read: {e.strerror}") from e
    except ValueError as e:
        raise ConfigurationError(f"{path} isn't TOML: {e}") from e
    return found


def from_environment(
    config: type[Config],
    environment: Mapping[str, str],
    variables: str,
    *,
    prefix: str = "",
    others: Collection[str] = (),
) -> dict[str, str]:
    """The keys, below `prefix`, that variables beginning with `variables` stand for.

    `HEADWATER_KAFKA_BOOTSTRAP_SERVERS` is `bootstrap.servers` where `variables` is `HEADWATER_KAFKA_`. Below a section
    any name is right, so there each `_` is a dot and `__` an underscore: `…_PRODUCER_SASL_USERNAME` is
    `producer.sasl.username`. Variables that begin with one of `others` belong to somebody else, and so do those that
    Kubernetes sets in each pod for a service whose name begins alike (`HEADWATER_KAFKA_PORT=tcp://10.0.0.1:9092`). One
    that stands for no key, or for two, is a fault; all are reported at once.
    """
    keys = Keys.of(config)
    named = _by_variable(keys, variables)
    found: dict[str, str] = {}
    faults: list[str] = []
    for variable in sorted(environment):
        if not variable.startswith(variables) or variable.startswith(tuple(others)):
            continue
        if is_of_kubernetes(variable) and variable not in named:
            continue
        meant = named.get(variable) or _below_a_section(keys, variables, variable)
        if keys.sections.issuperset(meant) and variable in named:
            faults.append(f"{variable} is a section, not a key: write {variable}_<NAME>")
        elif len(meant) == 1:
            found[prefix + meant[0]] = environment[variable]
        elif meant:
            faults.append(f"{variable} can be {' or '.join(prefix + key for key in meant)}: say it in a file")
        else:
            faults.append(unknown("variable", variable, _known_variables(keys, named)))
    if faults:
        raise ConfigurationError("; ".join(faults))
    return found


def is_of_kubernetes(variable: str) -> bool:
    """Return whether Kubernetes sets such a variable in each pod for a service: no setting of ours is called so."""
    return _OF_KUBERNETES.fullmatch(variable) is not None


def variable_of(key: str, variables: str) -> str:
    """The variable that stands for a key: `bootstrap.servers` below `HEADWATER_KAFKA_`."""
    return variables + re.sub(r"[^A-Za-z0-9]", "_", key).upper()


def _by_variable(keys: Keys, variables: str) -> dict[str, list[str]]:
    named: dict[str, list[str]] = defaultdict(list)
    for key in keys.fields:
        named[variable_of(key, variables)].append(key)
    return named


def _below_a_section(keys: Keys, variables: str, variable: str) -> list[str]:
    begins = {f"{variable_of(section, variables)}_": section for section in keys.sections}
    inside = [begin for begin in begins if variable.startswith(begin) and variable != begin]
    if not inside:
        return []
    begin = max(inside, key=len)
    name = "_".join(part.replace("_", ".") for part in variable[len(begin) :].lower().split("__"))
    return [f"{begins[begin]}.{name}"]


def _known_variables(keys: Keys, named: Mapping[str, list[str]]) -> list[str]:
    return [f"{variable}_<NAME>" if keys.sections.issuperset(meant) else variable for variable, meant in named.items()]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, with those joined that a backslash joins, and the number of the first of each."""
    lines = enumerate(text.split("\n"), 1)
    for number, raw in lines:
        line = raw.strip()
        if not line or line[0] in "#!":
            continue
        while _CONTINUED.search(line):
            line = line[:-1] + next(lines, (0, ""))[1].strip()
        yield number, line


def _unescape(text: str) -> str:
    def meant(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(meant, text)
