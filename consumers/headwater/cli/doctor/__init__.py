"""`headwater doctor`: examines a Spark configuration end to end, and says in plain words what is wrong.

configuration  which properties hold, and what is wrong in headwater's own
installation   whether drivers of this Python find headwater
spool          where events wait: the directory, its disk, what dead drivers left there
listeners      each listener: its factory, and what that finds out itself
"""

from __future__ import annotations

import logging
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from headwater.cli.commands import command
from headwater.cli.doctor.configuration import (
    CONFIGURATION,
    DriverConfiguration,
    SecretMasker,
    check_catalog_options,
    check_configuration,
    read_configuration,
)
from headwater.cli.doctor.installation import check_installation
from headwater.cli.doctor.listeners import FACTORY, check_listener, listeners_of
from headwater.cli.doctor.spool import check_spool
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, pair
from headwater.cli.output import CommandOutput
from headwater.spi import CheckResult, CheckStatus

CheckGroup: TypeAlias = "tuple[str, Iterator[CheckResult]]"


def _flags(parser: Flags) -> None:
    parser.flags("conf", pair, "a property as drivers have it; it goes before those of the file", "KEY=VALUE")
    text = "the properties that drivers begin with, else the spark-defaults.conf that Spark finds"
    parser.flag("properties-file", Path, None, text, "FILE")
    parser.flags("listener", str, "examine only this listener, by its name in the configuration", "NAME")


@command(
    """Examine a Spark configuration: whether headwater would be at work in a driver that has it, and whether each
listener could deliver. It writes one event, `Closed`, where each listener writes, and changes nothing else; a topic
that a driver would make is made.

Exit code 0 if nothing is wrong (there may be warnings), 78 if the configuration is, 1 if anything else is.""",
    "headwater doctor --properties-file /opt/spark/conf/spark-defaults.conf",
    "headwater doctor --conf spark.headwater.listeners=log --listener log -o json",
    flags=[_flags],
)
def doctor(given: Namespace, output: CommandOutput) -> int:
    found = read_configuration(given.properties_file, dict(given.conf))
    secrets = SecretMasker(found.conf)
    logging.getLogger("headwater").addHandler(logging.NullHandler())  # what matters of it stands in the findings
    counts: Counter[tuple[bool, CheckStatus]] = Counter()
    for title, findings in _chapters(found, frozenset(given.listener)):
        shown = (secrets.mask(finding) for finding in findings)
        for finding in output.findings(title, shown):
            counts[title == CONFIGURATION or finding.step == FACTORY, finding.status] += 1
    totals = {state.value: sum(_of(counts, state)) for state in reversed(CheckStatus)}
    output.outcome(", ".join(f"{state}: {total}" for state, total in totals.items()), {"summary": totals})
    return _exit(counts)


def _chapters(given: DriverConfiguration, only: frozenset[str]) -> Iterator[CheckGroup]:
    yield CONFIGURATION, chain(check_configuration(given, only), check_catalog_options(given.conf))
    yield "installation", check_installation(given.conf)
    yield "spool", check_spool(given.settings)
    for wanted in listeners_of(given.settings):
        if not only or wanted.name in only:
            yield f"listener {wanted.name}", check_listener(wanted, given.conf)


def _exit(counts: Counter[tuple[bool, CheckStatus]]) -> Exit:
    if counts[True, CheckStatus.ERROR]:
        return Exit.CONFIGURATION
    return Exit.FAILED if any(_of(counts, CheckStatus.ERROR)) else Exit.DONE


def _of(counts: Counter[tuple[bool, CheckStatus]], state: CheckStatus) -> Iterable[int]:
    return (count for (_, each), count in counts.items() if each is state)
