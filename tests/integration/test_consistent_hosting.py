"""Consistent reads in sessions of servers, whose clients have no Python in the driver: Connect, and JDBC in Java."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from headwater.lens.consistent import BRANCH_VERSIONS
from headwater.lineage.store import open_store
from tests.kit.drivers import PYTHON, SECONDS, Place
from tests.kit.spark.driver import ICEBERG
from tests.kit.spark.hosting import CLIENT, Served, configure, serving
from tests.kit.spark.java_programs import jar, java
from tests.kit.spark.versions import MAJOR

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.long, pytest.mark.needs("iceberg")]
CONNECT = () if MAJOR >= 4 else (f"org.apache.spark:spark-connect_2.12:{version('pyspark')}",)
COPY = "INSERT OVERWRITE ice.shop.{} SELECT * FROM ice.shop.a"
MADE = (
    "CREATE DATABASE ice.shop",
    *(f"CREATE TABLE ice.shop.{name} (id INT) USING iceberg" for name in "abc"),
    "INSERT INTO ice.shop.a VALUES (1)",
    COPY.format("b"),
    COPY.format("c"),
    "INSERT INTO ice.shop.a VALUES (2)",
    COPY.format("b"),
)
"""Afterwards `b` is a version ahead of `c`."""
ALONE = "SELECT count(*) FROM ice.shop.b b FULL JOIN ice.shop.c c USING (id) WHERE b.id IS NULL OR c.id IS NULL"
ON = ("SET spark.headwater.read.consistent = true", "SET spark.headwater.read.consistent.otherwise = wait 60s")
"""What the tables contain comes into the store some time after it was written."""
BRANCHED = ("ALTER TABLE ice.shop.b CREATE BRANCH fix", "ALTER TABLE ice.shop.b CREATE TAG eod")
SNAPSHOT = "SELECT id FROM ice.shop.b VERSION AS OF 'fix.eod' ORDER BY id"
READER = """
import java.sql.*;

public class Reader {
    public static void main(String[] words) throws Exception {
        Class.forName("org.apache.hive.jdbc.HiveDriver");
        Connection connection = DriverManager.getConnection(words[0], "reader", "");
        Statement statement = connection.createStatement();
        for (int i = 1; i < words.length; i++) {
            try {
                if (!statement.execute(words[i])) { System.out.println("ok"); continue; }
                ResultSet rows = statement.getResultSet();
                StringBuilder text = new StringBuilder();
                while (rows.next()) text.append(text.length() == 0 ? "" : ", ").append(rows.getString(1));
                System.out.println(text.toString().replace("\\n", " | "));
            } catch (SQLException e) {
                System.out.println("error " + e.getMessage().split("\\n")[0]);
            }
        }
        connection.close();
    }
}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Place:
    folder = tmp_path_factory.mktemp("consistent")
    place = Place(folder, java_home, enabled=False)
    open_store(str(folder / "store.db"), create=True).close()
    conf = {
        **ICEBERG.conf,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.headwater.listeners": "jdbc",
        "spark.headwater.jdbc.url": f"jdbc:sqlite:{folder / 'store.db'}",
        "spark.headwater.read.consistent": "false",
    }
    configure(place, (*ICEBERG.packages, *CONNECT), conf)
    return place


def by_jdbc(place: Place, served: Served, *statements: str) -> list[str]:
    """What a Java program reads, a line for each statement."""
    home = Path(place.environment["JAVA_HOME"])
    folder = place.folder / "client"
    if not folder.exists():
        folder.mkdir()
        jar(folder, home, Reader=READER)
    command = java(home, "acme.Reader", served.address, *statements)
    at = command.index("-cp") + 1
    command[at] = f"{folder / 'app.jar'}:{command[at]}"
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    return ended.stdout.splitlines()


def by_connect(place: Place, served: Served, *statements: str) -> list[object]:
    lines = "\n".join(json.dumps({"sql": each}) for each in statements) + "\n"
    command = [PYTHON, "-W", "ignore", str(CLIENT), f"sc://127.0.0.1:{served.port}/;user_id=reader"]
    ended = subprocess.run(command, input=lines, check=True, capture_output=True, text=True, timeout=SECONDS)
    answers = [json.loads(line) for line in ended.stdout.splitlines()[1:]]
    return [each.get("rows", each.get("error")) for each in answers]


def is_made(place: Place) -> bool:
    """Whether another test, in whichever order they come, has made the tables."""
    return (place.folder / "ice" / "shop").exists()


def test_sessions_of_the_thrift_server(place: Place) -> None:
    """Fails if a session that the JVM makes has no rule, or a statement waits for a Python that isn't there."""
    with serving(place, "--thrift") as served:
        if not is_made(place):
            assert "error" not in " ".join(by_jdbc(place, served, *MADE))
        both = by_jdbc(place, served, ALONE, *ON, ALONE, f"EXPLAIN {ALONE}")
        assert both[0] == "1"
        assert both[3] == "0"
        assert "== Consistent Reads == | ice.shop.b VERSION AS OF" in both[4]
        assert by_jdbc(place, served, ALONE) == ["1"]
        refused = by_jdbc(
            place,
            served,
            ON[0],
            "CREATE TABLE plain USING parquet AS SELECT 1 AS id",
            "SELECT count(*) FROM plain JOIN ice.shop.b USING (id)",
        )
        assert "no consistent versions of" in refused[-1]


def test_sessions_of_spark_connect(place: Place) -> None:
    """Fails if a session that the JVM makes has no rule; a client's DataFrames come as one plan."""
    with serving(place, "--connect") as served:
        if not is_made(place):
            assert by_connect(place, served, *MADE)[-1] == []
        found = by_connect(place, served, ALONE, *ON, ALONE)
        assert found[0] == [[1]]
        assert found[-1] == [[0]]
        assert by_connect(place, served, ALONE) == [[[1]]]
        found = by_connect(place, served, *BRANCHED, SNAPSHOT, f"SET {BRANCH_VERSIONS} = true", SNAPSHOT)
        assert isinstance(found[-3], str), "an error, before the setting"
        assert found[-1] == [[1], [2]], "a snapshot that is named by its branch"
