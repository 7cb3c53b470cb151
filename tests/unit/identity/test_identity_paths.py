"""Paths and URIs by the tables of truth, and what is taken off a path on demand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.events.identity import (
    Environment,
    IdentityError,
    Subset,
    dataset_of_path,
    dataset_of_uri,
    glob_root,
    location_of,
    under_root,
)
from headwater.events.names import DatasetId
from tests.kit.identity_rows import SITE, Row, check, names, rows

PATHS = rows("paths")
URIS = rows("uris")


@pytest.mark.parametrize("row", PATHS, ids=names(PATHS))
def test_path(row: Row) -> None:
    check(row, lambda: dataset_of_path(row.given[0], SITE))


@pytest.mark.parametrize("row", URIS, ids=names(URIS))
def test_uri(row: Row) -> None:
    check(row, lambda: dataset_of_uri(row.given[0], SITE))


FOUND = [row for row in PATHS if row.truth[:2] not in {"! ", "? "}]


@pytest.mark.parametrize("row", FOUND, ids=names(FOUND))
def test_the_location_of_a_dataset_is_that_dataset(row: Row) -> None:
    found = dataset_of_path(row.given[0], SITE)
    assert dataset_of_path(location_of(found), SITE) == found


DEFAULTS = {
    "hdfs://ha": DatasetId(namespace="hdfs://ha", name="/data/a"),
    "hdfs://nn.example": DatasetId(namespace="hdfs://nn.example:8020", name="/data/a"),
    "s3a://bucket": DatasetId(namespace="s3://bucket", name="data/a"),
    "viewfs://mounts/": DatasetId(namespace="viewfs://mounts", name="/data/a"),
    "file:///": DatasetId(namespace="file://driver-1", name="/data/a"),
}


@pytest.mark.parametrize("default", DEFAULTS)
def test_a_bare_path_is_on_the_default_file_system(default: str) -> None:
    assert dataset_of_path("/data/a", replace(SITE, default_filesystem=default)) == DEFAULTS[default]


def test_a_location_without_host_is_the_default_file_systems_if_that_has_its_scheme() -> None:
    environment = replace(SITE, default_filesystem="hdfs://ha")
    assert dataset_of_path("hdfs:///a", environment) == DatasetId(namespace="hdfs://ha", name="/a")
    with pytest.raises(IdentityError, match="host or bucket"):
        dataset_of_path("s3:///a", environment)


def test_a_bare_word_may_be_a_nameservice_while_their_list_is_not_known() -> None:
    environment = replace(SITE, nameservices=None)
    assert dataset_of_path("hdfs://word/a", environment).namespace == "hdfs://word"
    assert dataset_of_path("hdfs://word:8020/a", environment).namespace == "hdfs://word:8020"
    assert dataset_of_path("hdfs://nn.example/a", environment).namespace == "hdfs://nn.example:8020"


def test_a_relative_path_needs_the_working_directory() -> None:
    with pytest.raises(IdentityError, match="working directory"):
        dataset_of_path("a/b", Environment(host="driver-1"))
    with pytest.raises(IdentityError, match="working directory"):
        dataset_of_path("a/b", Environment(host="driver-1", working_directory="x"))
    under = Environment(host="driver-1", working_directory="hdfs://nn.example/user/etl")
    assert dataset_of_path("a/b", under) == DatasetId(namespace="hdfs://nn.example:8020", name="/user/etl/a/b")


def test_dbfs_needs_its_workspace() -> None:
    with pytest.raises(IdentityError, match="workspace"):
        dataset_of_path("dbfs:/a", Environment(host="driver-1"))


def test_two_machines_have_two_local_file_systems() -> None:
    here, there = (dataset_of_path("/tmp/a", Environment(host=host)) for host in ("a", "b"))  # noqa: S108 - a name, no file
    assert here != there


ROOT = DatasetId(namespace="s3://b", name="wh/t")


@pytest.mark.parametrize(
    ("name", "path", "partition"),
    [
        ("wh/t", "", ()),
        ("wh/t/dt=2024-01-01", "dt=2024-01-01", (("dt", "2024-01-01"),)),
        ("wh/t/dt=1/h=2/part-0.parquet", "dt=1/h=2/part-0.parquet", (("dt", "1"), ("h", "2"))),
        ("wh/t/dt=__HIVE_DEFAULT_PARTITION__", "dt=__HIVE_DEFAULT_PARTITION__", (("dt", None),)),
        ("wh/t/ts=10%3A00%2F1", "ts=10%3A00%2F1", (("ts", "10:00/1"),)),
        ("wh/t/c=é", "c=é", (("c", "é"),)),
        ("wh/t/plain/dt=1", "plain/dt=1", ()),
    ],
)
def test_a_part_under_a_known_root(name: str, path: str, partition: tuple[tuple[str, str | None], ...]) -> None:
    found = under_root(DatasetId(namespace="s3://b", name=name), ROOT)
    assert found == Subset(dataset=ROOT, path=path, partition=partition)


@pytest.mark.parametrize(("namespace", "name"), [("s3://b", "wh/t2/dt=1"), ("s3://b", "wh"), ("s3://c", "wh/t/dt=1")])
def test_what_lies_elsewhere_is_no_part(namespace: str, name: str) -> None:
    assert under_root(DatasetId(namespace=namespace, name=name), ROOT) is None


@pytest.mark.parametrize("root", ["s3://b/", "/"])
def test_everything_is_under_the_root_of_its_store(root: str) -> None:
    whole = dataset_of_path(root, SITE)
    part = dataset_of_path(root + "x=1/y", SITE)
    assert under_root(part, whole) == Subset(dataset=whole, path="x=1/y", partition=(("x", "1"),))


@pytest.mark.parametrize(
    ("path", "root", "pattern"),
    [
        ("s3://b/a/b", "s3://b/a/b", None),
        ("s3://b/a/*/c", "s3://b/a/", "*/c"),
        ("s3://b/a/x?.csv", "s3://b/a/", "x?.csv"),
        ("/d/{a,b}/[0-9]", "/d/", "{a,b}/[0-9]"),
        ("/d/a\\*", "/d/", "a\\*"),
        ("*.csv", "", "*.csv"),
    ],
)
def test_a_glob_is_divided_only_on_demand(path: str, root: str, pattern: str | None) -> None:
    assert glob_root(path) == (root, pattern)
