"""Whether the jars of table formats are built for the Spark that drivers run: one for another Spark ends a job with an
IncompatibleClassChangeError or a NoSuchMethodError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from headwater.spi import CheckResult

_JARS: Final = ("spark.jars.packages", "spark.jars", "spark.driver.extraClassPath", "spark.executor.extraClassPath")
_SEPARATORS: Final = re.compile(r"[,:;/\\\s]+")


class _Format(NamedTuple):
    name: str
    artifact: re.Pattern[str]
    tried: tuple[str, ...]
    """The Sparks that headwater is tested on with it."""


_FORMATS: Final = (
    _Format("Iceberg", re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_"), ("3.5", "4.0", "4.1")),
    _Format("Delta", re.compile(r"delta-spark_(\d+\.\d+)_"), ("3.5", "4.0", "4.1", "4.2")),
    _Format("Paimon", re.compile(r"paimon-spark-(\d+\.\d+)(?:_|-|$)"), ("3.5",)),
    _Format("Hudi", re.compile(r"hudi-spark(\d+\.\d+)-bundle"), ("3.5",)),
)


def check_format_jars(conf: Mapping[str, str], spark: str, jars: Path | None) -> Iterator[CheckResult]:
    """Yield what is found of the jars that a configuration names, and of those beside Spark's own."""
    line = ".".join(spark.split(".")[:2])
    words = [word for key in _JARS for word in _SEPARATORS.split(conf.get(key, ""))]
    for artifact, each, built_for in dict.fromkeys(_artifacts([*words, *_names(jars)])):
        if built_for == line:
            yield CheckResult.ok("jars", f"{artifact} is for Spark {line}")
            continue
        there = f"take the one for Spark {line}" if line in each.tried else f"run it on Spark {' or '.join(each.tried)}"
        advice = f"{there}: headwater is tested with {each.name} on Spark {', '.join(each.tried)}"
        yield CheckResult.error("jars", f"{artifact} is for Spark {built_for}, and drivers run Spark {spark}", advice)


def _names(jars: Path | None) -> list[str]:
    return [] if jars is None else sorted(each.name for each in jars.glob("*.jar"))


def _artifacts(words: Iterable[str]) -> Iterator[tuple[str, _Format, str]]:
    for word in words:
        for each in _FORMATS:
            if (found := each.artifact.match(word)) is not None:
                yield word.removesuffix(".jar"), each, found[1]
