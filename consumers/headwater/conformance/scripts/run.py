"""Plays scenarios, each as an application of its own, one after another: spark-submit run.py --to DIR [SCENARIO …]

Give spark-submit what your producer of lineage needs (`--packages`, `--conf`), and Iceberg's package
(`org.apache.iceberg:iceberg-spark-runtime-…`). Spark has to run on this machine (`--master 'local[2]'`), because truth
is read from the tables' files. Beside the tables, DIR gets `observed/<scenario>.json`, which the judge needs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from scenario_run import ScenarioRun  # noqa: E402 - it is beside this script

OWN = {"run", "scenario_run"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Plays scenarios, each as an application of its own.")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="all of them unless some are named")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="where tables and observations go")
    given = parser.parse_args()
    known = sorted(place.stem for place in HERE.glob("*.py") if place.stem not in OWN)
    unknown = sorted(set(given.scenarios) - set(known))
    if unknown:
        parser.error(f"there is no scenario {unknown[0]}; there are: {', '.join(known)}")
    directory = given.to.absolute()
    (directory / "observed").mkdir(parents=True, exist_ok=True)
    failed = [name for name in given.scenarios or known if not play(name, directory)]
    if failed:
        print(f"these scenarios broke off, and can't be judged: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def play(name: str, directory: Path) -> bool:
    """Return whether the scenario went as it should."""
    place = directory / name
    if place.exists():
        print(f"{place} is there already: name a new directory by --to", file=sys.stderr)
        return False
    began, error = time.monotonic(), None
    scenario = ScenarioRun(name, place, with_iceberg=True)
    try:
        importlib.import_module(name).play(scenario)
    except Exception:  # noqa: BLE001 - the next scenario is another application
        error = traceback.format_exc()
        print(error, file=sys.stderr)
    scenario.spark.stop()
    time.sleep(0.3)
    scenario.write(directory / "observed" / f"{name}.json", error)
    print(f"{name}: {'broke off' if error else 'played'} in {time.monotonic() - began:.1f} s", flush=True)
    return error is None


if __name__ == "__main__":
    sys.exit(main())
