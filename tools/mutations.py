"""`python -m tools.mutations [NAME …]` breaks the product in known ways, and says which test of `make test` notices.

Each mutation changes one line in a copy of the last commit. Then the tests of `make test` that are about that line are
played there, and have to fail. It is how a cut of the tests is judged: what is moved to slices may not let one through.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tools import environment, test

ROOTS = ("events", "publishers", "listeners", "consumers")


@dataclass(frozen=True)
class Mutation:
    """A line of a file, what it is changed into, and the tests that have to notice."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


CAPTURE = "listeners/headwater/listeners/capture"
MUTATIONS = (
    Mutation(
        "facts are ordered by producer, not by time",
        "consumers/headwater/lineage/mapping/row_builder.py",
        '(rank, (time + _OFFSET).to_bytes(8, "big"), producer,',
        '(rank, producer, (time + _OFFSET).to_bytes(8, "big"),',
        ("tests/unit/lineage/test_mapping.py", "tests/property/test_merge_rules.py"),
    ),
    Mutation(
        "a damaged record is read as if it were sound",
        "events/headwater/journal/record.py",
        "return crc32(frame[_CRC_END:], seed & WORD) == head.crc",
        "return True",
        ("tests/unit/journal",),
    ),
    Mutation(
        "a lost range is reported again",
        "listeners/headwater/listeners/bus/spool_reader.py",
        "if lost.end_offset > max(since, lost.first):",
        "if lost.end_offset > lost.first:",
        ("tests/unit/bus/test_intake.py",),
    ),
    Mutation(
        "an acknowledgement counts before those of earlier records",
        "publishers/headwater/publishers/kafka/sender.py",
        "self._acked_early.add(position)\n            return",
        "self._acked_early.add(position)\n            self.acked_position = position\n            return",
        ("tests/unit/publishers/test_kafka_parts.py",),
    ),
    Mutation(
        "rows that are known are left out although the store's epoch changed",
        "consumers/headwater/consumers/writer/store_pipeline.py",
        "epoch=epoch if left_out else None)",
        "epoch=None)",
        ("tests/unit/consumers/test_known_rows.py", "tests/integration/test_coordinated.py"),
    ),
    Mutation(
        "an uncertain source is an exact one",
        "consumers/headwater/lineage/questions/tables.py",
        "if each.certainty != EXACT:",
        "if not each.certainty:",
        ("tests/unit/lineage",),
    ),
    Mutation(
        "each value of coalesce decides about nothing",
        f"{CAPTURE}/plan/columns/roles.py",
        "if n < len(expression.inputs) - 1:\n            yield each, _CHOICE",
        "if n < 0:\n            yield each, _CHOICE",
        ("tests/integration/test_column_lineage.py",),
    ),
    Mutation(
        "a partial overwrite replaces the whole table",
        f"{CAPTURE}/batch/spark_writes.py",
        'if condition.name == "Literal" and condition.details.get("value") is True',
        'if condition.name != ""',
        ("tests/unit/capture",),
    ),
    Mutation(
        "a commit to a branch is one to main",
        f"{CAPTURE}/formats/iceberg/write_results.py",
        'return _branch_fields(found[0]) if likely or len(there) == 1 else {"branch": None, "main": False}',
        'return {"branch": None, "main": True}',
        ("tests/unit/capture",),
    ),
    Mutation(
        "a write of Delta's read what its analysis saw",
        f"{CAPTURE}/formats/delta/read_versions.py",
        "    if nested:\n        return nested\n",
        "",
        ("tests/unit/listeners/test_delta_reads.py",),
    ),
)


def main() -> int:
    """Play the mutations that the arguments name by a part of their names, or all; 1 if any went unnoticed."""
    wanted = sys.argv[1:] or [""]
    chosen = [each for each in MUTATIONS if any(word in each.name for word in wanted)]
    unnoticed = 0
    for mutation in chosen:
        started = time.monotonic()
        noticed_by = failing_test(mutation)
        unnoticed += noticed_by is None
        verdict = "NOT NOTICED" if noticed_by is None else "noticed"
        by = f", by {noticed_by}" if noticed_by else ""
        print(f"{verdict:<12} {mutation.name} ({time.monotonic() - started:.0f} s{by})", flush=True)
    return min(unnoticed, 1)


def failing_test(mutation: Mutation) -> str | None:
    """The first test that fails in a copy of the last commit in which the line is changed; None if none does."""
    copy = Path(tempfile.mkdtemp(prefix="headwater-mutation-"))
    try:
        files = subprocess.run(["git", "archive", "HEAD"], cwd=environment.ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(copy)], input=files, check=True)
        place = copy / mutation.file
        text = place.read_text(encoding="utf-8")
        if text.count(mutation.before) != 1:
            raise SystemExit(
                f"{mutation.name}: {mutation.file} has no such line any more, or several; mend the mutation"
            )
        place.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")
        # Before the checkout's own folders, which an editable installation puts on the path.
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(copy / root) for root in ROOTS)}
        command = [str(environment.PYTHON), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *test.CHOSEN]
        done = subprocess.run(
            [*command, *mutation.tests], cwd=copy, env=env, check=False, capture_output=True, text=True
        )
        if done.returncode not in {0, 1}:
            raise SystemExit(
                f"{mutation.name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        if done.returncode == 0:
            return None
        found = (line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")))
        return next(found).partition(" ")[2].partition(" - ")[0]
    finally:
        shutil.rmtree(copy)


if __name__ == "__main__":
    sys.exit(main())
