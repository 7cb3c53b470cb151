"""Catalogs kept by a Hive metastore, by AWS Glue in its place, or by the session alone."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.events.identity.catalogs.known import Catalog, Naming, metastore_of, physical, warehouse_of
from headwater.events.identity.catalogs.others import database_location
from headwater.events.identity.results import Unknown
from headwater.events.identity.site import Site


def hive_catalog(_name: str, options: Mapping[str, str], site: Site) -> Catalog | Unknown:
    """A metastore, whoever asks it: Iceberg, Paimon and Spark see the same databases in it."""
    uris = options.get("uri") or options.get("hive.metastore.uris") or site.metastore
    if uris:
        return _hive(metastore_of(uris, site))
    if site.metastore_database:
        return _inside_the_driver(site.metastore_database, site)
    return Unknown(reason="the metastore isn't told: neither the catalog's uri nor hive.metastore.uris is set")


def session_catalog(_name: str, options: Mapping[str, str], site: Site) -> Catalog | Unknown:
    """`spark_catalog`, as it is or wrapped by Delta or Hudi: the metastore, or only this session over a warehouse."""
    if site.session_catalog == "hive" or options.get("hive.metastore.uris"):
        if site.metastore or site.metastore_database or options.get("hive.metastore.uris"):
            return hive_catalog(_name, options, site)
        if site.working_directory is None:
            return Unknown(reason="the metastore isn't told: set hive.metastore.uris or javax.jdo.option.ConnectionURL")
        return _inside_the_driver("jdbc:derby:;databaseName=metastore_db", site)
    if site.warehouse is None:
        return Unknown(reason="neither a metastore nor spark.sql.warehouse.dir is told")
    warehouse = warehouse_of(site.warehouse, site, "spark.sql.warehouse.dir")
    return Catalog(id=physical("spark", warehouse), names=warehouse, folds=True, warehouse=warehouse)


def glue_catalog(_name: str, options: Mapping[str, str], site: Site) -> Catalog | Unknown:
    """AWS Glue of an account in a region, neither of which the catalog itself need tell."""
    region = options.get("glue.region") or options.get("client.region") or site.aws_region
    account = options.get("glue.id") or site.aws_account
    if not region or not account:
        return Unknown(reason="AWS Glue: set client.region and glue.id, so that it is known whose catalog it is")
    arn = f"arn:aws:glue:{region.lower()}:{account}"
    return Catalog(id=physical("glue", arn), names=arn, naming=Naming.GLUE, folds=True)


def _inside_the_driver(url: str, site: Site) -> Catalog | Unknown:
    location = database_location(url, {}, site, "the metastore's own jdbc url")
    return location if isinstance(location, Unknown) else _hive(location)


def _hive(location: str) -> Catalog:
    return Catalog(id=physical("hive", location), names=location, folds=True)
