"""`python -m tests.kit.containers COMMAND …` runs a command with HEADWATER_SERVERS=containers, an engine and images.

The engine is one that answers; else one is started for the time of the command, which takes root and Debian's
`docker.io`. Images are those that HEADWATER_KAFKA_IMAGE … name; else all are built from Debian's packages
(tests/kit/images/Dockerfile), on a base of `debootstrap`, because not every machine reaches a registry of images. Built
once, they are in the cache. Ports are published on 127.0.0.1 only, and the firewall isn't touched.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import fastavro
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

from headwater.local.cache import cached_directory
from headwater.local.containers import IMAGES, docker_answers
from headwater.local.errors import DamagedDownloadError
from headwater.local.kafka import VERSION, kafka_libraries
from tests.kit.waiting import until

FILES: Final = Path(__file__).with_name("images")
REGISTRY: Final = Path(__file__).with_name("registry_server.py")
REGISTRY_IMAGE: Final = "HEADWATER_REGISTRY_IMAGE"
BASE: Final = "headwater-base:bookworm"
TAG: Final = "8.1.0"
"""testcontainers reads from the tag of Kafka's image whether the broker knows KRaft."""
TARGETS: Final = {**{name: name.split("_")[1].lower() for name in IMAGES}, REGISTRY_IMAGE: "registry"}
"""By the variable that names the image: what the Dockerfile calls it."""
OURS: Final = {name: f"headwater-{target}:{TAG}" for name, target in TARGETS.items()}
PROGRAMS: Final = ("dockerd", "debootstrap")
PACKAGES: Final = ("docker.io", "debootstrap")


PUBLISHED: Final = {"TESTCONTAINERS_CONNECTION_MODE": "docker_host", "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1"}
"""Where ports of containers of our engine are. testcontainers looks at a bridge, if this is a container itself."""


class NoEngineError(Exception):
    """Says why there is no Docker engine here, and what to do."""


@contextmanager
def docker_engine() -> Generator[None, None, None]:
    """Let DOCKER_HOST name an engine that answers, one of our own if there is no other."""
    if docker_answers():
        yield
        return
    install_programs()
    folder = Path(tempfile.mkdtemp(prefix="headwater-docker-"))
    address = f"unix://{folder}/socket"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command_of_engine(folder, address), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    os.environ |= {"DOCKER_HOST": address, **PUBLISHED}
    try:
        until(lambda: process.poll() is not None or docker_answers(), "a Docker engine", pause=0.2)
        if process.poll() is not None:
            lines = (folder / "log").read_text(errors="replace").splitlines()[-10:]
            raise NoEngineError("the Docker engine can't run here: " + "\n".join(lines))
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)
        netns = ["umount", str(folder / "exec" / "netns" / "default")]  # which it leaves mounted now and then
        subprocess.run(netns, stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(folder)


def command_of_engine(folder: Path, address: str) -> list[str]:
    """All it writes is in the folder; ports are published by its own proxy, on loopback."""
    paths = [f"--data-root={folder}/data", f"--exec-root={folder}/exec", f"--pidfile={folder}/pid"]
    network = ["--ip=127.0.0.1", "--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false"]
    return ["dockerd", f"--host={address}", *paths, *network]


def install_programs() -> None:
    """Find the programs, install them in CI where that can be done, or say what to do."""
    if os.geteuid() != 0:
        raise NoEngineError("no Docker engine answers: start one, or run this as root where docker.io is installed")
    if all(map(shutil.which, PROGRAMS)):
        return
    if not (os.environ.get("CI") and shutil.which("apt-get")):
        raise NoEngineError(f"no Docker engine answers: start one, or apt-get install {' '.join(PACKAGES)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=quiet, check=True)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES]
    subprocess.run(install, env=quiet, check=True)


def images() -> Mapping[str, str]:
    """Return the variables that name images which the engine has: those of the environment, or ours."""
    if given := {name: os.environ[name] for name in TARGETS if os.environ.get(name)}:
        return given
    saved = cached_directory("server-images", build_images, check=check_digest)
    run_docker("load", "--quiet", "--input", saved / "images.tar")
    return OURS


def check_digest(place: Path) -> None:
    """Have images built again that were built from something else."""
    if (place / "digest").read_text() != digest():
        raise DamagedDownloadError("the images were built from other files")


def digest() -> str:
    """Of what images are built from."""
    content = hashlib.sha256(f"{VERSION} {fastavro.__version__}".encode())
    for path in [*sorted(FILES.iterdir()), REGISTRY]:
        content.update(path.read_bytes())
    return content.hexdigest()


def build_images(place: Path) -> None:
    """Save all images into one file of this directory."""
    (place / "digest").write_text(digest())
    with tempfile.TemporaryDirectory(prefix="headwater-images-") as folder:
        import_base_system(Path(folder, "base"))
        context = build_context(Path(folder, "context"))
        for variable, image in OURS.items():
            run_docker("build", "--network=host", f"--target={TARGETS[variable]}", f"--tag={image}", context)
        run_docker("save", "--output", place / "images.tar", *OURS.values())


def import_base_system(folder: Path) -> None:
    """Debian's smallest system as an image."""
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(folder)], stdout=sys.stderr, check=True)
    with subprocess.Popen(["tar", "-C", str(folder), "-c", "."], stdout=subprocess.PIPE) as tar:
        run_docker("import", "-", BASE, stdin=tar.stdout)
    assert tar.returncode == 0


@contextmanager
def registry_container() -> Generator[str, None, None]:
    """The URL of the tests' schema registry in a container."""
    container = DockerContainer(os.environ[REGISTRY_IMAGE]).with_exposed_ports(8081)
    with container.waiting_for(HttpWaitStrategy(8081, "/subjects")):
        yield f"http://{container.get_container_host_ip()}:{container.get_exposed_port(8081)}"


def run_docker(*words: str | Path, stdin: IO[bytes] | int | None = subprocess.DEVNULL) -> None:
    """Run Docker's client; what it says goes where errors go, as a build of minutes should show."""
    env = {**os.environ, "DOCKER_BUILDKIT": "0"}  # the builder that every engine has
    subprocess.run(["docker", *map(str, words)], env=env, stdin=stdin, stdout=sys.stderr, check=True)


def build_context(folder: Path) -> Path:
    """What the Dockerfile copies: its scripts, the broker's jars, and the registry of the tests."""
    shutil.copytree(FILES, folder)
    shutil.copytree(kafka_libraries(), folder / "kafka")
    (folder / "registry").mkdir()
    shutil.copy(REGISTRY, folder / "registry" / "registry_server.py")
    package = Path(fastavro.__file__).parent  # without what is compiled for one Python only
    shutil.copytree(package, folder / "registry" / "fastavro", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return folder


def main(command: list[str]) -> int:
    """Run the command with an engine and images; return its status."""
    try:
        with docker_engine():
            # A reaper would be one more image; the engine ends with its containers, and fixtures stop their own.
            ours = {"HEADWATER_SERVERS": "containers", "TESTCONTAINERS_RYUK_DISABLED": "true", **images()}
            return subprocess.run(command, env={**os.environ, **ours}, check=False).returncode
    except NoEngineError as e:
        print(e, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
