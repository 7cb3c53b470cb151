"""Configuration: flat keys as people write them in Spark conf, files and environment become one validated object.

An unknown key, or one that is only nearly right, is an error that names the nearest right one: nothing is dropped
silently. All faults are told at once, each with its full key.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from headwater.errors import ConfigurationError

_CLOSE: Final = 0.6


class Config(BaseModel):
    """The base of configuration objects: frozen, and nothing that isn't a field is accepted.

    A field is found under its alias, or under its name with dots for underscores: `max_bytes` is `max.bytes`. A field
    whose type is a mapping of texts takes all keys below its own: `producer` takes `producer.linger.ms`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)


C = TypeVar("C", bound=Config)


def read_config(config: type[C], values: Mapping[str, str], *, prefix: str = "") -> C:
    """The configuration that these keys say: those below the prefix, which is told in errors. Raises a
    ConfigurationError with all faults."""
    keys = _keys(config)
    content: dict[str, Any] = {}
    faults: list[str] = []
    for key, value in values.items():
        if not key.startswith(prefix):
            continue
        short = key[len(prefix) :]
        section = next((s for s in _sections(config, keys) if short.startswith(f"{s}.")), None)
        if short in keys and short not in _sections(config, keys):
            content[keys[short]] = value
        elif section is not None:
            content.setdefault(keys[section], {})[short[len(section) + 1 :]] = value
        else:
            faults.append(unknown("key", key, [prefix + known for known in keys]))
    return _validated(config, content, prefix, faults)


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """Words for a name that isn't there, with the nearest right one."""
    names = sorted(known)
    nearest = difflib.get_close_matches(given, names, n=1, cutoff=_CLOSE)
    if nearest:
        return f"there is no {what} {given}: did you mean {nearest[0]}?"
    return f"there is no {what} {given}: there is {', '.join(names) or 'none at all'}"


def _validated(config: type[C], content: Mapping[str, Any], prefix: str, faults: list[str]) -> C:
    made: C | None = None
    try:
        made = config.model_validate(content)
    except ValidationError as e:
        names = {field: key for key, field in _keys(config).items()}
        for fault in e.errors(include_url=False, include_input=False):  # the input may be a secret
            head, *rest = map(str, fault["loc"]) if fault["loc"] else ("",)
            faults.append(f"{prefix}{'.'.join([names.get(head, head), *rest])}: {fault['msg']}")
    if made is None or faults:
        raise ConfigurationError("; ".join(faults))
    return made


def _keys(config: type[Config]) -> dict[str, str]:
    """The key of each field, and the field's name."""
    return {f.alias or name.replace("_", "."): f.alias or name for name, f in config.model_fields.items()}


def _sections(config: type[Config], keys: Mapping[str, str]) -> set[str]:
    by_name = {f.alias or name: f for name, f in config.model_fields.items()}
    return {key for key, name in keys.items() if "Mapping" in str(by_name[name].annotation)}
