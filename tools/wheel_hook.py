"""What is added to a wheel when it is built: class files for the Sparks and formats that are at hand there.

Where none can be compiled, in an isolated build for instance, the wheel has none: drivers then compile at their first
start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDERS = ("events", "listeners", "publishers", "consumers")
_SECONDS = 1800


class ClassArchivesHook(BuildHookInterface[Any]):
    """Found by hatchling, as `pyproject.toml` names this file."""

    PLUGIN_NAME = "custom"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._compiled = TemporaryDirectory()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - its names
        """The wheel has what was compiled."""
        self._compiled.cleanup()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the wheel include what came of it. An editable install has none: it uses the cache."""
        if version == "editable":
            return
        directory = Path(self._compiled.name)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(self.root, each)) for each in _FOLDERS)}
        command = [sys.executable, "-m", "tools.class_archives", str(directory)]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
        if done.returncode:
            self.app.display_warning(f"this wheel has no class files: {(done.stderr or done.stdout).strip()[-500:]}")
            return
        self.app.display_info(done.stdout.strip())
        for each in sorted(directory.iterdir()):
            build_data["force_include"][str(each)] = f"headwater/jvm/class-files/{each.name}"
