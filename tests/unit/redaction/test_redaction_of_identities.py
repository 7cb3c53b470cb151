"""Names, paths and ids keep every word, lest two become one; only credentials in URLs and known tokens go."""

from __future__ import annotations

import pytest

from headwater.events import DatasetId, Event, JobName, TableName
from headwater.events.base import Model, StringMap
from headwater.events.catalog import CatalogContext, Truncate
from headwater.events.envelope import UNSTAMPED
from headwater.events.jobs import CommitKind, Committed, Input, JobStarted, JobType, Output
from headwater.events.producer import Producer
from headwater.events.redaction import REDACTED, Redactor
from headwater.events.tables import Column, Transform

NAMES = [
    "load token accounts_2023", "load token accounts_2024", "rotate password for-customer-2024a",
    "bearer deliveries_2023", "basic YTpi", "identified by region_7", "key=eu", "secret: plan", "a 'password' 'x'",
    "curl -u joe:daily", "/data/token=eu/orders", "/data/token=us/orders", "/data/password=x/secret=y",
    "s3://lake/auth_token=abc/orders", "s3a://bucket/a?token=eu", "hdfs://nn:8020/user/joe@x/token=1",
    "abfss://container@account.dfs.core.windows.net/key=1", "ASIAPACIFICORDERSALL", "AKIAORDERSOFTHEYEARS2023",
    "SG.customer_orders_europe.daily_aggregates_of_all", "hvs.orders_by_country_and_2023",
    "sk-orders-daily-load-2023-all", "rk_test_orders_of_2023", "xoxo-party-2023", "glrt-statistics-daily-2023",
    "weighs_internationalorders", "eyJ_orders_of_all.eu.2023", "repo:tag@sha256:abcdef",
    "mail joe:letters@example.com", '{"auth-token":{"0":23}}', "oci://sales@ns/t", "oci://hr@ns/t", "sftp://alice@h/t",
    "sftp://bob@h/t", "ssh://git@h/t",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_keeps_all_its_words(name: str) -> None:
    assert Redactor().identity(name) is name


SECRET = "Zq7xV9kLmW3pR"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"https://joe:{SECRET}@host/token=eu", "https://§@host/token=eu"),
        (f"sftp://joe:{SECRET}@host/data", "sftp://joe:§@host/data"),
        (f"oci://sales:{SECRET}@ns/t", "oci://sales:§@ns/t"),
        (f"nats://{SECRET}@host/data", "nats://§@host/data"),
        (f"s3n://AKIAIOSFODNN7EXAMPLE:{SECRET}/+x@bucket/path", "s3n://§@bucket/path"),
        (f"jdbc:oracle:thin:scott/{SECRET}@host:1521:sid", "jdbc:oracle:thin:§@host:1521:sid"),
        ("load_AKIAIOSFODNN7EXAMPLE daily", "load_§ daily"),
        ("/data/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqb2UifQ.c2lnbmF0dXJl/x", "/data/§/x"),
        ("run ghp_" + "aB3" * 12 + " now", "run § now"),
        ("run github_pat_" + "aB3" * 7 + "a_" + "xY9" * 19 + " now", "run § now"),
        ("run glpat-" + "aB3-" * 5 + " now", "run § now"),
        ("run xoxb-12345678901-" + SECRET, "run §"),
        ("run dapi" + "0123456789abcdef" * 2, "run §"),
        ("run AIza" + "Sy0aB" * 7 + " now", "run § now"),
        ("run sk-proj-" + SECRET * 2 + " now", "run § now"),
        ("run hvs." + SECRET * 2 + " now", "run § now"),
        ("-----BEGIN X-----AKIA x-----END X----- job", "§ job"),
        (f"https://a.blob.core.windows.net/c?sv=2020&sig={SECRET * 3}%3D", "https://a.blob.core.windows.net/c?sv=2020&sig=§"),
        (f"https://b.s3.amazonaws.com/k?X-Amz-Signature={SECRET * 5}&x=y", "https://b.s3.amazonaws.com/k?X-Amz-Signature=§&x=y"),
    ],
)  # fmt: skip
def test_credentials_go_from_a_name(name: str, expected: str) -> None:
    redacted = Redactor().identity(name)
    assert redacted == expected.replace("§", REDACTED)
    assert Redactor().identity(redacted) is redacted


def emitted(draft: Event) -> Event:
    (event,) = Producer().emit(draft, lambda _event, _data: None)
    assert event.producer != UNSTAMPED
    return event


def test_jobs_whose_names_differ_behind_a_word_for_a_secret_stay_two() -> None:
    for name in ("load token accounts_2023", "load token accounts_2024"):
        event = emitted(JobStarted(job_type=JobType.BATCH, job=JobName(namespace="key: x", name=name)))
        assert event.job == JobName(namespace="key: x", name=name)


def test_datasets_and_versions_stay_what_they_are() -> None:
    eu, us = (DatasetId(namespace="s3://token=a", name=f"/data/token={zone}/orders") for zone in ("eu", "us"))
    read = Input(dataset=eu, version='{"token":{"0":23}}', branch="password=b", tag="secret: t")
    made = Output(dataset=us, commit_kind=CommitKind.APPEND)
    event = emitted(Committed(barrier=1, inputs=(read,), outputs=(made,), user="auth=me"))
    assert isinstance(event, Committed)
    assert (event.inputs, event.outputs, event.user) == ((read,), (made,), "auth=me")


def test_tables_catalogs_and_partitions_stay_what_they_are() -> None:
    context = CatalogContext(name="token=a", class_name="a.B", configuration=StringMap({"token": "x"}))
    march = StringMap({"token": "eu", "key": "password=3"})
    table = TableName(catalog="token=a", database="secret: d", table="password t_2023")
    event = emitted(Truncate(context=context, identifier=table, partitions=(march,)))
    assert isinstance(event, Truncate)
    assert (event.identifier, event.partitions, event.context.name) == (table, (march,), "token=a")
    assert event.context.configuration == StringMap({"token": REDACTED})  # the value of an option is no identity


def test_columns_keep_their_names_and_lose_the_secrets_of_their_comments() -> None:
    column = Column(name="token=a", type='"long"', comment="password=x1y2z3w4")
    assert Redactor().model(column) == column.model_copy(update={"comment": f"password{REDACTED}"})
    by = Transform(name="bucket", columns=(("token=a", "password: b"),), field_name="secret=c")
    assert Redactor().model(by) is by


def test_a_text_without_the_mark_is_no_identity() -> None:
    class Note(Model):
        text: str

    assert Redactor().model(Note(text="password=x")) == Note(text=f"password{REDACTED}")
