"""Pythons that drivers and executors have on clusters, headwater in a zip, and a standalone cluster on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import venv
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.kit.waiting import until

SPARK_HOME = Path(str(pyspark.__file__)).parent
_ROOT = Path(__file__).parents[3]
_SOURCES = tuple(_ROOT / each / "headwater" for each in ("events", "listeners", "publishers", "consumers"))
_LINE = _ROOT / "listeners" / "headwater" / "listeners" / "hook.pth"
_SITE_PACKAGES = Path(sysconfig.get_path("purelib"))


def make_python(folder: Path, *, with_headwater: bool) -> Path:
    """Make an environment with all that this one has, but headwater only if wanted; return its Python."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    for each in _SITE_PACKAGES.iterdir():
        if "headwater" not in each.name and not (packages / each.name).exists():
            (packages / each.name).symlink_to(each)
    if with_headwater:
        for name, source in _files():
            (packages / name).parent.mkdir(parents=True, exist_ok=True)
            (packages / name).write_bytes(source.read_bytes())
        (packages / "headwater.pth").write_bytes(_LINE.read_bytes())
    return folder / "bin" / "python"


def make_zip(path: Path, *, with_metadata: bool) -> Path:
    """Zip headwater as `zip -r` does: with the directories, without which a namespace package isn't found in it."""
    written: set[Path] = set()
    with zipfile.ZipFile(path, "w") as archive:
        for name, source in _files(with_metadata=with_metadata):
            for folder in reversed(name.parents[:-1]):
                if folder not in written:
                    written.add(folder)
                    archive.writestr(f"{folder}/", "")
            archive.write(source, str(name))
    return path


@contextmanager
def standalone_cluster(folder: Path, java_home: Path) -> Generator[str]:
    """Run a master and a worker with one core; yield the master's URL. Nothing of headwater is on their paths."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    environment = {
        **kept,
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "300m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    spark_class = SPARK_HOME / "bin" / "spark-class"
    place = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    deploy = "org.apache.spark.deploy"
    with _daemon([spark_class, f"{deploy}.master.Master", *place], environment, folder / "master.log") as master:
        started = re.compile(r"Starting Spark master at (spark://\S+)")
        url = until(lambda: started.findall(master.read_text()), "a master")[0]
        command = [spark_class, f"{deploy}.worker.Worker", *place, "--cores", "1", "--memory", "1g", url]
        with _daemon(command, environment, folder / "worker.log") as worker:
            until(lambda: "Successfully registered with master" in worker.read_text(), "a worker")
            yield url


@contextmanager
def _daemon(command: list[str | Path], environment: dict[str, str], log: Path) -> Generator[Path]:
    """Run a process while the block lasts; yield its log."""
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield log
        finally:
            process.terminate()


def _files(*, with_metadata: bool = True) -> Iterator[tuple[Path, Path]]:
    """Yield each file of headwater with its place below site-packages."""
    for root in _SOURCES:
        for each in sorted(root.rglob("*")):
            if each.is_file() and "__pycache__" not in each.parts:
                yield each.relative_to(root.parent), each
    if with_metadata:
        (info,) = _SITE_PACKAGES.glob("headwater-*.dist-info")
        for each in filter(Path.is_file, sorted(info.rglob("*"))):
            yield each.relative_to(_SITE_PACKAGES), each
