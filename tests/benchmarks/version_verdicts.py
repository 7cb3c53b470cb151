"""`python -m tests.benchmarks.version_verdicts`: whether verdicts about versions hold in 100,000 random histories.

Of each history `check` is asked of two or three tables, and `align` of them. What they say is compared with what the
rows say that the tables carry (`tests.kit.versions.oracle`). Half of the histories have gaps: lost events, deleted
lineage, opaque reads. It ends with 1 if there was a yes that the rows contradict, and prints what repeats the first.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from tests.kit.stores import memory_connection
from tests.kit.versions.oracle import AnswerCounts, History, ask, lines

_SHOWN = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    wrong, began = 0, time.monotonic()
    found = {has_gaps: AnswerCounts() for has_gaps in (False, True)}
    with memory_connection() as connection:
        connection.commit()
        for number in range(given.seed, given.seed + given.histories):
            has_gaps = number % 2 == 1
            history = History(Random(number), has_gaps=has_gaps)
            if not ask(connection, history, found[has_gaps]):
                wrong += 1
                if wrong <= _SHOWN:
                    print(f"a wrong yes: --seed {number} --histories 1", *lines(history), sep="\n  ", flush=True)
    for has_gaps, counts in found.items():
        print(f"{'with gaps' if has_gaps else 'without gaps'}: {counts}")
    print(f"{given.histories} histories in {time.monotonic() - began:.0f} s; {wrong} with a wrong yes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
