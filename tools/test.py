"""`make test`: every test but the benchmarks, in random order, in parallel, on real servers, with branch coverage; then
some of those of capture on Spark 4.

A skipped test counts as a failure (tests/conftest.py): a missing service is told, not passed over.
"""

from __future__ import annotations

import subprocess
import sys

from tools import environment, spark4

# A file stays in one worker, so that what its tests share, a Spark session say, starts once.
PARALLEL = ["--numprocesses", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
COVERAGE = ["--cov", "--cov-branch", "--cov-report", "term", "-p", "tools.whole_coverage"]


def main() -> int:
    """Run pytest; further arguments are handed on to it."""
    pytest = [
        str(environment.PYTHON),
        "-m",
        "pytest",
        "--no-skips",
        "-m",
        "not long and not spark4",
        *PARALLEL,
        *COVERAGE,
        *sys.argv[1:],
    ]
    status = subprocess.run(pytest, cwd=environment.ROOT, check=False).returncode
    return status if sys.argv[1:] else status or spark4.run("-m", "smoke", *spark4.PARALLEL, *spark4.TESTS)


if __name__ == "__main__":
    sys.exit(main())
