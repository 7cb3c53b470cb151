"""Paimon's format taken out of the wheel and brought by a distribution of its own: its whole matrix passes.

Nothing else shows that the core needs no line of a format: here ours is somebody else's, under another name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from headwater.listeners.capture.formats import GROUP
from tests.kit.checkout import ROOT, only

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1500)]
OURS = "headwater.listeners.capture.formats.paimon"
THEIRS = "headwater_paimon"
MATRIX = ("paimon", "catalog_paimon", "paimon_races", "paimon_without_hooks", "streams_paimon")
ASK = f"""
import importlib.util, {THEIRS}
from headwater.listeners.capture import formats
assert importlib.util.find_spec("{OURS}") is None
(paimon,) = [each for each in formats.plugins() if each.name == "paimon"]
assert paimon is {THEIRS}.PLUGIN and not formats.installed().broken
print(formats.__file__)
"""


@pytest.fixture(scope="module")
def places(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """headwater without Paimon, and the distribution that brings it."""
    without, beside = tmp_path_factory.mktemp("headwater"), tmp_path_factory.mktemp("paimon")
    with ZipFile(wheel) as packed:
        packed.extractall(without)
    folder = without.joinpath(*OURS.split("."))
    points = only(without, "*.dist-info") / "entry_points.txt"
    line = f"paimon = {OURS}:PLUGIN\n"
    assert line in points.read_text()
    points.write_text(points.read_text().replace(line, ""))
    shutil.move(folder, beside / THEIRS)
    for source in (beside / THEIRS).glob("*.py"):
        source.write_text(source.read_text().replace(OURS, THEIRS))
    info = beside / f"{THEIRS}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: headwater-paimon\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\npaimon = {THEIRS}:PLUGIN\n")
    return without, beside


def run(places: tuple[Path, Path], *arguments: str) -> str:
    """With these two before whatever else this Python has."""
    path = os.pathsep.join(map(str, places))
    given = {key: text for key, text in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**given, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.parametrize("module", MATRIX)
def test_the_matrix_passes_with_a_format_that_another_distribution_brings(
    places: tuple[Path, Path], module: str
) -> None:
    assert str(places[0]) in run(places, "-c", ASK)
    said = run(places, "-m", "pytest", "-m", "", "-q", "-p", "no:cacheprovider", f"tests/matrix/test_{module}.py")
    assert " passed" in said
