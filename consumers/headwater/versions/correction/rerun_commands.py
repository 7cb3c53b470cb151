"""`correction.toml`: how jobs are run again. Events carry no commands, since their arguments can hold secrets.

[jobs."daily_report"]
run = "jobs/report.py {date}"
stop = "systemctl stop report"
start = "systemctl start report"
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from headwater.config import read_toml
from headwater.errors import ConfigurationError

FILE_NAME: Final = "correction.toml"
_JOBS: Final = "jobs"
_RUN: Final = "run"
_KEYS: Final = (_RUN, "stop", "start")
CHECKPOINT: Final = "{checkpoint}"
"""In the command of a stream: where its checkpoint is."""
_BRACES: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_DATE: Final = re.compile(r"date(?:([+-])([0-9]{1,4}))?")


@dataclass(frozen=True)
class RerunCommand:
    """How one job is run again: a script with its arguments, as `headwater run` takes them."""

    job: str
    template: str
    stop: str | None = None
    """The command that stops it in production."""
    start: str | None = None
    """The command that lets it go on in production."""

    def commands(self, runs: Iterable[datetime]) -> tuple[str, ...]:
        """Return the commands for runs that began at these times: each once, the oldest first. `{date}` is the day of a
        run in UTC, and `{date-1}` the day before."""
        return tuple(dict.fromkeys(self._at(moment) for moment in sorted(runs)))

    def _at(self, moment: datetime) -> str:
        day = moment.astimezone(timezone.utc).date()

        def value(match: re.Match[str]) -> str:
            if match[0] == CHECKPOINT:
                return CHECKPOINT  # it is known when the job runs
            date = _DATE.fullmatch(match[1] or "")
            if date is None:
                return match[0][0]  # a brace that is written twice
            return (day + timedelta(days=int(f"{date[1] or ''}{date[2] or 0}"))).isoformat()

        return _BRACES.sub(value, self.template)


class RerunCommands:
    """All commands of a file."""

    def __init__(self, commands: Mapping[str, RerunCommand], path: Path | None = None) -> None:
        self._commands = commands
        self._path = path

    @classmethod
    def read(cls, path: Path) -> RerunCommands:
        """Read a file. A ConfigurationError names all that is wrong in it."""
        found = read_toml(path, FILE_NAME)
        faults = [_unknown("key", key, [_JOBS]) for key in found if key != _JOBS]
        jobs = found.get(_JOBS, {})
        if not isinstance(jobs, Mapping):
            raise ConfigurationError(f'{path}: jobs has to be a table: write [jobs."NAME"] and run = "SCRIPT" below it')
        commands = {name: command for name, given in jobs.items() if (command := _command(name, given, faults))}
        if faults:
            raise ConfigurationError("\n  ".join([f"{path} can't be used:", *faults]))
        return cls(commands, path)

    def of(self, job: str) -> RerunCommand | None:
        return self._commands.get(job)

    def refuse_unknown(self, jobs: Collection[str]) -> None:
        """Raise an error for a name that is nearly that of a job whose command is missing: it is mistyped."""
        missing = [job for job in jobs if job not in self._commands]
        for name in self._commands.keys() - set(jobs):
            if near := get_close_matches(name, missing, n=1, cutoff=0.8):
                raise ConfigurationError(
                    f"{self._path}: no job {name!r} made anything from what is wrong; did you mean {near[0]!r}?"
                )


def _command(name: str, given: Any, faults: list[str]) -> RerunCommand | None:
    where = f'[jobs."{name}"]'
    if not isinstance(given, Mapping):
        faults.append(f'{where} has to be a table: write {where} and run = "SCRIPT" below it')
        return None
    faults += [f"{where}: {_unknown('key', key, _KEYS)}" for key in given if key not in _KEYS]
    template = given.get(_RUN)
    if not isinstance(template, str) or not template.strip():
        faults.append(f'{where}: run is missing: write run = "jobs/report.py {{date}}"')
        return None
    others = {key: given[key] for key in ("stop", "start") if key in given}
    faults += [
        f'{where}: {key} has to be a command: write {key} = "systemctl {key} report"'
        for key, text in others.items()
        if not isinstance(text, str) or not text.strip()
    ]
    texts = [template, *(text for text in others.values() if isinstance(text, str))]
    if problems := [problem for text in texts if (problem := _problem_of(text)) is not None]:
        faults += [f"{where}: {problem}" for problem in problems]
        return None
    return RerunCommand(name, template, **others)


def _problem_of(template: str) -> str | None:
    for match in _BRACES.finditer(template):
        if match[0] in {"{", "}"}:
            return f"{match[0]!r} in {template!r} is alone: write {match[0] * 2} for the character itself"
        if match[1] is not None and match[0] != CHECKPOINT and not _DATE.fullmatch(match[1]):
            return (
                f"{match[0]} isn't known: write {{date}}, {{date-1}} or {{date+1}}, {{checkpoint}}, or {{{{ and }}}} "
                "for braces"
            )
    try:
        shlex.split(template)
    except ValueError as e:
        return f"{template!r} is no command: {e}"
    return None


def _unknown(what: str, name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"there is no {what} {name!r}" + (f"; did you mean {near[0]!r}?" if near else f": write {', '.join(known)}")
