"""`headwater demo`: a small warehouse is run, and what the lineage store knows of it is shown.

needs     what has to be there: pyspark, Java, Iceberg
stage     the directory with everything, and how jobs and the writer run in it
story     what happens, in order
jobs/     plain PySpark scripts, which know nothing of headwater
told      what the store says in the end
terminal  the same in the terminal
page      the same as a page of HTML
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import Output

if TYPE_CHECKING:
    from headwater.cli.demo.needs import Needs

__all__ = ["main"]

_WORDS = """Run plain PySpark jobs on a small warehouse of Iceberg tables, and show what is known of them afterwards.

Nothing is needed but pyspark and a Java (pip install 'headwater[demo]'): events go into a local log, and from there
into a SQLite store. The scripts, what they said and the store stay where they are, to be looked at."""


def main(arguments: Sequence[str], output: Output) -> int:
    parser = Flags("headwater demo", _WORDS)
    parser.flag("keep", Path, None, "a directory for everything, new or empty; else a temporary one", "DIR")
    parser.flag("iceberg", Path, None, "Iceberg's runtime jar for this Spark, where it can't be fetched", "JAR")
    given = parser.parse_args(arguments)
    from headwater.cli.demo.needs import find_needs, place_for  # noqa: PLC0415 - not for --help

    needs = find_needs(given.iceberg)
    place = place_for(given.keep)
    _play(output, needs, place)
    return Exit.DONE


def _play(output: Output, needs: Needs, place: Path) -> None:
    from headwater.cli.demo import story, terminal, told  # noqa: PLC0415
    from headwater.cli.demo.page import page_of  # noqa: PLC0415
    from headwater.cli.demo.stage import Stage  # noqa: PLC0415

    began = time.monotonic()
    stage = Stage(needs, place)
    story.play(stage, terminal.Progress(output))
    told_ = told.read(stage.store)
    stage.page.write_text(str(page_of(told_, stage)), encoding="utf-8")
    terminal.summarise(output, told_, stage, time.monotonic() - began)
