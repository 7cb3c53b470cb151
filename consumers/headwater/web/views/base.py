"""What all pages have in common."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.lineage.questions.answers import Answer
from headwater.web.settings import QuestionLimits

_NAMES: Final = {"extra": "forbid", "frozen": True}


class Query(BaseModel):
    """What an address says behind its `?`."""

    model_config = ConfigDict(**_NAMES)  # type: ignore[typeddict-item]


class Limit(BaseModel):
    """A reason why an answer may be incomplete."""

    why: str
    about: str
    detail: str = ""


class Content(BaseModel):
    """What a page shows. As JSON it is the HTTP API's answer."""

    complete_until: datetime | None = None
    """Everything that was committed up to this time is included; unknown if it is null."""
    limits: list[Limit] = Field(default_factory=list)


class WrongQueryError(ConfigurationError):
    """An address has a parameter that the page doesn't know, or lacks one that it needs."""


@dataclass(frozen=True)
class View:
    """A page."""

    name: str
    """Its address is /NAME, and /NAME.json for programs; the first one's is / too."""
    title: str
    summary: str
    """What it shows, in a sentence."""
    query: type[Query]
    content: type[Content]
    ask: Callable[[Connection, Any, QuestionLimits], Content]
    command: Callable[[Any], str | None]
    """The command line that gives the same, without --store."""
    in_menu: bool = True

    def parse(self, parameters: Mapping[str, str]) -> Query:
        """Return what an address says. A parameter without a value counts as left out: forms send those."""
        given = {name.replace("-", "_"): value for name, value in parameters.items() if value != ""}
        try:
            return self.query.model_validate(given)
        except ValidationError as e:
            known = ", ".join(name.replace("_", "-") for name in self.query.model_fields)
            faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].lower()}" for fault in e.errors())
            raise WrongQueryError(f"{faults}. /{self.name} takes {known}") from None


def address(view: str, **parameters: object) -> str:
    """Return the address of a page."""
    given = {name.replace("_", "-"): str(value) for name, value in parameters.items() if value not in (None, "", False)}
    return f"/{view}?{urlencode(given)}" if given else f"/{view}"


def command_line(*words: str, **flags: object) -> str:
    """Return a command as it is typed in a shell."""
    parts = ["headwater", *words]
    for name, value in flags.items():
        if value not in (None, False):
            parts += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return shlex.join(parts)


def limits_of(*answers: Answer[Any]) -> list[Limit]:
    """Return the limits of several answers, each once."""
    found = dict.fromkeys(limit for answer in answers for limit in answer.limits)
    return [Limit(why=limit.why.value, about=limit.about, detail=limit.detail) for limit in found]
