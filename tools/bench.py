"""`make bench`: runs the programs of tests/benchmarks one after another; each prints its own table of ratios.

`make bench BENCH=name` runs one of them, as does `.venv/bin/python -m tests.benchmarks.name`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tools import environment

FOLDER = environment.ROOT / "tests" / "benchmarks"
PROGRAM = 'if __name__ == "__main__":'  # what the others import has none


def chosen(names: list[str]) -> list[Path]:
    """The modules to run; an unknown name ends with a list of those that exist."""
    modules = {path.stem: path for path in sorted(FOLDER.glob("*.py")) if PROGRAM in path.read_text(encoding="utf-8")}
    unknown = [name for name in names if name not in modules]
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are: {', '.join(modules)}")
    return [modules[name] for name in names] or list(modules.values())


def run(module: Path) -> bool:
    """Run one benchmark as a program of its own; whether it kept its limits."""
    started = time.monotonic()
    print(f"== {module.stem}", flush=True)
    program = [str(environment.PYTHON), "-m", f"tests.benchmarks.{module.stem}"]
    status = subprocess.run(program, cwd=environment.ROOT, check=False).returncode
    print(f"== {module.stem}: {'failed' if status else 'done'} after {time.monotonic() - started:.0f} s\n", flush=True)
    return status == 0


def main() -> int:
    """Run all, or those named, and tell which failed."""
    failed = [module.stem for module in chosen(sys.argv[1:]) if not run(module)]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
