"""The laws and faults for long: many more examples of each property, and every fault test, the slow ones included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITES = ["tests/property", "tests/faults", "tests/unit/redaction"]
SECONDS = 3_600


def main() -> int:
    """pytest's exit status."""
    environment = {"HYPOTHESIS_PROFILE": "thorough", **os.environ}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--timeout", str(SECONDS), *SUITES]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=2 * SECONDS).returncode


if __name__ == "__main__":
    sys.exit(main())
