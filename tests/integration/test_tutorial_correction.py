"""The tutorial on corrections, played as it stands: its files, its commands one after the other, and what they print.

Names and numbers that each run makes anew (snapshots, corrections, times) are told from the page's own: what a command
prints in their place is what the next command is given. Everything else has to be printed as the page has it.
Iceberg's jar is the one for the Spark at hand.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headwater.cli.demo.workspace import find_requirements
from headwater.local.fetch import RUNTIMES
from headwater.local.java import java_home_for_spark

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1800)]

PAGE = Path(__file__).parents[2] / "docs/tutorial-correction.md"
SECONDS = 600
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NEW = re.compile(
    r"[cr]-\d{8}-orders-[0-9a-f]{4}|correction_\d{8}_orders_[0-9a-f]{4}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ|\d{17,19}"
    r"|(?:\d+ min )?\d+(?:\.\d+)? s\b|\d+(?:\.\d+)? (?:KiB|B)\b"
)
"""What is another one each time."""


@dataclass
class Player:
    """Somebody who types what the page says."""

    place: Path
    environment: dict[str, str]
    known: dict[str, str] = field(default_factory=dict)
    """What the page calls something, and what it is called here."""

    def type(self, command: str) -> tuple[str, int]:
        for word, own in self.known.items():
            command = command.replace(word, own)
        done = subprocess.run(  # noqa: S602 - as somebody types it
            command,
            shell=True,
            cwd=self.place,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode < 2, f"{command}\n{done.stderr}"
        return done.stdout, done.returncode

    def learn(self, printed: str, shown: str) -> None:
        """Learn what is called otherwise here, where all else is equal."""
        for own, word in zip(_NEW.findall(printed), _NEW.findall(shown), strict=True):
            if word in self.known and not word.endswith((" s", "B", "Z")):
                assert self.known[word] == own, f"{word} was {self.known[word]}, and is {own}"
            self.known[word] = own


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of the page with what it prints there."""
    for kind, content in _BLOCK.findall(text):
        if kind or not content.startswith("$ "):
            continue
        for each in content.removeprefix("$ ").split("\n$ "):
            command, _, shown = each.replace("\\\n", " ").partition("\n")
            yield command, shown


def without_new(text: str) -> list[list[str]]:
    """Return the words of each line, with a mark for what is another one each time. Widths of tables follow from it."""
    lines = (re.sub(r"-{2,}|\|", " ", _NEW.sub("#", line)).split() for line in text.splitlines())
    return [line for line in lines if set("".join(line)) - {"+"}]


def abridge(printed: str, shown: str) -> tuple[str, str]:
    """Return what was printed, and what the page shows of it, both without the lines that the page leaves out. It says
    so by a line of its own."""
    above, *rest = re.split(r"^…\n", shown, maxsplit=1, flags=re.MULTILINE)
    if not rest:
        return printed, shown
    (below,) = rest
    lines = printed.splitlines(keepends=True)
    head, tail = len(above.splitlines()), len(below.splitlines())
    return "".join([*lines[:head], *lines[len(lines) - tail :]]), above + below


def test_it_prints_what_the_page_says(tmp_path: Path) -> None:
    """Whole corrections are played elsewhere. This one finds a page that has gone out of date."""
    text, found = PAGE.read_text(), find_requirements()
    newest = list(RUNTIMES.values())[-1]
    package = f"{newest.group}:{newest.name}:{newest.version}"
    for name, content in _FILE.findall(text):
        assert name != "spark.conf" or content.count(package) == 1
        (tmp_path / name).write_text(re.sub(r"spark\.jars\.packages .*", f"spark.jars {found.iceberg}", content))
    own = {"JAVA_HOME": str(java_home_for_spark(found.java, found.spark_version)), "SPARK_LOCAL_IP": "127.0.0.1"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    store = {"HEADWATER_STORE": "sqlite:///lineage.db", "PATH": path, "PYSPARK_PYTHON": sys.executable}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEADWATER_", "SPARK_"))}
    player = Player(tmp_path, {**kept, **own, **store})
    typed = list(commands(text))
    assert len(typed) > 12
    for command, example in typed:
        answer, code = player.type(command)
        printed, shown = abridge(answer, example)
        assert without_new(printed) == without_new(shown), f"{command}: {code}\n{answer}"
        player.learn(printed, shown)
