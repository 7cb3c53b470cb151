"""Catalogs kept by a Hive metastore, by AWS Glue in its place, or by the session alone."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.events.identity.catalogs.known import (
    Catalog,
    Naming,
    known_warehouse,
    metastore_of,
    physical,
    warehouse_of,
)
from headwater.events.identity.catalogs.others import database_location
from headwater.events.identity.environment import Environment
from headwater.events.identity.errors import Unknown


def hive_catalog(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """A metastore, whoever asks it: Iceberg, Paimon and Spark see the same databases in it."""
    warehouse = known_warehouse(options.get("warehouse") or environment.warehouse, environment)
    uris = options.get("uri") or options.get("hive.metastore.uris") or environment.metastore
    if uris:
        return _hive(metastore_of(uris, environment), warehouse)
    if environment.metastore_database:
        return _inside_the_driver(environment.metastore_database, environment, warehouse)
    return Unknown(reason="the metastore isn't known: neither the catalog's uri nor hive.metastore.uris is set")


def session_catalog(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """`spark_catalog`, as it is or wrapped by Delta or Hudi: the metastore, or only this session over a warehouse."""
    if environment.session_catalog == "hive" or options.get("hive.metastore.uris"):
        if environment.metastore or environment.metastore_database or options.get("hive.metastore.uris"):
            return hive_catalog(_name, options, environment)
        if environment.working_directory is None and environment.derby_home is None:
            return Unknown(
                reason="the metastore isn't known: set hive.metastore.uris or javax.jdo.option.ConnectionURL"
            )
        warehouse = known_warehouse(environment.warehouse, environment)
        return _inside_the_driver("jdbc:derby:;databaseName=metastore_db", environment, warehouse)
    if environment.warehouse is None:
        return Unknown(reason="neither a metastore nor spark.sql.warehouse.dir is set")
    warehouse = warehouse_of(environment.warehouse, environment, "spark.sql.warehouse.dir")
    return Catalog(id=physical("spark", warehouse), names=warehouse, folds=True, warehouse=warehouse)


def glue_catalog(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """AWS Glue of an account in a region, neither of which the catalog itself need tell."""
    region = options.get("glue.region") or options.get("client.region") or environment.aws_region
    account = options.get("glue.id") or environment.aws_account
    if not region or not account:
        return Unknown(reason="AWS Glue: set client.region and glue.id, so that it is known whose catalog it is")
    arn = f"arn:aws:glue:{region.lower()}:{account}"
    warehouse = known_warehouse(options.get("warehouse"), environment)
    return Catalog(id=physical("glue", arn), names=arn, naming=Naming.GLUE, folds=True, warehouse=warehouse)


def _inside_the_driver(url: str, environment: Environment, warehouse: str | None) -> Catalog | Unknown:
    location = database_location(url, {}, environment, "the metastore's own jdbc url")
    return location if isinstance(location, Unknown) else _hive(location, warehouse)


def _hive(location: str, warehouse: str | None) -> Catalog:
    return Catalog(id=physical("hive", location), names=location, folds=True, warehouse=warehouse)
