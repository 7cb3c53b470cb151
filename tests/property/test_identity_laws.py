"""Laws of identity: one place has one name however it is spelled, no secret shows, and one kind of error is raised."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from headwater.events.identity import (
    Environment,
    IdentityError,
    JdbcTable,
    Namespaces,
    TableIdentity,
    Unknown,
    dataset_of_path,
    dataset_of_source,
    dataset_of_uri,
    glob_root,
    jdbc_identifier,
    jdbc_table,
    kafka_namespace,
    kafka_topic,
    location_of,
    table_identity,
    under_root,
)
from headwater.events.identity.catalogs import Catalog
from headwater.events.identity.jdbc.dialects import DIALECTS
from headwater.events.identity.text import joined, split
from headwater.events.names import DatasetId, TableName
from headwater.listeners.capture.formats import installed
from tests.kit.effort import examples
from tests.kit.identity_rows import options

pytestmark = pytest.mark.slow

SITE = Environment(
    host="driver-1",
    namespaces=Namespaces.parse({"prod": "*.prod.example, 10.0.0.7"}),
    working_directory="/home/etl",
    nameservices=frozenset({"ha"}),
    workspace="acme",
    warehouse="/srv/warehouse",
)

HOSTS = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,12}[a-z0-9])?", fullmatch=True).filter(lambda host: ".." not in host)
PORTS = st.integers(1, 65535)
STEPS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0?"), min_size=1, max_size=8)
KEYS = st.lists(STEPS, min_size=1, max_size=4).map("/".join)
BUCKETS = st.from_regex(r"[a-z0-9][a-z0-9-]{1,12}[a-z0-9]", fullmatch=True)
SECRETS = st.from_regex(r"S3CR3T[A-Za-z0-9!$*+-]{4,12}Z", fullmatch=True)
TEXTS = st.text(max_size=40)
SCHEMES = st.sampled_from(["s3", "s3a", "gs", "hdfs", "file", "abfss", "wasb", "dbfs", "viewfs", "https", "oss", "x"])
URLISH = st.lists(
    st.sampled_from([*"/:@?=;&,.()[]{}%\\\"'`# -~$1ah", "://", "jdbc:", "s3", "..", "//", "localhost", "\u0301", "ß"]),
    max_size=14,
).map("".join)
JDBC_NAMES = st.sampled_from([*DIALECTS, "mysql+srv", "jtds:sqlserver", "p6spy", "aws-wrapper:mysql", "newdb"])


def same(*spellings: str) -> bool:
    first, *others = (dataset_of_path(spelling, SITE) for spelling in spellings)
    return all(other == first for other in others)


@given(BUCKETS, KEYS)
def test_scheme_aliases_and_trailing_slashes_change_nothing(bucket: str, key: str) -> None:
    assert same(f"s3://{bucket}/{key}", f"s3a://{bucket}/{key}/", f"S3N://{bucket}/{key}//")
    assert same(f"gs://{bucket}/{key}", f"gcs://{bucket}/{key}/")
    assert same(f"abfs://c@{bucket}.x/{key}/", f"abfss://c@{bucket.upper()}.X:443/{key}")


@given(HOSTS, KEYS)
def test_default_ports_and_the_case_of_hosts_change_nothing(host: str, key: str) -> None:
    assume(host != "ha")
    assert same(f"hdfs://{host}/{key}", f"HDFS://{host.upper()}:8020/{key}/", f"hdfs://{host}.//{key}")
    plain, full = (jdbc_table(f"jdbc:mysql://{h}/db", "t", SITE) for h in (host, f"{host.upper()}:3306"))
    assert plain == full
    assert kafka_topic(host, "t", SITE) == kafka_topic(f"SSL://{host.upper()}:9092", "t", SITE)


@given(KEYS)
def test_a_local_file_has_one_name_however_its_root_is_written(key: str) -> None:
    assert same(*(f"{root}{key}" for root in ("/", "//", "file:/", "file:///", "file://localhost/", "/./", "/x/../")))


@given(st.lists(st.tuples(HOSTS, PORTS), min_size=1, max_size=5, unique=True).flatmap(
    lambda places: st.tuples(st.just(places), st.permutations(places))
))  # fmt: skip
def test_the_order_of_a_host_list_changes_nothing(lists: tuple[list[tuple[str, int]], list[tuple[str, int]]]) -> None:
    one, other = (",".join(f"{host}:{port}" for host, port in places) for places in lists)
    assert kafka_namespace(one, SITE) == kafka_namespace(other, SITE)
    for form, table in (
        ("jdbc:postgresql://{}/db", "s.t"),
        ("jdbc:mysql:replication://{}/db", "t"),
        ("jdbc:oracle:thin:@//{}/svc", "s.t"),
        ("jdbc:newdb://{}/db", "t"),
    ):
        found = jdbc_table(form.format(one), table, SITE)
        assert isinstance(found, JdbcTable)
        assert found == jdbc_table(form.format(other), table, SITE)


@given(KEYS, KEYS)
def test_what_an_object_store_keeps_apart_stays_apart(one: str, other: str) -> None:
    assume(one.rstrip("/") != other.rstrip("/"))
    assert not same(f"s3://bucket/{one}", f"s3://bucket/{other}")


@given(SCHEMES, TEXTS | URLISH | KEYS)
@example("s3", "b/a//b")
@example("s3", "b//a")
@example("file", "/data/a b")
@example("hdfs", "ha/a/../b")
def test_a_rendered_path_is_read_back_as_the_same_dataset(scheme: str, rest: str) -> None:
    try:
        found = dataset_of_path(f"{scheme}://{rest}", SITE)
    except IdentityError:
        return
    assert dataset_of_path(location_of(found), SITE) == found


@given(BUCKETS, KEYS)
def test_a_uri_is_the_path_that_it_encodes(bucket: str, key: str) -> None:
    encoded = quote(key, safe="/")
    assert dataset_of_uri(f"s3://{bucket}/{encoded}", SITE) == dataset_of_path(f"s3://{bucket}/{key}", SITE)


PARTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)


def test_no_parts_are_no_name() -> None:
    assert joined(()) == ""


@given(st.lists(PARTS, min_size=1, max_size=3), st.lists(PARTS, min_size=1, max_size=3))
def test_names_of_several_parts_differ_if_their_parts_do(one: list[str], other: list[str]) -> None:
    if len(one) == len(other):
        assert (joined(one) == joined(other)) == (one == other)
    if "." not in one[0] or "`" in one[0] or len(one) == 1:
        assert list(split(joined(one))) == one


@given(st.sampled_from(["postgres", "mssql", "oracle", "db2", "redshift", "trino"]), HOSTS, PARTS, PARTS)
def test_a_rendered_jdbc_table_is_read_back_as_the_same_dataset(name: str, host: str, schema: str, table: str) -> None:
    forms = {"oracle": "jdbc:oracle:thin:@//{}/db", "mssql": "jdbc:sqlserver://{};databaseName=db"}
    form = forms.get(name, f"jdbc:{name}://{{}}/db")
    found = jdbc_identifier(form.format(host), [schema, table], SITE)
    assert isinstance(found, JdbcTable)
    place = found.dataset.namespace.partition("://")[2]
    assert jdbc_identifier(form.format(place), [schema, table], SITE) == found
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table))
    assert jdbc_table(form.format(place), quoted, SITE) == found


@given(HOSTS, PORTS, st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}", fullmatch=True))
def test_a_rendered_topic_is_read_back_as_the_same_dataset(host: str, port: int, topic: str) -> None:
    found = kafka_topic(f"{host}:{port}", topic, SITE)
    assert kafka_topic(found.namespace, found.name, SITE) == found


@given(KEYS, KEYS)
def test_a_part_and_its_root_make_the_whole(root: str, below: str) -> None:
    whole = dataset_of_path(f"s3://b/{root}", SITE)
    part = dataset_of_path(f"s3://b/{root.rstrip('/')}/{below}", SITE)
    assume(part != whole)
    found = under_root(part, whole)
    assert found is not None
    assert f"{whole.name.rstrip('/')}/{found.path}".lstrip("/") == part.name.lstrip("/")


@given(TEXTS)
def test_a_glob_and_its_root_make_the_path(path: str) -> None:
    root, pattern = glob_root(path)
    assert root + (pattern or "") == path


def identified(call: Callable[[], object]) -> object:
    """What is found, or the one kind of error there is."""
    try:
        return call()
    except IdentityError as error:
        return error


def a_path(text: str) -> object:
    return dataset_of_path(text, SITE)


def a_uri(text: str) -> object:
    return dataset_of_uri(text, SITE)


def a_url(text: str) -> object:
    return [jdbc_table(text, table, SITE, {"password": text}) for table in ("t", "s.t", "d.s.t")]


def a_read(text: str) -> object:
    return dataset_of_source("kafka", options(text), SITE)


def a_source(text: str) -> object:
    return dataset_of_source("jdbc", options(text), SITE)


def a_catalog(text: str) -> object:
    class_name, _, settings_given = text.partition(" ")
    return installed().catalog_of("c", class_name, options(settings_given), SITE)


ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
PAIMON = "org.apache.paimon.spark.SparkCatalog"
DATABASE = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"

PLANTED: list[tuple[Callable[[str], object], str]] = [
    (a_path, "s3a://AKIA:{secret}@{host}/a"),
    (a_path, "oss://AKIA:{secret}@{host}/a"),
    (a_path, "hdfs://etl:{secret}@{host}/a"),
    (a_path, "file://u:{secret}@{host}/a"),
    (a_path, "unknown://u:{secret}@{host}/a"),
    (a_path, "https://u:{secret}@{host}/a?token={secret}#{secret}"),
    (a_path, "abfss://c@{host}/a?sv=1&sig={secret}"),
    (a_path, "abfss://c:{secret}@{host}/a"),
    (a_uri, "s3://{host}/a?X-Amz-Signature={secret}"),
    (a_uri, "https://u:{secret}@{host}/a?{secret}#{secret}"),
    (a_url, "jdbc:postgresql://u:{secret}@{host}/db?password={secret}"),
    (a_url, "jdbc:postgresql://{host}/?user=u&password={secret}"),
    (a_url, "jdbc:mysql://u:{secret}@{host},u:{secret}@h2/db"),
    (a_url, "jdbc:mysql://u:{secret}@{host},h2/db?password={secret}"),
    (a_url, "jdbc:mysql://address=(host={host})(user=u)(password={secret})/db"),
    (a_url, "jdbc:mysql://u:{secret}@[{host},h2]/db"),
    (a_url, "jdbc:sqlserver://{host};user=u;password={secret};databaseName=db"),
    (a_url, "jdbc:sqlserver://u:{secret}@{host};databaseName=db"),
    (a_url, "jdbc:oracle:thin:scott/{secret}@//{host}/svc"),
    (a_url, "jdbc:oracle:thin:scott/{secret}@{host}:1521:sid"),
    (a_url, "jdbc:oracle:thin:scott/{secret}@(ADDRESS=(HOST={host}))(SID=s)"),
    (a_url, "jdbc:oracle:thin:scott/{secret}"),
    (a_url, "jdbc:db2://{host}/db:user=u;password={secret};"),
    (a_url, "jdbc:teradata://{host}/DATABASE=d,PASSWORD={secret}"),
    (a_url, "jdbc:teradata://u:{secret}@{host}/DATABASE=d"),
    (a_url, "jdbc:snowflake://u:{secret}@a.snowflakecomputing.com/?db=d&password={secret}"),
    (a_url, "jdbc:bigquery://{host};ProjectId=p;OAuthPvtKey={secret}"),
    (a_url, "jdbc:redshift:iam://u:{secret}@{host}/db?password={secret}"),
    (a_url, "jdbc:trino://u:{secret}@{host}/c?password={secret}"),
    (a_url, "jdbc:clickhouse:https://u:{secret}@{host}/d?password={secret}"),
    (a_url, "jdbc:h2:tcp://{host}/d;PASSWORD={secret}"),
    (a_url, "jdbc:h2:file:/d;PASSWORD={secret}"),
    (a_url, "jdbc:sqlite:/d?password={secret}"),
    (a_url, "jdbc:derby://u:{secret}@{host}/d;password={secret}"),
    (a_url, "jdbc:newdb://u:{secret}@{host}/d;pwd={secret}"),
    (a_url, "jdbc:newdb:u/{secret}@{host}"),
    (a_read, "kafka.bootstrap.servers=u:{secret}@{host}, subscribe=t"),
    (a_read, "kafka.bootstrap.servers={host}, subscribe=t, kafka.sasl.jaas.config={secret}"),
    (a_source, "url=jdbc:mysql://{host}/d?password={secret}, dbtable=t, password={secret}"),
    (a_catalog, ICEBERG + " type=rest, uri=https://u:{secret}@{host}?t={secret}, credential={secret}, token={secret}"),
    (a_catalog, ICEBERG + " type=jdbc, uri=jdbc:postgresql://u:{secret}@{host}/d?password={secret}"),
    (a_catalog, ICEBERG + " type=jdbc, uri=jdbc:postgresql://{host}/d, jdbc.password={secret}"),
    (a_catalog, ICEBERG + " type=nessie, uri=https://u:{secret}@{host}/api/v1, authentication.token={secret}"),
    (a_catalog, PAIMON + " warehouse=s3a://k:{secret}@{host}/wh, s3.secret-key={secret}"),
    (a_catalog, DATABASE + " url=jdbc:mysql://u:{secret}@{host}, password={secret}"),
    (a_catalog, "com.acme.Catalog url=https://u:{secret}@{host}/?k={secret}"),
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.sampled_from(PLANTED), HOSTS, SECRETS)
def test_no_credential_is_ever_shown(planted: tuple[Callable[[str], object], str], host: str, secret: str) -> None:
    identify, form = planted
    found = identified(lambda: identify(form.format(host=host, secret=secret)))
    shown = f"{found} {found!r}"
    if isinstance(found, IdentityError):
        assert found.__cause__ is None
        assert found.__context__ is None or found.__suppress_context__
    assert secret.lower() not in shown.lower()


def any_source(kind: str, one: str, other: str) -> object:
    settings_given = {
        "path": one,
        "paths": other,
        "url": one,
        "dbtable": other,
        "table": one,
        "sfurl": one,
        "sfdatabase": other,
    }
    settings_given |= {"kafka.bootstrap.servers": one, "assign": other}
    return dataset_of_source(kind, settings_given, SITE)


def any_table(kind: str, one: str, other: str) -> object:
    class_name, _, backend = kind.partition(" ")
    settings_given = {"type": backend, "metastore": backend, "uri": one, "url": one, "warehouse": other}
    found = installed().catalog_of("c", class_name, settings_given, SITE)
    if not isinstance(found, Catalog):
        return found
    return table_identity(found, TableName(catalog="c", database=one, table=other or "t"), SITE)


def any_place(kind: str, one: str, other: str) -> object:
    if kind == "identifier":
        return jdbc_identifier("jdbc:postgresql://h/d", [one, other], SITE)
    if kind == "topic":
        return kafka_topic(one, other, SITE)
    return (a_path if kind == "path" else a_uri)(one)


ANYTHING: list[tuple[Callable[[str, str, str], object], str]] = [
    *((any_place, kind) for kind in ("path", "uri", "topic", "identifier")),
    *((any_source, kind) for kind in ("csv", "delta", "iceberg", "kafka", "jdbc", "bigquery", "snowflake", "else")),
    *((any_table, f"{PAIMON} {kind}") for kind in ("filesystem", "hive", "jdbc", "rest", "else")),
    *((any_table, f"{ICEBERG} {kind}") for kind in ("hadoop", "hive", "rest", "glue", "jdbc", "nessie", "else")),
    *((any_table, kind) for kind in (DATABASE, "io.unitycatalog.spark.UCSingleCatalog", "com.acme.Catalog")),
]


@settings(max_examples=examples(600))
@given(st.sampled_from(ANYTHING), TEXTS | URLISH, TEXTS | URLISH)
@pytest.mark.slow
def test_any_text_is_identified_or_refused_by_one_kind_of_error(
    identify: tuple[Callable[[str, str, str], object], str], one: str, other: str
) -> None:
    function, kind = identify
    found = identified(lambda: function(kind, one, other))
    if isinstance(found, IdentityError):
        assert len(str(found)) > 20
    dataset = found.dataset if isinstance(found, (JdbcTable, TableIdentity)) else found
    if isinstance(dataset, DatasetId):
        assert "\0" not in dataset.namespace + dataset.name
        assert (dataset.namespace + dataset.name).encode("utf-8")


@settings(max_examples=examples(600))
@given(JDBC_NAMES, st.sampled_from(["", "//", "thin:@"]), URLISH, TEXTS | URLISH)
@example("oracle", "", "thin:@(", "t")
@example("mysql", "//", "[", "t")
@example("h2", "", "tcp://x/", "t")
def test_any_jdbc_url_is_identified_or_refused(name: str, start: str, rest: str, dbtable: str) -> None:
    found = identified(lambda: jdbc_table(f"jdbc:{name}:{start}{rest}", dbtable, SITE, {"user": dbtable}))
    assert isinstance(found, (JdbcTable, Unknown, IdentityError))
    assert not isinstance(found, IdentityError) or len(str(found)) > 20


LONG = [
    "(" * 50_000,
    "p6spy:" * 20_000,
    "[" * 50_000,
    f"{'a' * 50_000}:",
    f"//{'h,' * 20_000}",
    "@(" * 20_000,
    "a/" * 30_000 + "?",
    "=;" * 30_000,
    "(host=" * 10_000,
    "//" + "." * 50_000,
    "a." * 30_000,
    " " * 50_000 + "x",
]


@pytest.mark.parametrize(
    "name", [*DIALECTS, "p6spy", "newdb", "mysql:/", "oracle:thin:@", "redshift:iam:/", "path", "table"]
)
@pytest.mark.slow
def test_a_long_text_takes_no_long_time(name: str) -> None:
    for text in LONG:
        forms = {"path": f"s3://b/{text}", "table": "jdbc:postgresql://h/db"}
        call = a_path if name == "path" else a_url
        found = identified(partial(call, forms.get(name, f"jdbc:{name}:{text}")))
        tabled = identified(partial(jdbc_table, "jdbc:postgresql://h/db", text, SITE))
        assert found is not None
        assert isinstance(tabled, (JdbcTable, Unknown, IdentityError))
