"""What a catalog's options declare of lineage, reported once, and what they switch off."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from headwater.events.identity import Environment
from headwater.events.redaction import Redactor
from headwater.listeners.capture.catalog import CatalogDeclarations, LineageSwitches, switches_of
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats import installed


def catalog(options: Mapping[str, str], name: str = "pai", warehouse: str = "/w") -> SessionNamedCatalog:
    context = CaptureContext(Environment(host="h"), {}, Redactor(), installed())
    given = {"warehouse": warehouse, **options}
    return context.learn_catalog(0, name, "org.apache.paimon.spark.SparkCatalog", given)


@pytest.mark.parametrize(
    ("options", "omitted"),
    [
        ({}, LineageSwitches()),
        ({"table-lineage": "true", "data-lineage": "true"}, LineageSwitches()),
        ({"data-lineage": "false"}, LineageSwitches(table_lineage=False, data_lineage=True)),
        ({"data-lineage": " FALSE "}, LineageSwitches(table_lineage=False, data_lineage=True)),
        ({"table-lineage": "false"}, LineageSwitches(table_lineage=True, data_lineage=True)),
        ({"table-lineage": "false", "data-lineage": "true"}, LineageSwitches(table_lineage=True, data_lineage=True)),
        ({"TABLE-LINEAGE": "false"}, LineageSwitches(table_lineage=True, data_lineage=True)),
    ],
)
def test_what_is_omitted(options: dict[str, str], omitted: LineageSwitches) -> None:
    """Without table lineage there is nothing that versions could belong to."""
    assert switches_of(catalog(options)) == omitted


def test_it_is_declared_once() -> None:
    declarations = CatalogDeclarations()
    (declared,) = declarations.of(catalog({"data-lineage": "false"}))
    assert (declared.table_lineage, declared.data_lineage) == (True, False)
    assert declared.context.name == "pai"
    assert dict(declared.options) == {"data-lineage": "false"}
    assert declarations.of(catalog({"data-lineage": "false"})) == ()


def test_the_same_one_isnt_declared_again() -> None:
    declarations, same = CatalogDeclarations(), catalog({})
    assert [len(declarations.of(same)) for _ in range(3)] == [1, 0, 0]


def test_how_to_reach_the_store_isnt_declared() -> None:
    options = {
        "table-lineage": "true",
        "jdbc.url": "jdbc:mysql://h/db",
        "jdbc.password": "hunter2",
        "lineage-meta": "jdbc",
    }
    (declared,) = CatalogDeclarations().of(catalog(options))
    assert dict(declared.options) == {"table-lineage": "true", "lineage-meta": "jdbc"}


def test_a_changed_value_is_a_warning_and_the_first_one_holds(caplog: pytest.LogCaptureFixture) -> None:
    declarations = CatalogDeclarations()
    first, changed = catalog({"data-lineage": "false"}), catalog({"data-lineage": "true"})
    declarations.of(first)
    with caplog.at_level(logging.WARNING):
        assert declarations.of(changed) == ()
    (record,) = caplog.records
    assert "catalog pai" in record.getMessage()
    assert "declared first holds" in record.getMessage()
    assert declarations.omits(changed) == LineageSwitches(data_lineage=True)


def test_a_changed_value_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    declarations = CatalogDeclarations()
    declarations.of(catalog({}))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            declarations.of(catalog({"data-lineage": "false"}))
    assert len(caplog.records) == 1


def test_two_names_for_one_warehouse_are_one_catalog() -> None:
    """What one of them declared holds for the other as well."""
    declarations = CatalogDeclarations()
    assert declarations.of(catalog({"data-lineage": "false"}, name="one"))
    assert declarations.of(catalog({"data-lineage": "false"}, name="other")) == ()
    assert declarations.omits(catalog({}, name="other")) == LineageSwitches(data_lineage=True)


def test_one_name_for_two_warehouses_is_two_catalogs() -> None:
    declarations = CatalogDeclarations()
    assert declarations.of(catalog({}, warehouse="/one"))
    assert declarations.of(catalog({"data-lineage": "false"}, warehouse="/other"))
    assert declarations.omits(catalog({"data-lineage": "false"}, warehouse="/other")) == LineageSwitches(
        data_lineage=True
    )
