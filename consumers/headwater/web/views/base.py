"""What all pages have in common."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from headwater.errors import ConfigurationError
from headwater.lineage.store import Store
from headwater.web.settings import QuestionLimits

Given: TypeAlias = Mapping[str, tuple[str, ...]]
"""The parameters of an address, each with its values."""


class WrongAddressError(ConfigurationError):
    """An address has a parameter that the page doesn't know, or lacks one that it needs."""


@dataclass(frozen=True)
class Parameter:
    """What an address may say behind its `?`."""

    name: str
    summary: str
    is_required: bool = False
    is_repeated: bool = False
    default: str | None = None


class View(ABC):
    """A page: /PATH for people, /PATH.json for programs."""

    path: str
    title: str
    summary: str
    """What it shows, in a sentence."""
    template: str
    parameters: tuple[Parameter, ...]

    @abstractmethod
    def page(self, store: Store, given: Given, limits: QuestionLimits) -> Mapping[str, Any]:
        """Ask the store, and return what the template shows."""

    @abstractmethod
    def json(self, store: Store, given: Given, limits: QuestionLimits) -> str:
        """Return the same for programs. Numbers of snapshots are texts: JavaScript has no integers of 64 bits."""

    @abstractmethod
    def command(self, given: Given) -> str | None:
        """Return the command line that gives the same, without --store; None if there is none."""

    def check(self, given: Given) -> None:
        """Raise an error where the address has a parameter that the page doesn't know, or lacks one."""
        known = {each.name: each for each in self.parameters}
        for name, values in given.items():
            if name not in known:
                raise WrongAddressError(f"/{self.path} takes no {name!r}; it takes {', '.join(known) or 'nothing'}")
            if len(values) > 1 and not known[name].is_repeated:
                raise WrongAddressError(f"/{self.path} takes {name} once, not {len(values)} times")
        for name, each in known.items():
            if each.is_required and not given.get(name):
                raise WrongAddressError(f"/{self.path} needs {name}: {each.summary}")

    def is_answerable(self, given: Given) -> bool:
        """Return whether nothing is missing that it needs."""
        return all(given.get(each.name) for each in self.parameters if each.is_required)


def value_of(given: Given, name: str) -> str | None:
    """Return the value of a parameter that is given once."""
    values = given.get(name, ())
    return values[0] if values else None


LONGEST_NAME: Final = 2_000
"""Of a longer name no address can be made that every browser and proxy takes."""


def address(path: str, **parameters: Any) -> str:
    """Return the address of a page."""
    given = {name.replace("_", "-"): value for name, value in parameters.items() if value not in (None, "", False)}
    return f"/{path}?{urlencode(given, doseq=True)}" if given else f"/{path}"


def command_line(*words: str, **flags: object) -> str:
    """Return a command as it is typed in a shell."""
    parts = ["headwater", *words]
    for name, value in flags.items():
        if value not in (None, False):
            parts += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return shlex.join(parts)
