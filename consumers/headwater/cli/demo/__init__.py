"""`headwater demo`: a small warehouse is run, and what the lineage store knows of it is shown.

workspace     what has to be there (pyspark, Java, Iceberg), the directory with everything, how jobs and the writer run
scenario      what happens, in order
correction    the last act: a wrong price is corrected while somebody reads; correction_process does it, in Spark
jobs/         plain PySpark scripts, which know nothing of headwater
facts         what the store says in the end, and the same in words
terminal      in the terminal
page          as a page of HTML
"""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput


def _flags(parser: Flags) -> None:
    parser.flag("keep", Path, None, "a directory for everything, new or empty; else a temporary one", "DIR")
    parser.switch("uncorrected", "end before a wrong price is corrected, with tables that don't fit")
    parser.flag("iceberg", Path, None, "Iceberg's runtime jar for this Spark, where it can't be fetched", "JAR")


@command(
    """Run plain PySpark jobs on a small warehouse of Iceberg tables, and show what is known of them afterwards.

Nothing is needed but pyspark and a Java (headwater's extra demo): events go into a local log, and from there
into a SQLite store. The scripts, their logs and the store stay where they are, to be looked at.""",
    "headwater demo",
    "headwater demo --keep warehouse",
    "headwater demo --keep warehouse --uncorrected",
    flags=[_flags],
)
def demo(given: Namespace, output: CommandOutput) -> int:
    from headwater.cli.demo import correction, facts, scenario, terminal  # noqa: PLC0415 - not for --help
    from headwater.cli.demo.page import page_of  # noqa: PLC0415
    from headwater.cli.demo.workspace import (  # noqa: PLC0415
        Workspace,
        find_requirements,
        make_directory,
    )

    requirements = find_requirements(given.iceberg)
    place = make_directory(given.keep)
    began = time.monotonic()
    workspace = Workspace(requirements, place)
    runs = len(scenario.STEPS) + len(scenario.QUESTIONS) + (not given.uncorrected)
    progress = terminal.Progress(output, runs)
    scenario.play(workspace, progress)
    found = facts.read(workspace.store, scenario.shares(workspace))
    corrected = None if given.uncorrected else correction.play(workspace, progress, runs, facts.wrong_orders(found))
    workspace.page.write_text(str(page_of(found, workspace, corrected)), encoding="utf-8")
    terminal.summarise(output, found, workspace, corrected, time.monotonic() - began)
    return Exit.DONE
