"""Where a store is, as people write it."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from headwater.errors import ConfigurationError
from headwater.lineage.store.urls import parse_url, printable_url

PG, MY, LITE = "postgresql+psycopg", "mysql+pymysql", "sqlite+pysqlite"
WRITTEN = [
    ("jdbc:postgresql://db.example:5433/lineage", f"{PG}://db.example:5433/lineage"),
    ("jdbc:postgresql://db.example/lineage?user=me", f"{PG}://me@db.example/lineage"),
    ("jdbc:postgresql:lineage", f"{PG}://localhost/lineage"),
    ("jdbc:postgresql://[::1]:5432/lineage", f"{PG}://[::1]:5432/lineage"),
    (
        "jdbc:postgresql://a:1,b:2/l?targetServerType=primary",
        f"{PG}:///l?host=a%3A1&host=b%3A2&target_session_attrs=primary",
    ),
    ("jdbc:postgresql://h/l?ssl=true&reWriteBatchedInserts=true", f"{PG}://h/l?sslmode=verify-full"),
    (
        "jdbc:postgresql://h/l?sslmode=require&ssl=true&connectTimeout=3",
        f"{PG}://h/l?connect_timeout=3&sslmode=require",
    ),
    ("jdbc:postgresql://h/l?ApplicationName=my%20writer", f"{PG}://h/l?application_name=my+writer"),
    ("postgresql://me@h/l", f"{PG}://me@h/l"),
    ("postgres://me@h/l", f"{PG}://me@h/l"),
    ("postgresql+psycopg2://h/l", f"{PG}://h/l"),
    ("jdbc:mysql://db.example:3307/lineage", f"{MY}://db.example:3307/lineage"),
    ("jdbc:mysql://me@h/l?useSSL=false&serverTimezone=UTC", f"{MY}://me@h/l?ssl_disabled=true"),
    ("jdbc:mysql://h/l?sslMode=VERIFY_IDENTITY", f"{MY}://h/l?ssl_verify_cert=true&ssl_verify_identity=true"),
    ("jdbc:mariadb://h/l?sslMode=trust&connectTimeout=1500", f"{MY}://h/l?connect_timeout=2&ssl=required"),
    ("jdbc:mysql://h/l?connectTimeout=0&rewriteBatchedStatements=true", f"{MY}://h/l"),
    ("mariadb+pymysql://me@h/l", f"{MY}://me@h/l"),
    ("jdbc:sqlite:/var/lib/store.db", f"{LITE}:////var/lib/store.db"),
    ("jdbc:sqlite:store.db", f"{LITE}:///store.db"),
    ("sqlite:////var/lib/store.db", f"{LITE}:////var/lib/store.db"),
    ("/var/lib/store.db", f"{LITE}:////var/lib/store.db"),
    ("  store.db ", f"{LITE}:///store.db"),
    ("jdbc:sqlite::memory:", f"{LITE}://"),
    ("sqlite://", f"{LITE}://"),
]


@pytest.mark.parametrize(("written", "meant"), WRITTEN)
def test_what_is_meant(written: str, meant: str) -> None:
    assert parse_url(written) == make_url(meant)


@pytest.mark.parametrize(
    ("written", "driver", "meant"),
    [
        ("db.example:5432/lineage", "org.postgresql.Driver", f"{PG}://db.example:5432/lineage"),
        ("//db.example/lineage", "com.mysql.jdbc.Driver", f"{MY}://db.example/lineage"),
        ("jdbc:mysql://h/l", "org.mariadb.jdbc.Driver", f"{MY}://h/l"),
        ("jdbc:mysql://h/l", "com.mysql.cj.jdbc.Driver", f"{MY}://h/l"),
        ("store.db", "org.sqlite.JDBC", f"{LITE}:///store.db"),
    ],
)
def test_a_driver_says_which_database_it_is(written: str, driver: str, meant: str) -> None:
    assert parse_url(written, driver) == make_url(meant)


@pytest.mark.parametrize(
    ("written", "driver", "words"),
    [
        (
            "jdbc:postgresql://h/l",
            "com.mysql.jdbc.Driver",
            "com.mysql.jdbc.Driver is for mysql, and jdbc.url is of postgresql",
        ),
        (
            "jdbc:mysql://h/l",
            "com.mysql.jdbc.Drivr",
            "there is no driver com.mysql.jdbc.Drivr: did you mean com.mysql.jdbc.Driver",
        ),
        ("jdbc:oracle:thin:@//h/l", None, "there is no database oracle"),
        ("jdbc:postgres1://h/l", None, "did you mean postgres"),
        ("oracle://h/l", None, "there is no database oracle"),
        ("jdbc:postgresql://h/", None, "names no database"),
        ("mysql://h", None, "names no database"),
        ("jdbc:postgresql://h/l?sslmod=require", None, "there is no parameter sslmod: did you mean sslmode"),
        ("jdbc:postgresql://h/l?currentSchema=x", None, "always in the schema headwater"),
        ("jdbc:mysql://h/l?sslMode=sure", None, "there is no value of sslMode called sure"),
        ("jdbc:mysql://h/l?trustCertificateKeyStoreUrl=file:x", None, "write the certificate's file as ssl_ca"),
        ("jdbc:mysql:replication://a,b/l", None, "write jdbc:postgresql://"),
        ("jdbc:mysql://a,b/l", None, "of several hosts the store's is to be named"),
        ("jdbc:postgresql://h:99999/l", None, "the host and its port can't be read"),
        ("jdbc:postgresql://h/l?connectTimeout=soon", None, "isn't one"),
        ("jdbc:sqlite:a.db?mode=ro", None, "takes no parameters"),
        ("sqlite:///a.db?mode=ro", None, "no parameters"),
        ("", None, "write its path"),
    ],
)
def test_what_can_not_be(written: str, driver: str | None, words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_url(written, driver)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "written",
    [
        "jdbc:postgresql://h/l?user=me&password=pw",
        "jdbc:postgresql://me:pw@h/l",
        "postgresql://me:pw@h/l",
        "postgresql://h/l?user=me&password=pw",
        "jdbc:mysql://h/l?password=pw&user=me",
        "mysql://me@h/l?passwd=pw",
    ],
)
def test_user_and_password_are_where_nothing_prints_them(written: str) -> None:
    url = parse_url(written)
    assert (url.username, url.password) == ("me", "pw")
    assert not url.query
    assert printable_url(url) == f"{url.drivername.partition('+')[0]}://me@h/l"
