"""`headwater run --class`: a main class in Java, in the JVM of a driver with headwater in it, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.drivers import BIN, Place
from tests.kit.spark.java_programs import jar

pytestmark = [pytest.mark.slow, pytest.mark.spark]
MAIN = """
import org.apache.spark.sql.SparkSession;

public class Main {
    public static void main(String[] arguments) throws Exception {
        SparkSession spark = SparkSession.builder().appName("never seen").getOrCreate();
        spark.sql("CREATE TABLE " + arguments[0] + " (id INT) USING parquet");
        SparkSession other = spark.newSession();
        other.sql("SET spark.headwater.job.name = of another session");
        other.sql("INSERT INTO " + arguments[0] + " VALUES (1)");
        spark.sql("INSERT INTO " + arguments[0] + " VALUES (2), (3)");
        System.out.println(arguments.length + " arguments, " + spark.table(arguments[0]).count() + " rows");
        System.out.flush();
        if (arguments[1].equals("raise")) throw new IllegalStateException("no orders for user=ben password=geheim");
        if (arguments[1].equals("stop")) spark.stop();
        if (arguments[1].startsWith("exit")) System.exit(Integer.parseInt(arguments[1].substring(4)));
        if (arguments[1].equals("halt")) Runtime.getRuntime().halt(7);
    }
}
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Path:
    return jar(tmp_path_factory.mktemp("app"), java_home, Main=MAIN)


@pytest.fixture
def place(tmp_path: Path, java_home: Path) -> Place:
    return Place(tmp_path, java_home, enabled=False)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("end", "code", "status"),
    [
        ("stop", 0, "FINISHED"),
        ("raise", 1, "FAILED"),
        ("exit3", 3, "FAILED"),
    ],
)
def test_a_main_class_and_how_it_ends(place: Place, app: Path, end: str, code: int, status: str) -> None:
    ended = place.run(BIN / "headwater", "run", "--class", "acme.Main", app, "t", end)
    assert ended.code == code, ended.err
    assert ended.out.splitlines()[-1] == "2 arguments, 3 rows", ended.err
    assert ended.statuses() == [f"acme.Main {status}"]
    assert ended.kinds()[-1] == "Closed"
    assert ended.of("Gap") == []
    assert [event["identifier"]["table"] for event in ended.of("CreateTable")] == ["t"]
    committed = ended.of("Committed")
    assert [each["job"]["name"] for each in committed] == ["of another session", "acme.Main.spark_catalog.default.t"]
    assert [each["outputs"][0]["rows"] for each in committed] == [1, 2]
    terminal = ended.of("JobStatusChanged")[-1]
    assert terminal.get("exit_code") == (None if end == "stop" else code)
    if end == "raise":
        assert terminal["error"]["type"] == "java.lang.IllegalStateException"
        assert terminal["error"]["message"].startswith("no orders for ")
        assert "geheim" not in str(ended.events)
        assert 'Exception in thread "main" java.lang.IllegalStateException: no orders' in ended.err
        assert "acme.Main.main" in ended.err, "with the stack, as Java shows it"
        assert "Traceback" not in ended.err


@pytest.mark.long
def test_a_jvm_that_halts_leaves_its_exit_code(place: Place, app: Path) -> None:
    """Nothing in the JVM can see that, so what was on its way may be missing: that is reported."""
    ended = place.run(BIN / "headwater", "run", "--class", "acme.Main", app, "t", "halt")
    assert ended.code == 7, ended.err
    assert ended.statuses() == ["acme.Main FAILED"]
    assert ended.of("JobStatusChanged")[-1]["exit_code"] == 7
    assert ended.of("Gap")


@pytest.mark.long
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["acme.Nobody", "{app}"], "there is no class acme.Nobody in"),
        (["org.apache.spark.sql.SparkSession", "{app}"], "has no public static void main(String[])"),
        (["acme.Main", "nowhere.jar"], "there is no file nowhere.jar"),
    ],
)
def test_what_cannot_be_run_is_one_clear_error(place: Place, app: Path, words: list[str], said: str) -> None:
    given = [word.replace("{app}", str(app)) for word in words]
    ended = place.run(BIN / "headwater", "run", "--class", *given)
    assert ended.code == 78, ended.err
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert ended.events == [], "there was no SparkContext"
