"""The line in site-packages that lets headwater into drivers: it is in the wheel, it runs, and it goes with it."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.kit.checkout import ROOT, run

pytestmark = pytest.mark.xdist_group("packaging")
LINE = ROOT / "listeners/headwater/listeners/hook.pth"
IS_WATCHING = "import sys; print([type(each).__module__ for each in sys.meta_path].count('headwater.listeners.hook'))"


@pytest.mark.long
@pytest.mark.slow
def test_the_wheel_has_the_line_at_its_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("headwater.pth").decode() == LINE.read_text()
    assert LINE.read_text().startswith("import "), "site runs no other lines"
    assert LINE.read_text().count("\n") == 1


@pytest.mark.long
@pytest.mark.slow
def test_an_installation_runs_it_with_its_base_dependencies_alone(installed: Path, tmp_path: Path) -> None:
    assert run(installed, "-c", IS_WATCHING, cwd=tmp_path) == "1\n"
    for flags in ("-I", "-E", "-s", "-B", "-O", "-X dev", "-W error"):
        done = run(installed, *flags.split(), "-c", IS_WATCHING, cwd=tmp_path)
        assert done == "1\n", flags
    assert run(installed, "-S", "-c", IS_WATCHING, cwd=tmp_path) == "0\n"


@pytest.mark.long
@pytest.mark.slow
def test_only_the_hook_is_loaded_by_it(installed: Path, tmp_path: Path) -> None:
    listing = "import sys; print(sorted(m for m in sys.modules if m.startswith(('headwater', 'pydantic', 'fastavro'))))"
    expected = "['headwater', 'headwater.listeners', 'headwater.listeners.hook']\n"
    assert run(installed, "-c", listing, cwd=tmp_path) == expected


@pytest.mark.slow
def test_a_broken_installation_breaks_no_python(tmp_path: Path) -> None:
    """Whatever is left of it: nothing, half of it, something else of that name."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "headwater.pth").write_text(LINE.read_text())
    hook = site / "headwater" / "listeners" / "hook.py"
    hook.parent.mkdir(parents=True)
    start = ["python3", "-I", "-S", "-c", f"import site; site.addsitedir({str(site)!r}); print('started')"]
    for content in (None, "1 / 0", "def watch(): raise OSError('no')", "no python", "watch = None"):
        if content is not None:
            hook.write_text(content)
        done = subprocess.run(start, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("started\n", ""), content
