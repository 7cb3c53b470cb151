"""Flat keys become the fields of a frozen object."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from headwater.errors import ConfigurationError

_MISSING: Final = "isn't there, and has to be"
_LISTS: Final = (list, tuple, AbstractSet)
_UNIONS: Final = (Union, UnionType)
_NOT_GUESSED: Final = re.compile(
    r"secur|sasl|ssl|tls|auth|user|passw|cert|key|token|secret|credential|server|url|topic|\bdir\b|database|file",
    re.IGNORECASE,
)
"""In keys that say where something goes, or how a connection is secured."""
_MIN_SIMILARITY: Final = 0.6
"""Of two names, so that one is offered for the other."""


class Config(BaseModel):
    """The base of configuration objects: frozen, and nothing that isn't a field is accepted.

    A field is found under its alias, or under its name with dots for underscores: `max_bytes` is `max.bytes`. A field
    whose type is a mapping (or may be None) is a section and takes all keys below its own: `producer` takes
    `producer.linger.ms`. A list, tuple or set is written with commas. Sizes are `Bytes`, durations `Seconds`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)


C = TypeVar("C", bound=Config)


def read_config(config: type[C], values: Mapping[str, str], *, prefix: str = "", shown: str | None = None) -> C:
    """The configuration that these keys say: those below the prefix. Raises a ConfigurationError with all faults.

    Faults tell the full key; `shown` is what stands before it for the user where the prefix was cut off already."""
    keys = Keys.of(config)
    content: dict[str, Any] = {}
    faults: list[str] = []
    before = prefix if shown is None else shown
    for key, value in values.items():
        if key.startswith(prefix):
            fault = _put(content, keys, key[len(prefix) :], value, before)
            faults += [fault] if fault else []
    return _validate(config, content, keys, before, faults)


def read_usable_config(
    config: type[C], values: Mapping[str, str], report: Callable[[str], None], *, shown: str = ""
) -> C:
    """The configuration without the keys that are wrong: each is reported, and its default holds.

    Raises a ConfigurationError where there is no default, and for a key, or the one that is meant, that says where
    something goes or how a connection is secured: a slip of the pen sends nothing elsewhere or in the clear."""
    keys, right = Keys.of(config), dict(values)
    for key, value in values.items():
        fault = _find_fault(config, keys, key, value, shown)
        if fault is not None and not any(map(_NOT_GUESSED.search, (key, *_nearest(key, keys.fields)))):
            del right[key]
            report(f"{fault}; what holds now is the default")
    return read_config(config, right, shown=shown)


def _find_fault(config: type[C], keys: Keys, key: str, value: str, before: str) -> str | None:
    """What is wrong with a key and its value alone."""
    content: dict[str, Any] = {}
    fault = _put(content, keys, key, value, before)
    if fault is not None or key not in keys.fields:
        return fault
    try:
        config.model_validate(content)
    except ValidationError as e:
        faults = (error for error in e.errors(include_url=False, include_input=False) if error["type"] != "missing")
        own = [each["msg"].removeprefix("Value error, ") for each in faults if each["loc"][:1] == (keys.fields[key],)]
        return f"{before}{key}: {'; '.join(own)}" if own else None
    return None


@dataclass(frozen=True)
class Keys:
    """The keys of a configuration: what field each is, which are sections, which are lists."""

    fields: Mapping[str, str]
    """The name that pydantic takes, by key."""
    sections: frozenset[str]
    lists: frozenset[str]

    @classmethod
    @cache
    def of(cls, config: type[Config]) -> Keys:
        config.model_rebuild()  # annotations are texts until the first use
        fields = {field.alias or name.replace("_", "."): (name, field) for name, field in config.model_fields.items()}
        return cls(
            {key: field.alias or name for key, (name, field) in fields.items()},
            frozenset(key for key, (_, field) in fields.items() if _is_any(field.annotation, (Mapping,))),
            frozenset(key for key, (_, field) in fields.items() if _is_any(field.annotation, _LISTS)),
        )

    def section_of(self, key: str) -> str | None:
        """The section that a key stands in: the longest, where one is inside another."""
        inside = [section for section in self.sections if key.startswith(f"{section}.") and key != f"{section}."]
        return max(inside, key=len, default=None)

    def spellings(self, before: str) -> list[str]:
        """All keys as they are written."""
        return [f"{before}{key}.<name>" if key in self.sections else f"{before}{key}" for key in self.fields]


def _put(content: dict[str, Any], keys: Keys, key: str, value: str, before: str) -> str | None:
    """Put a value where it belongs, or say why it belongs nowhere."""
    if key.rstrip(".") in keys.sections:
        return f"{before}{key} is a section, not a key: write {before}{key.rstrip('.')}.<name>"
    if key in keys.fields:
        content[keys.fields[key]] = _items(value) if key in keys.lists else value
        return None
    section = keys.section_of(key)
    if section is None:
        return unknown("key", before + key, keys.spellings(before))
    content.setdefault(keys.fields[section], {})[key[len(section) + 1 :]] = value
    return None


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


def _validate(config: type[C], content: Mapping[str, Any], keys: Keys, before: str, faults: list[str]) -> C:
    made: C | None = None
    try:
        made = config.model_validate(content)
    except ValidationError as e:
        names = {field: key for key, field in keys.fields.items()}
        for fault in e.errors(include_url=False, include_input=False):  # the input may be a secret
            head, *rest = map(str, fault["loc"]) if fault["loc"] else ("",)
            where = before + ".".join([names.get(head, head), *rest])
            words = _MISSING if fault["type"] == "missing" else fault["msg"].removeprefix("Value error, ")
            faults.append(f"{where.rstrip('.') or 'the configuration'}: {words}")
    if made is None or faults:
        raise ConfigurationError("; ".join(faults))
    return made


def _is_any(annotation: Any, kinds: tuple[type, ...]) -> bool:
    return any(isinstance(each, type) and issubclass(each, kinds) for each in _types(annotation))


def _types(annotation: Any) -> Iterator[Any]:
    """The classes that a type may be: those of a union and of what is annotated, without their parameters."""
    origin = get_origin(annotation)
    if origin is None:
        yield annotation
    elif origin in _UNIONS:
        for arg in get_args(annotation):
            yield from _types(arg)
    elif origin is Annotated:
        yield from _types(get_args(annotation)[0])
    else:
        yield origin


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """Words for a name that isn't there, with the nearest right one."""
    names = sorted(known)
    nearest = _nearest(given, names)
    if nearest:
        return f"there is no {what} {given}: did you mean {nearest[0]}?"
    return f"there is no {what} {given}: there is {', '.join(names) or 'none at all'}"


def _nearest(given: str, names: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(given, names, n=1, cutoff=_MIN_SIMILARITY)
