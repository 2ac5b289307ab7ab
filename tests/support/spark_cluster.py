"""Real Spark servers on loopback, started from the pyspark package: a standalone master with workers, and Connect."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from lockgate.running.java import find_java

SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
START_TIMEOUT = 120.0

# For short work on few cores: the quick compiler only, and a collector without threads of its own.
SMALL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_POLL = 0.05

# The servers live in another time zone than the tests, and their Python has no lockgate: a cluster's machines need
# neither our zone nor our package.
_ZONE = "Pacific/Auckland"
_WITHOUT_LOCKGATE = """import sys
from pathlib import Path

sys.path[:] = [p for p in sys.path if not (Path(p) / "lockgate" / "__init__.py").is_file()]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
"""


@dataclass
class Server:
    """A process of Spark with its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_for(self, pattern: str, times: int = 1) -> re.Match[str]:
        """The first match in the log, once there are `times` of them."""
        give_up = time.monotonic() + START_TIMEOUT
        while True:
            alive = self.process.poll() is None  # before reading, so that last words are read
            found = list(re.finditer(pattern, self.said()))
            if len(found) >= times:
                return found[0]
            if not alive:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.said()[-4000:]}")
            if time.monotonic() > give_up:
                raise TimeoutError(f"no {pattern!r} in {START_TIMEOUT:g} s:\n{self.said()[-4000:]}")
            time.sleep(_POLL)

    def stop(self) -> None:
        """End the process and all it started: the executors of a worker are in its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Cluster:
    """A standalone master and its workers."""

    url: str
    master: Server
    workers: list[Server] = field(default_factory=list)


@contextmanager
def standalone_cluster(folder: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """A master with workers of one core each. The system chooses the ports; the logs tell them."""
    with ExitStack() as stack:
        arguments = ["org.apache.spark.deploy.master.Master", "--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(_server(folder, "master", "spark-class", arguments))
        url = master.wait_for(r"Starting Spark master at (spark://\S+)")[1]
        cluster = Cluster(url, master)
        for number in range(workers):
            name = f"worker-{number}"
            arguments = ["org.apache.spark.deploy.worker.Worker", "--host", LOOPBACK, "--port", "0"]
            arguments += ["--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(folder / name), url]
            cluster.workers.append(stack.enter_context(_server(folder, name, "spark-class", arguments)))
        master.wait_for(r"Registering worker ", times=workers)
        yield cluster


@contextmanager
def connect_server(folder: Path, *, with_lockgate: bool = False) -> Iterator[str]:
    """A Spark Connect server on two local cores; gives its sc:// address."""
    conf = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
    }
    arguments = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    arguments += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    with _server(folder, "connect", "spark-submit", arguments, with_lockgate=with_lockgate) as server:
        port = server.wait_for(r"Spark Connect server started at: \S*?:(\d+)")[1]
        yield f"sc://{LOOPBACK}:{port}"


@contextmanager
def _server(
    folder: Path, name: str, program: str, arguments: list[str], *, with_lockgate: bool = False
) -> Iterator[Server]:
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=_environment(folder, with_lockgate),
            start_new_session=True,
        )
    server = Server(process, log)
    try:
        yield server
    finally:
        server.stop()


def _environment(folder: Path, with_lockgate: bool) -> dict[str, str]:
    python = folder / "python"
    python.mkdir(exist_ok=True)
    (python / "sitecustomize.py").write_text("" if with_lockgate else _WITHOUT_LOCKGATE)
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **ours,
        "JAVA_HOME": str(find_java().home),
        "JDK_JAVA_OPTIONS": SMALL_JAVA,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # it has a port of its own, and a fixed one
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(python),
        "TZ": _ZONE,
    }
