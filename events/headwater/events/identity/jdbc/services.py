"""Databases that are a service or have a url of their own: Snowflake, BigQuery, Redshift, Trino, ClickHouse, DB2 …"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from headwater.events.identity.hosts import Endpoint, endpoint, port_number
from headwater.events.identity.jdbc.dialects import (
    DIALECTS,
    Address,
    Dialect,
    database_name,
    first_of,
    malformed,
    places,
    server_address,
    settings_of,
    split_settings,
)
from headwater.events.identity.text import IdentityError

_ACCOUNT = re.compile(r"(?P<account>[a-z0-9_.-]+?)(?:\.privatelink)?\.snowflakecomputing\.(?:com|cn)", re.ASCII)
_CLUSTER = re.compile(r"(?P<cluster>[a-z0-9-]+)\.[a-z0-9]+\.(?P<region>[a-z0-9-]+)\.redshift\.amazonaws\.com(?:\.cn)?")
_SETTING = re.compile(r"[A-Za-z_]+=")
_CLUSTER_ID = re.compile(r"(?P<cluster>[a-z0-9-]+):(?P<region>[a-z]{2}-[a-z-]+-[0-9]+)", re.IGNORECASE)


def postgres_address(rest: str, dialect: Dialect) -> Address:
    """`//hosts/db`, and the short forms `db` and `/` on this machine. A Redshift cluster stays one."""
    address, settings = server_address(rest if rest.startswith("//") else f"//localhost/{rest.lstrip('/')}", dialect)
    schema = settings.get("currentschema", "").split(",")[0].strip()
    address = replace(address, schema=None if schema in {"", "$user", '"$user"'} else schema)
    on_redshift = any(_CLUSTER.fullmatch(place.host) for place in address.places)
    return _short_cluster(replace(address, dialect=DIALECTS["redshift"])) if on_redshift else address


def redshift_address(rest: str, dialect: Dialect) -> Address:
    """`//cluster.….region.redshift.amazonaws.com:5439/db`, `iam://cluster:region/db`."""
    rest = re.sub(r"^iam:(?=//)", "", rest, flags=re.IGNORECASE)
    authority, slash, tail = rest.removeprefix("//").partition("/")
    if match := _CLUSTER_ID.fullmatch(authority):
        rest = f"//{match['cluster']}.{match['region']}:{dialect.port}{slash}{tail}"
    address, settings = server_address(rest, dialect)
    return _short_cluster(replace(address, schema=settings.get("currentschema") or None))


def snowflake_address(rest: str, dialect: Dialect, values: Mapping[str, str]) -> Address:
    """The account is the place, as organisation-account or as locator; regions' private links lead to the same."""
    location, settings = split_settings(rest.removeprefix("//"), "?")
    settings = {**values, **settings}
    host = location.rstrip("/").rpartition("@")[2]
    account = snowflake_account(host)
    database = first_of(settings, "db", "database", "sfdatabase")
    schema = first_of(settings, "schema", "sfschema")
    return Address(dialect=dialect, service=account, database=database, schema=schema)


def snowflake_account(url: str) -> str:
    match = _ACCOUNT.fullmatch(endpoint(re.sub(r"^https?://", "", url.strip(), flags=re.IGNORECASE).rstrip("/")).host)
    if match is None:
        msg = "a snowflake url isn't <account>.snowflakecomputing.com; give the account's own url"
        raise IdentityError(msg)
    return match["account"]


def bigquery_address(rest: str, dialect: Dialect, values: Mapping[str, str]) -> Address:
    settings = {**values, **settings_of(rest.partition(";")[2])}
    project, dataset = first_of(settings, "projectid", "project"), first_of(settings, "defaultdataset", "dataset")
    return Address(dialect=dialect, service="", database=project, schema=dataset)


def trino_address(rest: str, dialect: Dialect) -> Address:
    """`//host/catalog/schema`; the port is 443 with SSL and else 80, as in the driver."""
    location, settings = split_settings(rest.removeprefix("//"), "?")
    authority, _, names = location.rstrip("/").partition("/")
    if not rest.startswith("//") or names.count("/") > 1:
        raise malformed(dialect, "//host:port/catalog/schema")
    port = 443 if settings.get("ssl", "").lower() == "true" else 80
    catalog, _, schema = names.partition("/")
    return Address(
        dialect=dialect,
        places=places(authority, port),
        database=database_name(catalog, dialect),
        schema=database_name(schema, dialect),
    )


def clickhouse_address(rest: str, dialect: Dialect) -> Address:
    plain = re.sub(r"^(?:https?|grpcs?|tcp):(?=//)", "", rest, flags=re.IGNORECASE)
    secure = rest.lower().startswith("https:") or re.search(r"[?&]ssl=true\b", rest, re.IGNORECASE)
    address, settings = server_address(plain, replace(dialect, port=8443) if secure else dialect)
    return replace(address, dialect=dialect, database=address.database or settings.get("database"))


def db2_address(rest: str, dialect: Dialect) -> Address:
    """`//host:port/DATABASE:setting=value;…`."""
    if not rest.startswith("//"):
        raise malformed(dialect, "//host:port/database")
    authority, _, tail = rest[2:].partition("/")
    database, _, settings = tail.partition(":")
    schema = settings_of(settings).get("currentschema")
    return Address(
        dialect=dialect,
        places=places(authority, dialect.port),
        database=database_name(database.rstrip("/;"), dialect),
        schema=schema,
    )


def teradata_address(rest: str, dialect: Dialect) -> Address:
    """`//host/DATABASE=d,DBS_PORT=1025,…`."""
    authority, _, tail = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or (tail and not _SETTING.match(tail)):
        raise malformed(dialect, "//host/DATABASE=…")
    settings = settings_of(tail.replace(",", ";"))
    port = port_number(settings.get("dbs_port"), dialect.port)
    return Address(dialect=dialect, places=places(authority, port), database=settings.get("database"))


def _short_cluster(address: Address) -> Address:
    """OpenLineage names a cluster `{identifier}.{region}`."""
    return replace(address, places=tuple(_short_host(place) for place in address.places))


def _short_host(place: Endpoint) -> Endpoint:
    match = _CLUSTER.fullmatch(place.host)
    return Endpoint(f"{match['cluster']}.{match['region']}", place.port) if match else place
