"""What jobs are called, and which name holds."""

from __future__ import annotations

import pytest

from headwater.events.jobs import ParentRun, SparkDetails
from headwater.events.names import JobName
from headwater.listeners.jobs import ApplicationFacts, ApplicationRuns, configuration
from headwater.listeners.jobs.configuration import select_configuration
from headwater.listeners.jobs.parents import parent_run
from headwater.listeners.settings import Settings

NAME, NAMESPACE = "spark.headwater.job.name", "spark.headwater.job.namespace"
SINK = "lake.sales.daily"


def jobs(application: str = "orders", user: str | None = "anna", **settings: str) -> ApplicationRuns:
    facts = ApplicationFacts(id="app-1", name=application, user=user, spark=SparkDetails(version="3.5.7"))
    return ApplicationRuns(facts, Settings.model_validate(settings), lambda event: event)


@pytest.mark.parametrize(
    ("configured", "session", "expected"),
    [
        ({}, {}, JobName(name="orders.lake.sales.daily")),
        ({"job_name": "etl"}, {}, JobName(name="etl")),
        ({"job_name": "etl"}, {NAME: "nightly"}, JobName(name="nightly")),
        ({"job_name": "etl", "job_namespace": "sales"}, {}, JobName(namespace="sales", name="etl")),
        ({"job_namespace": "sales"}, {NAMESPACE: "test"}, JobName(namespace="test", name="orders.lake.sales.daily")),
        ({"job_name": "etl"}, {NAME: " "}, JobName(name="etl")),
        ({"job_name": "etl"}, {NAME: "*********(redacted)"}, JobName(name="etl")),
        ({"job_namespace": "default"}, {}, JobName(name="orders.lake.sales.daily")),
    ],
)
def test_a_session_goes_before_the_configuration_and_that_before_the_default(
    configured: dict[str, str], session: dict[str, str], expected: JobName
) -> None:
    found = jobs(**configured)
    attribution = found.attribution(session, [], SINK)
    assert attribution.job == expected
    assert attribution.run == found.application_run
    assert attribution.parent_job == found.application_job


def test_a_validation_is_in_a_namespace_of_its_own_whatever_is_said() -> None:
    """It finds a way by which a script that is validated could report under its real name."""
    found = jobs(job_name="etl", job_namespace="sales", validating="true")
    job = JobName(namespace="headwater.validation", name="etl")
    assert found.application_job == found.attribution({NAMESPACE: "test"}, [], SINK).job == job
    assert found.open_block("step", "sales", {}).job == JobName(namespace="headwater.validation", name="step")


def test_a_statement_that_writes_nothing_is_the_applications() -> None:
    assert jobs().attribution({}, [], None).job == JobName(name="orders")
    assert jobs(job_name="etl").attribution({}, [], None).job == JobName(name="etl")


@pytest.mark.parametrize(
    "name",
    ["pyspark-shell", "PySparkShell", "spark-shell", "Spark shell", "Zeppelin", "livy-session-12", "Databricks Shell"],
)
def test_what_everybody_is_called_belongs_to_its_user(name: str, caplog: pytest.LogCaptureFixture) -> None:
    found = jobs(name)
    assert found.attribution({}, [], SINK).job.name == f"anna.{name}.{SINK}"
    assert found.application_job.name == f"anna.{name}"
    found.begin()
    assert [name in record.getMessage() and NAME in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("name", ["pyspark-shelly", "orders", "my pyspark app", "livy", "job.py"])
def test_a_name_of_ones_own_stays(name: str, caplog: pytest.LogCaptureFixture) -> None:
    found = jobs(name) if name != "livy" else jobs("livy-orders")
    found.begin()
    assert found.application_job.name in {name, "livy-orders"}
    assert caplog.records == []


def test_a_configured_name_needs_no_user_before_it(caplog: pytest.LogCaptureFixture) -> None:
    found = jobs("pyspark-shell", job_name="etl")
    found.begin()
    assert found.application_job.name == "etl"
    assert caplog.records == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a\nb", "a b"),
        (" a\t\x00 b\u2028", "a b"),
        ("größe, 表", "größe, 表"),
        ("\ud800", "?"),
        ("", ""),
    ],
)
def test_names_are_on_one_line(given: str, expected: str) -> None:
    assert configuration.clean_name(given) == expected


def test_long_names_are_cut_but_stay_apart() -> None:
    one, other = configuration.clean_name("x" * 5_000 + "1"), configuration.clean_name("x" * 5_000 + "2")
    assert len(one) == len(other) == 512
    assert one != other


def test_an_application_without_a_name_has_one() -> None:
    assert jobs("").application_job.name == "anna.unnamed"
    assert jobs("\n", user=None).application_job.name == "unnamed"


def test_what_is_reported_of_the_configuration() -> None:
    found = select_configuration(
        {
            "spark.sql.shuffle.partitions": "8",
            "spark.sql.catalog.lake.uri": "thrift://meta:9083",
            "spark.headwater.job.name": "etl",
            "spark.headwater.kafka.producer.sasl.password": "x",
            "spark.executorEnv.AWS_SECRET": "x",
            "spark.driver.extraJavaOptions": "-Dpassword=x",
            "spark.app.startTime": "1",
            "spark.yarn.keytab": "x",
            "hive.metastore.uris": "x",
        }
    )
    assert set(found) == {"spark.sql.shuffle.partitions", "spark.sql.catalog.lake.uri", "spark.headwater.job.name"}


RUN = "01a1fdcd-88cb-795b-a8bf-3b322e4594fd"
AIRFLOW = {"AIRFLOW_CTX_DAG_ID": "nightly", "AIRFLOW_CTX_TASK_ID": "load", "AIRFLOW_CTX_DAG_RUN_ID": "scheduled__2026"}
OPENLINEAGE = {"OPENLINEAGE_PARENT_ID": f"s3://team/airflow/nightly.load/{RUN}"}
OPENLINEAGE_KEYS = {
    "spark.openlineage.parentJobNamespace": "ns",
    "spark.openlineage.parentJobName": "dag.task",
    "spark.openlineage.parentRunId": RUN,
    "spark.openlineage.rootParentJobName": "dag",
}


@pytest.mark.parametrize(
    ("configured", "environment", "expected"),
    [
        ({}, {}, None),
        ({}, {"AIRFLOW_CTX_DAG_ID": "nightly"}, None),
        (
            {},
            AIRFLOW,
            ParentRun(
                namespace="default",
                name="nightly.load",
                run="scheduled__2026",
                root_namespace="default",
                root_name="nightly",
                root_run="scheduled__2026",
            ),
        ),
        ({}, AIRFLOW | OPENLINEAGE, ParentRun(namespace="s3://team/airflow", name="nightly.load", run=RUN)),
        ({}, {"OPENLINEAGE_PARENT_ID": "nonsense"}, None),
        (
            {},
            {**AIRFLOW, "OPENLINEAGE_NAMESPACE": "prod"},
            ParentRun(
                namespace="prod",
                name="nightly.load",
                run="scheduled__2026",
                root_namespace="prod",
                root_name="nightly",
                root_run="scheduled__2026",
            ),
        ),
        (OPENLINEAGE_KEYS, AIRFLOW | OPENLINEAGE, ParentRun(namespace="ns", name="dag.task", run=RUN, root_name="dag")),
        ({"spark.openlineage.parentJobName": " "}, {}, None),
        ({"parent_name": "flow"} | OPENLINEAGE_KEYS, {}, ParentRun(namespace="default", name="flow")),
        (
            {"parent_name": "flow", "parent_run": "7", "parent_root_name": "all"},
            AIRFLOW | OPENLINEAGE,
            ParentRun(namespace="default", name="flow", run="7", root_name="all"),
        ),
    ],
)
def test_who_started_it(configured: dict[str, str], environment: dict[str, str], expected: ParentRun | None) -> None:
    own = {key: value for key, value in configured.items() if not key.startswith("spark.")}
    assert parent_run(Settings.model_validate(own), configured, environment) == expected
