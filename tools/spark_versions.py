"""Writes the table of docs/spark-versions.md from what the tests run on: `python -m tools.spark_versions`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.kit.spark.versions import packages_for
from tools import sparks

PAGE: Final = Path(__file__).parent.parent / "docs/spark-versions.md"
MAIN: Final = "3.5.7"
_FORMATS: Final = {"Iceberg": "iceberg", "Delta": "delta", "Paimon": "paimon", "Hudi": "hudi", "Kafka": "kafka"}
_TESTED: Final = {
    MAIN: "everything",
    sparks.SECOND: "everything that exists there, in turn; its smoke tests with each change",
    sparks.NEWEST: "smoke tests of tables, files, streams and what is new, with each change",
}
_SMOKE: Final = "smoke tests, in turn"
_NONE: Final = "\N{EN DASH}"


def table() -> str:
    """The main lines, the newest, then all others."""
    versions = [*_TESTED, *(each for each in sparks.SMOKED if each not in _TESTED)]
    head = f"| Spark | {' | '.join(_FORMATS)} | what is tested |\n|{'---|' * (len(_FORMATS) + 2)}\n"
    return head + "".join(f"| {each} | {_releases(each)} | {_TESTED.get(each, _SMOKE)} |\n" for each in versions)


def _releases(spark: str) -> str:
    found = [packages_for(name, spark) for name in _FORMATS.values()]
    return " | ".join(each[0].rpartition(":")[2] if each else _NONE for each in found)


def page() -> str:
    """The page with its table as it should be."""
    before, _, rest = PAGE.read_text("utf-8").partition("| Spark |")
    _, _, after = rest.partition("\n\n")
    return f"{before}{table()}\n{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
