"""A reader of a log whose segments go while it reads: a program of test_log_retention.

Usage: python -m tests.kit.journal.log_retention LOG GROUP. It answers each line on standard input by what a poll of so
many records gave: `PARTITION FIRST..LAST` of successive records, `PARTITION lost FIRST..LAST WHY`; then an empty line.
"""

from __future__ import annotations

import sys
from itertools import groupby

from headwater.journal import LocalLog


def main(directory: str, group: str) -> None:
    with LocalLog.open(directory).group(group) as member:
        for line in sys.stdin:
            batch = member.poll(int(line))
            for partition, lost in batch.missing:
                sys.stdout.write(f"{partition} lost {lost.first}..{lost.end_offset - 1} {lost.reason.value}\n")
            numbered = enumerate((partition, record.offset) for partition, record in batch.records)
            for _, found in groupby(numbered, lambda each: (each[1][0], each[1][1] - each[0])):
                records = [each for _, each in found]
                sys.stdout.write(f"{records[0][0]} {records[0][1]}..{records[-1][1]}\n")
            member.commit(batch.positions)
            sys.stdout.write("\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
