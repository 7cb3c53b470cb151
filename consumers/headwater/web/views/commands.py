"""Pages that show what a command of the command line gives: the words of the command are their address.

`headwater table late sales.weekly` is /table/late?table=sales.weekly, and its JSON is /table/late.json. Only commands
that ask the store are here, and of their flags only those that are named: none that names a file.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Final, NoReturn, cast

from headwater.cli.app import leaf_parser
from headwater.cli.commands import TREE, Command, CommandPath, Leaf
from headwater.cli.flags import Arity, Flags
from headwater.cli.output import CommandOutput, JsonOutput
from headwater.lineage.store import Store
from headwater.spi import CheckResult
from headwater.web.settings import QuestionLimits
from headwater.web.views.base import Given, Parameter, View, WrongAddressError


@dataclass(frozen=True)
class Block:
    """A part of an answer: a table with columns and rows, or a record whose rows are names and values."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    is_record: bool = False


@dataclass
class PageOutput:
    """Collects what a command gives."""

    blocks: list[Block] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def outcome(self, text: str, fields: Mapping[str, object]) -> None:  # noqa: ARG002 - the sentence has it all
        self.notes.append(text)

    def record(self, name: str, fields: Mapping[str, object], title: str = "") -> None:
        self.blocks.append(Block(name, title or _title(name), (), tuple(fields.items()), is_record=True))

    def table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
        self.blocks.append(Block(name, title or _title(name), tuple(columns), tuple(map(tuple, rows))))

    def findings(self, chapter: str, findings: Iterable[CheckResult]) -> Iterator[CheckResult]:
        found = tuple(findings)
        rows = tuple((each.status.value, each.step, each.message, each.advice) for each in found)
        self.blocks.append(Block(chapter, chapter, ("status", "step", "message", "advice"), rows))
        yield from found

    def answer(self, text: str) -> None:
        self.notes.append(text)

    def error(self, error: BaseException) -> None:
        raise error

    def finish(self, *, has_failed: bool = False) -> None:
        """Nothing is printed."""


class CommandView(View):
    """The page of one command."""

    template = "command.html"

    def __init__(self, words: str, title: str, *names: str) -> None:
        self.path = words.replace(" ", "/")
        self.title = title
        self._words: CommandPath = tuple(words.split())
        leaf = _leaf(self._words)
        self.summary = f"{leaf.summary[:1].upper()}{leaf.summary[1:]}."
        self._command: Command = leaf.load()
        self._names = names
        parser = self._parser()
        actions = {action.dest.replace("_", "-"): action for action in parser._actions}  # noqa: SLF001 - there is no other way
        self._flags = {action.dest.replace("_", "-") for action in parser.options()}
        self._switches = {name for name, flag in parser.declared.items() if flag.arity is Arity.NONE}
        self.parameters = tuple(_parameter(name, actions[name]) for name in names)

    def page(self, store: Store, given: Given, limits: QuestionLimits) -> Mapping[str, Any]:
        output = PageOutput()
        self._call(store, given, limits, output, "text")
        return {"blocks": output.blocks, "notes": output.notes}

    def json(self, store: Store, given: Given, limits: QuestionLimits) -> str:
        written = StringIO()
        self._call(store, given, limits, JsonOutput(written, StringIO()), "json")
        return written.getvalue()

    def command(self, given: Given) -> str:
        return shlex.join(["headwater", *self._words, *self._arguments(given)])

    def _call(self, store: Store, given: Given, limits: QuestionLimits, output: CommandOutput, form: str) -> None:
        parsed = self._parse(given)
        parsed.store, parsed.output = store, form
        if getattr(parsed, "limit", None) is not None:
            parsed.limit = min(parsed.limit, limits.rows)
        self._command.call(parsed, output)
        output.finish()

    def _parser(self) -> Flags:
        return leaf_parser(self._words, self._command)

    def _parse(self, given: Given) -> Namespace:
        parser = self._parser()
        parser.error = _refuse  # type: ignore[method-assign]
        parsed = parser.parse_args(self._arguments(given))
        parsed.parser, parsed.target = parser, ()
        return parsed

    def _arguments(self, given: Given) -> list[str]:
        """Return the words of the command line. A value may begin with a dash."""
        words = [value for name in self._names if name not in self._flags for value in given.get(name, ())]
        flags: list[str] = []
        for name in self._names:
            values = given.get(name, ()) if name in self._flags else ()
            flags += [f"--{name}" if name in self._switches else f"--{name}={value}" for value in values]
        return [*flags, *(["--"] if any(word.startswith("-") for word in words) else []), *words]


def _refuse(message: str) -> NoReturn:
    raise WrongAddressError(message)


def _leaf(words: CommandPath) -> Leaf:
    node: Any = TREE
    for word in words:
        node = node.children[word]
    return cast("Leaf", node)


def _parameter(name: str, action: Any) -> Parameter:
    is_word = not action.option_strings
    return Parameter(
        name,
        str(action.help).replace("%%", "%"),
        is_required=is_word and action.nargs in {None, "+"},
        is_repeated=action.nargs in {"*", "+"} or type(action).__name__ == "_AppendAction",
        default=action.default if isinstance(action.default, str) else None,
    )


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


COMMAND_VIEWS: Final = (
    CommandView("table list", "Tables", "limit"),
    CommandView("table snapshots", "Snapshots", "table", "branch", "until", "limit"),
    CommandView("table late", "Who is late", "table", "limit"),
    CommandView("table uses", "Uses", "table", "limit"),
    CommandView("table jobs", "Jobs", "table", "limit"),
    CommandView("table history", "History", "table", "snapshots", "since", "until", "limit"),
    CommandView("table names", "Names", "table", "limit"),
    CommandView("job list", "Jobs", "limit"),
    CommandView("job tables", "Tables of a job", "job", "job-namespace", "limit"),
    CommandView("job runs", "Runs", "job", "job-namespace", "table", "run", "limit"),
    CommandView("gap list", "Gaps", "job", "job-namespace", "table", "since", "until", "limit"),
    CommandView("version show", "What it contains", "table", "branch"),
    CommandView("version check", "Do they belong together?", "tables", "limit"),
    CommandView("version align", "Which belong together", "tables", "at", "data-version", "as-of", "look-back"),
    CommandView("version list", "Data versions", "group", "limit"),
    CommandView("correct list", "Corrections"),
    CommandView("correct show", "A correction", "correction"),
    CommandView("rollback list", "Roll-backs"),
    CommandView("rollback show", "A roll-back", "name"),
    CommandView("store size", "The store"),
)
"""All of them, each with the parameters that its address takes."""
