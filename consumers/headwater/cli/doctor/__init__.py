"""`headwater doctor`: examines a Spark configuration end to end, and says in plain words what is wrong.

configuration  which properties hold, and what is wrong in headwater's own
installation   whether drivers of this Python find headwater
spool          where events wait: the directory, its disk, what dead drivers left there
listeners      each listener: its factory, and what that finds out itself
secrets        nothing that is printed holds one
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from headwater.cli.doctor.configuration import CONFIGURATION, Given, gathered, look_at_configuration
from headwater.cli.doctor.installation import look_at_installation
from headwater.cli.doctor.listeners import FACTORY, look_at_listener, wanted_of
from headwater.cli.doctor.secrets import Secrets
from headwater.cli.doctor.spool import look_at_spool
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, pair
from headwater.cli.output import Output
from headwater.spi import Condition, Finding

Chapter: TypeAlias = "tuple[str, Iterator[Finding]]"


def main(arguments: Sequence[str], output: Output) -> int:
    """Examine a Spark configuration: whether headwater would be at work in a driver that has it, and whether each
    listener could deliver. It writes one event, `Closed`, where each listener writes, and changes nothing else; a topic
    that a driver would make is made.

    Exit code 0 if nothing is wrong (something may be doubtful), 78 if the configuration is, 1 if anything else is."""
    parsed = build_parser().parse_args(arguments)
    given = gathered(parsed.properties_file, dict(parsed.conf))
    secrets = Secrets(given.conf)
    logging.getLogger("headwater").addHandler(logging.NullHandler())  # what matters of it stands in the findings
    counts: Counter[tuple[bool, Condition]] = Counter()
    for title, findings in _chapters(given, frozenset(parsed.listener)):
        shown = (secrets.hidden(each) for each in findings)
        for each in output.findings(title, shown):
            counts[title == CONFIGURATION or each.step == FACTORY, each.state] += 1
    output.note(_summary(counts))
    return _exit(counts)


def build_parser() -> Flags:
    parser = Flags("headwater doctor", str(main.__doc__))
    parser.flags("conf", pair, "a property as drivers have it; it goes before those of the file", "KEY=VALUE")
    text = "the properties that drivers begin with, else the spark-defaults.conf that Spark finds"
    parser.flag("properties-file", Path, None, text, "FILE")
    parser.flags("listener", str, "examine this listener only, by its name in the configuration", "NAME")
    return parser


def _chapters(given: Given, only: frozenset[str]) -> Iterator[Chapter]:
    yield CONFIGURATION, look_at_configuration(given, only)
    yield "installation", look_at_installation(given.conf)
    yield "spool", look_at_spool(given.settings)
    for wanted in wanted_of(given.settings):
        if not only or wanted.name in only:
            yield f"listener {wanted.name}", look_at_listener(wanted, given.conf)


def _summary(counts: Counter[tuple[bool, Condition]]) -> str:
    totals = {state: sum(_of(counts, state)) for state in reversed(Condition)}
    return ", ".join(f"{total} {state.value}" for state, total in totals.items())


def _exit(counts: Counter[tuple[bool, Condition]]) -> Exit:
    if counts[True, Condition.WRONG]:
        return Exit.CONFIGURATION
    return Exit.FAILED if any(_of(counts, Condition.WRONG)) else Exit.DONE


def _of(counts: Counter[tuple[bool, Condition]], state: Condition) -> Iterable[int]:
    return (count for (_, each), count in counts.items() if each is state)
