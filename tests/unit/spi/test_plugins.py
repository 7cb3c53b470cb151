"""Plug-ins are found by name or by path, and what is wrong with one is reported in one line."""

from __future__ import annotations

import importlib
import shlex
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest

import headwater.listeners
from headwater import plugins
from headwater.errors import PluginError, advise_import
from headwater.spi.factories import LISTENERS


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with three listeners: a good one and two broken ones."""
    (tmp_path / "acme_audit.py").write_text("class AuditFactory:\n    class Inner:\n        pass\n")
    (tmp_path / "acme_broken.py").write_text("raise RuntimeError('no licence')\n")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{LISTENERS}]\naudit = acme_audit:AuditFactory\nbroken = acme_broken:F\nmissing = acme_audit:Nothing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()


@pytest.mark.usefixtures("installed")
def test_a_name_is_looked_up_among_the_entry_points() -> None:
    assert plugins.load(LISTENERS, "audit").__name__ == "AuditFactory"
    assert {"audit", "broken", "missing"} <= set(plugins.names(LISTENERS))


@pytest.mark.usefixtures("installed")
def test_a_path_is_imported() -> None:
    assert plugins.load(LISTENERS, "acme_audit:AuditFactory.Inner").__name__ == "Inner"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("audti", r"there is no plug-in of headwater\.listeners called audti: did you mean audit\?"),
        (
            "broken",
            r"broken of headwater\.listeners is acme_broken:F, and that can't be imported: RuntimeError: no licence",
        ),
        ("missing", r"missing of headwater\.listeners is acme_audit:Nothing"),
        ("acme_audit:AuditFactroy", r"there is no name in it AuditFactroy: did you mean AuditFactory\?"),
        ("acme_nowhere:F", "there is no module acme_nowhere: is it installed where this runs"),
        ("acme_broken:F", r"acme_broken:F can't be imported: RuntimeError: no licence"),
    ],
)
def test_what_is_wrong_is_reported(name: str, words: str) -> None:
    with pytest.raises(PluginError, match=words):
        plugins.load(LISTENERS, name)


def test_two_distributions_with_one_name_are_both_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("acme-one", "acme-two"), 1):
        info = tmp_path / name / f"{name.replace('-', '_')}-{number}.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}.0\n")
        (info / "entry_points.txt").write_text(f"[{LISTENERS}]\ntwice = {name.replace('-', '_')}:F\n")
        monkeypatch.syspath_prepend(str(tmp_path / name))
    importlib.invalidate_caches()
    words = r"twice of headwater\.listeners is brought by acme-one 1\.0 \(acme_one:F\) and acme-two 2\.0 \(acme_two:F\)"
    with pytest.raises(PluginError, match=words):
        plugins.load(LISTENERS, "twice")
    assert plugins.names(LISTENERS).count("twice") == 1


def test_a_module_that_fails_with_a_missing_attribute_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_stale.py").write_text("import os\nos.no_such_thing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises(PluginError, match=r"acme_stale:F can't be imported: AttributeError: .*no_such_thing"):
        plugins.load(LISTENERS, "acme_stale:F")


def test_our_own_are_found_where_the_metadata_is_not_beside_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a zip that holds the package alone."""

    monkeypatch.setattr(plugins, "_python_path", lambda: ("/nowhere/but/here",))
    assert plugins.own_version() is None
    assert plugins.names(LISTENERS) == ("console", "jdbc", "kafka", "log")
    assert plugins.load(LISTENERS, "log").__name__ == "LogFactory"


def test_metadata_is_read_once_for_all_groups_and_again_for_another_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver's start asks three times, and each reads a file of whatever is installed."""
    read = Mock(return_value=())
    monkeypatch.setattr(plugins, "distributions", read)
    for place in ("/nowhere/at/first", "/nowhere/then"):
        monkeypatch.syspath_prepend(place)
        for group in plugins.OWN_PLUGINS:
            plugins.names(group)
            plugins.load(LISTENERS, "log")
    assert read.call_count == 2


def test_jars_on_the_path_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark puts an application's jars there, and one of Iceberg's size takes Python half a second to look through."""
    jar = tmp_path / "iceberg.jar"
    with zipfile.ZipFile(jar, "w") as content:
        content.writestr("headwater-9.9.dist-info/METADATA", "Metadata-Version: 2.1\nName: headwater\nVersion: 9.9\n")
        content.writestr("acme-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        content.writestr("acme-1.0.dist-info/entry_points.txt", f"[{LISTENERS}]\naudit = acme_audit:F\n")
    expected = plugins.own_version(), plugins.names(LISTENERS)
    monkeypatch.syspath_prepend(str(jar))
    importlib.invalidate_caches()
    assert (plugins.own_version(), plugins.names(LISTENERS)) == expected


@pytest.mark.parametrize("group", list(plugins.OWN_PLUGINS))
def test_our_own_are_those_of_the_metadata(group: str) -> None:
    ours = {each.name: each.value for each in distribution("headwater").entry_points if each.group == group}
    assert ours == plugins.OWN_PLUGINS[group]
    other = {each.group for each in distribution("headwater").entry_points} - {*plugins.OWN_PLUGINS}
    assert other == {"console_scripts"}, "a new group belongs into the table"


@pytest.mark.parametrize(
    ("missing", "distribution_name"),
    [("confluent_kafka", "confluent-kafka"), ("pydantic_core._pydantic_core", "pydantic"), ("acme.codec", "acme")],
)
def test_a_missing_package_is_reported_with_what_to_do(
    missing: str, distribution_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_needs.py").write_text(f"raise ImportError('it is not there', name={missing!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_needs", raising=False)
    with pytest.raises(PluginError, match=f"-m pip install {distribution_name}.*no package with native code"):
        plugins.load(LISTENERS, "acme_needs:F")


def test_a_missing_module_of_ours_is_no_missing_package() -> None:
    assert advise_import(ImportError("no", name="headwater.nowhere")) == ""
    assert advise_import(ImportError("no")) == ""


def test_install_says_what_is_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> ModuleType:
        raise ImportError(f"cannot import {name}", name="pydantic_core._pydantic_core")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ImportError, match=r"headwater\.listeners\.install isn't there: .*pip install pydantic"):
        headwater.listeners.__getattr__("install")


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (None, "'headwater[lake]'"),
        ('{"url": "file:///a%20b/checkout", "dir_info": {"editable": true}}', "'/a b/checkout[lake]'"),
        ('{"url": "file:///w/headwater-1-py3-none-any.whl"}', "'/w/headwater-1-py3-none-any.whl[lake]'"),
        (
            '{"url": "https://h/headwater-1-py3-none-any.whl"}',
            "'headwater[lake] @ https://h/headwater-1-py3-none-any.whl'",
        ),
        ('{"url": "https://h/r", "vcs_info": {"vcs": "git"}}', "'headwater[lake] @ git+https://h/r'"),
        ("no JSON", "'headwater[lake]'"),
    ],
)
def test_an_extra_comes_from_where_headwater_came(
    written: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No index has to know headwater: the command that an error names must work as it stands."""

    class Installed:
        def read_text(self, name: str) -> str | None:
            return written if name == "direct_url.json" else None

    monkeypatch.setattr(plugins, "distribution", lambda _: Installed())
    assert plugins.extra_command("lake") == f"{shlex.quote(sys.executable)} -m pip install {wanted}"
