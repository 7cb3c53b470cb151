"""The tests of capture on another Spark, in an environment of its own: `python -m tools.sparks 4.1.1 -m smoke`.

Everything runs on Spark 3.5.7, the line that all formats exist for. SECOND is the other main line: all that exists for
it runs in slices, its smoke tests in `make test`. NEWEST is what `pip install pyspark` gives; no format has it yet.
The others are played by their smoke tests, one Spark in each slice. Arguments behind the version are for pytest.
"""

from __future__ import annotations

import subprocess
import sys

from tools import environment

SECOND = "4.1.1"
NEWEST = "4.3.0"
SMOKED = ("3.5.0", "3.5.9", "4.0.5", "4.1.4", "4.2.1", NEWEST)
TESTS = ("tests/matrix", "tests/integration/test_column_lineage.py")
# A file stays in one worker, which keeps its Spark.
PARALLEL = ("--numprocesses", "2", "--dist", "loadfile")


def smoke(spark: str) -> str:
    """The mark of this Spark's smoke tests: without those of what only the other main version has."""
    return "smoke and not spark4" if spark.startswith("3.") else "smoke and not spark3"


def run(spark: str, *arguments: str) -> int:
    """Run pytest on this Spark; its status."""
    python = environment.python_for(line=f"spark-{spark}")
    pytest = [str(python), "-m", "pytest", "--no-skips", *arguments]
    return subprocess.run(pytest, cwd=environment.ROOT, check=False).returncode


def main() -> int:
    """All that applies, or what the arguments say."""
    spark, *arguments = sys.argv[1:] or [SECOND]
    if f"spark-{spark}" not in environment.SPARKS:
        known = ", ".join(each.removeprefix("spark-") for each in environment.SPARKS)
        raise SystemExit(f"there is no environment for Spark {spark!r}, only for {known}")
    return run(spark, *(arguments or ["-m", "not long and not spark3", *PARALLEL, *TESTS]))


if __name__ == "__main__":
    sys.exit(main())
