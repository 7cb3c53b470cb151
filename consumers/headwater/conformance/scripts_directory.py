"""Writes the scripts of scenarios into a directory of the user's."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

from headwater.conformance.model import load_scenarios
from headwater.errors import ConfigurationError

RUNNER: Final = "run.py"
_SCRIPTS: Final = "scripts"


def script_text(scenario: str) -> str:
    """Return the script of a scenario."""
    return files("headwater.conformance").joinpath(_SCRIPTS).joinpath(f"{scenario}.py").read_text(encoding="utf-8")


def write_scripts(directory: Path) -> Path:
    """Write all scripts, and return the one that plays them."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise ConfigurationError(f"there is something in {directory} already: name a new directory")
        for name in (RUNNER.removesuffix(".py"), "scenario_run", *load_scenarios()):
            (directory / f"{name}.py").write_text(script_text(name), encoding="utf-8")
    except OSError as e:
        raise ConfigurationError(f"{directory} can't be written: {e.strerror}: name another directory") from e
    return directory / RUNNER
