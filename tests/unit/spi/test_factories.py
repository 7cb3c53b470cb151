"""`spark.headwater.listeners` names factories: each has a name of its own, and faults are reported one by one."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from headwater.errors import ConfigurationError, PluginError
from headwater.spi.factories import LISTENERS, RESERVED_NAMES, check_name, listener_factories, name_and_reference

CODE = """
class AuditFactory:
    def create(self, context):
        return context

class Outer:
    class SlackListenerFactory(AuditFactory):
        pass

class NeedyFactory(AuditFactory):
    def __init__(self, url):
        pass

made_already = AuditFactory()
Factory = AuditFactory

class Nothing:
    pass

class AuditListener:
    def __init__(self, file):
        pass

    def on_event(self, event):
        pass

class NoContextFactory:
    def create(self):
        pass
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_listeners.py").write_text(CODE)
    info = tmp_path / "acme_listeners-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-listeners\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{LISTENERS}]\npager = acme_listeners:AuditFactory\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("", []),
        (" , ", []),
        ("pager", ["pager"]),
        ("pager, acme_listeners:AuditFactory", ["pager", "audit"]),
        ("acme_listeners:Outer.SlackListenerFactory", ["slacklistener"]),
        ("acme_listeners:made_already", ["made_already"]),
        ("main = pager , backup=pager", ["main", "backup"]),
        ("slack=acme_listeners:Outer.SlackListenerFactory", ["slack"]),
    ],
)
def test_each_item_is_a_factory_under_a_name(items: str, names: list[str]) -> None:
    factories = listener_factories(items)
    assert factories.faults == ()
    assert [named.name for named in factories.found] == names
    assert all(hasattr(named.factory, "create") and not isinstance(named.factory, type) for named in factories.found)


@pytest.mark.parametrize(
    ("item", "kind", "words"),
    [
        ("pagre", PluginError, "there is no plug-in of headwater.listeners called pagre: did you mean pager?"),
        ("acme_listeners:AuditFactroy", PluginError, "did you mean AuditFactory?"),
        ("acme_listeners:NeedyFactory", PluginError, "can't be created without arguments: TypeError"),
        ("acme_listeners:Nothing", PluginError, "is no listener factory: it has no create(context)"),
        (
            "acme_listeners:AuditListener",
            PluginError,
            "is a listener, and a factory is needed here: name a class",
        ),
        ("acme_listeners:NoContextFactory", PluginError, "write def create(self, context)"),
        ("pager", ConfigurationError, "two listeners are called pager: give one another name, as in other=pager"),
        ("spool", ConfigurationError, "spark.headwater.spool is a section of the configuration"),
        ("JOB=pager", ConfigurationError, "no listener can be called JOB"),
        ("acme_listeners:Factory", ConfigurationError, "no listener can be called ''"),
        ("a.b=pager", ConfigurationError, "no listener can be called 'a.b'"),
        ("a b=pager", ConfigurationError, "no listener can be called 'a b'"),
        ("other=", ConfigurationError, "doesn't say which factory: other=package.module:Factory"),
    ],
)
def test_a_fault_names_the_key_and_leaves_the_others_alone(item: str, kind: type[Exception], words: str) -> None:
    factories = listener_factories(f"pager,{item},audit2=pager", key="spark.headwater.job.listeners")
    assert [named.name for named in factories.found] == ["pager", "audit2"]
    (fault,) = factories.faults
    assert type(fault) is kind
    assert str(fault).startswith("spark.headwater.job.listeners: ")
    assert words in str(fault)


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_sections_of_the_configuration_are_no_names(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"spark.headwater.{name} is a section"):
        check_name(name)


def test_the_words_that_are_sections_are_all_there() -> None:
    assert {"job", "catalog", "spool", "capture", "lineage", "namespaces", "tags", "parent"} <= RESERVED_NAMES


def test_a_name_can_be_asked_for_without_loading_anything() -> None:
    assert name_and_reference("nowhere:AuditFactory") == ("audit", "nowhere:AuditFactory")
    assert name_and_reference("kafka") == ("kafka", "kafka")
    check_name("kafka_2-b")
