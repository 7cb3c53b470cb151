"""What says where a store is and who opens it."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from headwater.errors import ConfigurationError, PluginError
from headwater.lineage.store.options import StoreOptions

SEED = {
    "type": "paimon",
    "warehouse": "file:/warehouse",
    "table-lineage": "true",
    "data-lineage": "true",
    "lineage-meta": "jdbc",
    "jdbc.driver": "com.mysql.jdbc.Driver",
    "jdbc.url": "jdbc:mysql://db.example/lineage",
    "jdbc.database": "paimon_cata1",
    "jdbc.username": "me",
    "jdbc.password": "pw",
}


def get_password() -> str:
    return "asked for"


def test_a_catalog_s_options_as_the_proposal_prints_them() -> None:
    options = StoreOptions.of_catalog(SEED)
    target = options.target
    assert (options.lineage_meta, target.words, target.database) == (
        "jdbc",
        "mysql://me@db.example/lineage",
        "paimon_cata1",
    )
    assert target.password is not None
    assert target.password() == "pw"
    assert StoreOptions.at("store.db").target.database == "paimon"


def test_spark_s_configuration() -> None:
    conf = {f"spark.sql.catalog.lake.{key}": value for key, value in SEED.items()}
    conf |= {
        "spark.sql.catalog.lake": "org.example.Catalog",
        "spark.sql.catalog.other.jdbc.url": "x",
        "spark.master": "l",
    }
    assert StoreOptions.from_spark_conf(conf, "lake") == StoreOptions.of_catalog(SEED)
    with pytest.raises(ConfigurationError, match=r"jdbc\.url is missing"):
        StoreOptions.from_spark_conf(conf, "nowhere").target  # noqa: B018


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("jdbc.pasword", r"there is no key spark.sql.catalog.c.jdbc.pasword: did you mean .*c.jdbc.password\?"),
        ("jdbc_url", "did you mean spark.sql.catalog.c.jdbc.url"),
        ("lineage.meta", "did you mean spark.sql.catalog.c.lineage-meta"),
    ],
)
def test_a_key_that_is_nearly_right_is_a_fault(key: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        StoreOptions.from_spark_conf({f"spark.sql.catalog.c.{key}": "secret"}, "c")


@pytest.mark.parametrize(
    "kept", [{"type": "jdbc"}, {"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}, {"metastore": "jdbc"}]
)
def test_what_a_catalog_that_is_kept_by_jdbc_says_of_itself(kept: dict[str, str]) -> None:
    options = {**kept, "uri": "jdbc:postgresql://h/catalog", "jdbc.user": "you", "jdbc.url": "store.db"}
    assert StoreOptions.of_catalog(options).target.words == "store.db"


def test_the_environment() -> None:
    variables = {
        "HEADWATER_STORE": "jdbc:postgresql://h/l",
        "HEADWATER_STORE_JDBC_USERNAME": "me",
        "HEADWATER_STORE_JDBC_PASSWORD_FILE": "/run/secrets/store",
        "HEADWATER_SPOOL_DIR": "/var/spool",
    }
    options = StoreOptions.from_environment(variables)
    assert options.target.words == "postgresql://me@h/l"
    assert options.jdbc_password_file == Path("/run/secrets/store")
    assert StoreOptions.from_environment(variables, "mysql://g/m").target.words == "mysql://me@g/m"
    with pytest.raises(ConfigurationError, match="did you mean HEADWATER_STORE_JDBC_PASSWORD"):
        StoreOptions.from_environment({"HEADWATER_STORE_JDBC_PASWORD": "pw"})


def test_a_password_file_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "password"
    target = StoreOptions.of({"jdbc.url": "mysql://h/l", "jdbc.password-file": str(file)}).target
    assert target.password is not None
    with pytest.raises(ConfigurationError, match=r"jdbc.password-file: .* can't be read: No such file"):
        target.password()
    for password in ("first", " second \N{SNOWMAN}"):
        file.write_text(f"{password}\n", "utf-8")
        assert target.password() == password


def test_a_function_gives_the_password() -> None:
    target = StoreOptions.at("mysql://h/l", password=get_password).target
    assert target.password is not None
    assert target.password() == "asked for"
    named = StoreOptions.of({"jdbc.url": "mysql://h/l", "jdbc.password-callable": "getpass:getuser"}).target
    assert named.password is not None
    assert named.password() == getpass.getuser()
    with pytest.raises(PluginError, match="there is no module nowhere"):
        StoreOptions.of({"jdbc.url": "mysql://h/l", "jdbc.password-callable": "nowhere:f"}).target  # noqa: B018
    wrong = StoreOptions.of({"jdbc.url": "mysql://h/l", "jdbc.password-callable": "os:getpid"}).target
    assert wrong.password is not None
    with pytest.raises(ConfigurationError, match="gave int, and not a text"):
        wrong.password()


@pytest.mark.parametrize(
    "options",
    [
        {"jdbc.url": "mysql://h/l", "jdbc.password": "a", "jdbc.password-file": "b"},
        {"jdbc.url": "mysql://me:a@h/l", "jdbc.password": "b"},
        {"jdbc.url": "mysql://h/l", "jdbc.database": "x; DROP"},
        {"jdbc.url": "mysql://h/l", "jdbc.driver": "oracle.jdbc.OracleDriver"},
    ],
)
def test_what_contradicts_itself(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        StoreOptions.of(options).target  # noqa: B018
