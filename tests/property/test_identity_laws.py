"""Laws of identity: one place has one name however it is spelled, no secret is ever in it, and nothing else is raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import quote

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from headwater.events.identity import (
    IdentityError,
    JdbcTable,
    Namespaces,
    Site,
    TableIdentity,
    catalog_of,
    dataset_of_path,
    dataset_of_source,
    dataset_of_uri,
    glob_root,
    jdbc_identifier,
    jdbc_table,
    kafka_namespace,
    kafka_read,
    kafka_topic,
    location_of,
    table_identity,
    under_root,
)
from headwater.events.identity.catalogs import Catalog
from headwater.events.identity.external import atlas, datahub, openlineage
from headwater.events.identity.jdbc.dialects import DIALECTS
from headwater.events.identity.text import joined, split
from headwater.events.names import DatasetId, TableName

SITE = Site(
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
BUCKETS = st.from_regex(r"[a-z0-9][a-z0-9.-]{1,12}", fullmatch=True)
SECRETS = st.from_regex(r"S3CR3T[A-Za-z0-9!$*+-]{4,12}Z", fullmatch=True)
TEXTS = st.text(max_size=40)
SCHEMES = st.sampled_from(["s3", "s3a", "gs", "hdfs", "file", "abfss", "wasb", "dbfs", "viewfs", "https", "oss", "x"])
URLISH = st.lists(
    st.sampled_from([*"/:@?=;&,.()[]{}%\\\"'`# -~$1ah", "://", "jdbc:", "s3", "..", "//", "localhost", "\u0301", "ß"]),
    max_size=14,
).map("".join)
JDBC_NAMES = st.sampled_from([*DIALECTS, "mysql+srv", "jtds:sqlserver", "p6spy", "aws-wrapper:mysql", "newdb"])


def same(*spellings: str) -> bool:
    return len({dataset_of_path(spelling, SITE) for spelling in spellings}) == 1


@given(BUCKETS, KEYS)
def test_scheme_aliases_and_trailing_slashes_change_nothing(bucket: str, key: str) -> None:
    assert same(f"s3://{bucket}/{key}", f"s3a://{bucket}/{key}/", f"S3N://{bucket}/{key}//")
    assert same(f"gs://{bucket}/{key}", f"gcs://{bucket}/{key}/")
    assert same(f"abfs://c@{bucket}.x/{key}/", f"abfss://c@{bucket.upper()}.X:443/{key}") or bucket.endswith(("-", "."))


@given(HOSTS, KEYS)
def test_default_ports_and_the_case_of_hosts_change_nothing(host: str, key: str) -> None:
    assume(host not in {"ha"})
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
    for form in ("jdbc:postgresql://{}/db", "jdbc:mysql:replication://{}/db", "jdbc:oracle:thin:@//{}/svc"):
        assert (
            jdbc_table(form.format(one), "s.t", SITE) == jdbc_table(form.format(other), "s.t", SITE) or "mysql" in form
        )
    mysql = [jdbc_table(f"jdbc:mysql:replication://{hosts}/db", "t", SITE) for hosts in (one, other)]
    assert mysql[0] == mysql[1]


@given(KEYS, KEYS)
def test_what_an_object_store_keeps_apart_stays_apart(one: str, other: str) -> None:
    assume(one.rstrip("/") != other.rstrip("/"))
    assert not same(f"s3://bucket/{one}", f"s3://bucket/{other}")


@given(SCHEMES, TEXTS | URLISH | KEYS)
@example("s3", "b/a//b")
@example("s3", "b//a")
@example("file", "/tmp/a b")
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


WITH_SECRET: list[Callable[[str, str], object]] = [
    lambda host, secret: dataset_of_path(f"s3a://AKIA:{secret}@{host}/a", SITE),
    lambda host, secret: dataset_of_path(f"hdfs://etl:{secret}@{host}/a", SITE),
    lambda host, secret: dataset_of_path(f"https://u:{secret}@{host}/a?token={secret}#{secret}", SITE),
    lambda host, secret: dataset_of_path(f"abfss://c@{host}/a?sv=1&sig={secret}", SITE),
    lambda host, secret: dataset_of_path(f"abfss://c:{secret}@{host}/a", SITE),
    lambda host, secret: dataset_of_uri(f"s3://b/a?X-Amz-Signature={secret}", SITE),
    lambda host, secret: jdbc_table(f"jdbc:postgresql://u:{secret}@{host}/db?password={secret}", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:postgresql://{host}/?password={secret}", "t", SITE, {"password": secret}),
    lambda host, secret: jdbc_table(f"jdbc:mysql://u:{secret}@{host},u:{secret}@h2/db", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:mysql://address=(host={host})(password={secret})/db", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:sqlserver://{host};password={secret};databaseName=db", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:sqlserver://u:{secret}@{host};databaseName=db", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:oracle:thin:scott/{secret}@//{host}/svc", "s.t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:oracle:thin:scott/{secret}@(ADDRESS=(HOST={host}))", "s.t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:oracle:thin:scott/{secret}", "s.t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:db2://{host}/db:user=u;password={secret};", "s.t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:teradata://{host}/DATABASE=d,PASSWORD={secret}", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:snowflake://a.snowflakecomputing.com/?db=d&password={secret}", "s.t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:bigquery://x;ProjectId=p;OAuthPvtKey={secret}", "d.t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:trino://u:{secret}@{host}/c?password={secret}", "s.t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:clickhouse:https://u:{secret}@{host}/d?password={secret}", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:h2:tcp://{host}/d;PASSWORD={secret}", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:h2:file:/d;PASSWORD={secret}", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:newdb://u:{secret}@{host}/d;pwd={secret}", "t", SITE),
    lambda host, secret: jdbc_table(f"jdbc:newdb:u/{secret}@{host}", "t", SITE),
    lambda host, secret: kafka_read({"kafka.bootstrap.servers": f"u:{secret}@{host}", "subscribe": "t"}, SITE),
    lambda host, secret: kafka_read(
        {"kafka.bootstrap.servers": host, "subscribe": "t", "kafka.sasl.jaas.config": secret}, SITE
    ),
    lambda host, secret: catalog_of(
        "r", "org.apache.iceberg.spark.SparkCatalog",
        {"type": "rest", "uri": f"https://u:{secret}@{host}?t={secret}", "credential": secret, "token": secret}, SITE,
    ),
    lambda host, secret: catalog_of(
        "r", "org.apache.iceberg.spark.SparkCatalog",
        {"type": "jdbc", "uri": f"jdbc:postgresql://u:{secret}@{host}/d?password={secret}", "jdbc.password": secret}, SITE,
    ),
    lambda host, secret: catalog_of(
        "d", "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        {"url": f"jdbc:mysql://u:{secret}@{host}", "password": secret}, SITE,
    ),
    lambda host, secret: catalog_of("x", "com.acme.C", {"url": f"https://u:{secret}@{host}/?k={secret}"}, SITE),
    lambda host, secret: dataset_of_source("jdbc", {"url": f"jdbc:mysql://{host}/d?password={secret}", "dbtable": "t"}, SITE),
]  # fmt: skip


@settings(max_examples=400)
@given(st.sampled_from(WITH_SECRET), HOSTS, SECRETS)
def test_no_credential_is_ever_shown(identify: Callable[[str, str], object], host: str, secret: str) -> None:
    try:
        shown = repr(identify(host, secret))
    except IdentityError as error:
        shown = f"{error} {error.__cause__} {'' if error.__suppress_context__ else error.__context__}"
    assert secret.lower() not in shown.lower()


Call: TypeAlias = Callable[[str, str], object]


def _source(source_format: str) -> Call:
    return lambda a, b: dataset_of_source(
        source_format,
        {"path": a, "paths": b, "url": a, "dbtable": b, "table": a, "kafka.bootstrap.servers": a, "assign": b},
        SITE,
    )


def _catalog(class_name: str, kind: str) -> Call:
    def call(a: str, b: str) -> object:
        told = {"type": kind, "metastore": kind, "uri": a, "url": a, "warehouse": b, "catalog-impl": ""}
        found = catalog_of("c", class_name, told, SITE)
        if not isinstance(found, Catalog):
            return found
        return table_identity(found, TableName(catalog="c", database=a, table=b or "t"), SITE)

    return call


ANYTHING: list[Call] = [
    lambda a, b: dataset_of_path(a, SITE),
    lambda a, b: dataset_of_uri(a, SITE),
    lambda a, b: kafka_topic(a, b, SITE),
    lambda a, b: kafka_read({"kafka.bootstrap.servers": "h", "subscribe": a}, SITE),
    lambda a, b: kafka_read({"kafka.bootstrap.servers": "h", "assign": a}, SITE, [b]),
    lambda a, b: jdbc_table(a, b, SITE),
    lambda a, b: jdbc_identifier("jdbc:postgresql://h/d", [a, b], SITE),
    *(_source(name) for name in ("parquet", "delta", "iceberg", "kafka", "jdbc", "bigquery", "snowflake", "else")),
    *(_catalog("org.apache.paimon.spark.SparkCatalog", kind) for kind in ("filesystem", "hive", "jdbc", "rest", "x")),
    *(_catalog("org.apache.iceberg.spark.SparkCatalog", k) for k in ("hadoop", "hive", "rest", "glue", "jdbc", "nessie")),
    _catalog("org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog", ""),
    _catalog("io.unitycatalog.spark.UCSingleCatalog", ""),
    _catalog("com.acme.Catalog", ""),
]  # fmt: skip


@settings(max_examples=1500)
@given(st.sampled_from(ANYTHING), TEXTS | URLISH, TEXTS | URLISH)
def test_any_text_is_identified_or_refused_by_one_kind_of_error(identify: Call, one: str, other: str) -> None:
    try:
        found = identify(one, other)
    except IdentityError as error:
        assert len(str(error)) > 20
        return
    dataset = found.dataset if isinstance(found, (JdbcTable, TableIdentity)) else found
    if isinstance(dataset, DatasetId):
        f"{dataset.namespace}{dataset.name}".encode()
        datahub.dataset_urn(dataset)
        atlas.atlas_name(dataset)
        openlineage.openlineage_name(dataset)


@settings(max_examples=1500)
@given(JDBC_NAMES, URLISH, TEXTS | URLISH)
@example("oracle", "thin:@(", "t")
@example("mysql", "//[", "t")
@example("h2", "tcp://x/", "t")
def test_any_jdbc_url_is_identified_or_refused_by_one_kind_of_error(name: str, rest: str, dbtable: str) -> None:
    for start in ("", "//", "thin:@"):
        try:
            jdbc_table(f"jdbc:{name}:{start}{rest}", dbtable, SITE, {"user": dbtable})
        except IdentityError as error:
            assert len(str(error)) > 20  # noqa: PT017 - most urls are refused, and each refusal must say something


def test_a_long_text_takes_no_long_time() -> None:
    for text in (
        "(" * 50_000,
        "p6spy:" * 50_000,
        "[" * 50_000,
        "a" * 50_000 + ":",
        "//" + "h," * 20_000,
        "@(" * 20_000,
    ):
        for name in (
            "oracle:thin:@",
            "mysql://",
            "h2:",
            "sqlserver://",
            "p6spy:",
            "newdb://",
            "snowflake://",
            "redshift:",
        ):
            try:
                jdbc_table(f"jdbc:{name}{text}", "t", SITE)
            except IdentityError:
                continue
