"""`make bench`: runs the modules of tests/benchmarks one after another; each prints its own table of ratios.

`make bench BENCH=name` runs one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tools import environment

FOLDER = environment.ROOT / "tests" / "benchmarks"


def chosen(names: list[str]) -> list[Path]:
    """The modules to run; an unknown name ends with a list of those that exist."""
    modules = {path.stem: path for path in sorted(FOLDER.glob("[!_]*.py"))}
    unknown = [name for name in names if name not in modules]
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are: {', '.join(modules)}")
    return [modules[name] for name in names] or list(modules.values())


def run(module: Path) -> bool:
    """Run one benchmark as a program of its own; whether it kept its limits."""
    started = time.monotonic()
    print(f"== {module.stem}", flush=True)
    env = {**os.environ, "PYTHONPATH": str(environment.ROOT)}
    status = subprocess.run([environment.PYTHON, module], cwd=environment.ROOT, env=env, check=False).returncode
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
