"""Which Java a program may call while a lens redirects writes: what ends in a plan, which the lens checks, or changes
nothing. An allow-list: of pyspark's own modules by method, and of all other code by Java class.

Whatever a Python program has a JVM do begins with a call by py4j, so this is where ways around SQL are closed: RDDs
that are saved, ML writers, the formats' Java, Hadoop's file systems, sessions that Java makes.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from headwater.lens.model import Refusals


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


ANY: Final[frozenset[str]] = frozenset()
"""Of a class: all of its methods."""
RDD_CALLS: Final = names(
    """
    BytesToString PairwiseRDD PythonPartitioner PythonRDD ResourceProfileBuilder SimplePythonFunction apply
    asJavaPairRDD asJavaRDD cartesian checkpoint cleanShuffleDependencies coalesce collectAndServe
    collectAndServeWithJobGroup confidence countApproxDistinct forName fromRDD getBroadcastThreshold
    getCheckpointFile getResourceProfile getStorageLevel high id isBarrier isCheckpointed isLocallyCheckpointed
    localCheckpoint low map mean meanApprox name partitions persist pythonToJava rdd setName size sumApprox
    toDebugString toLocalIteratorAndServe toSeq toString union unpersist valueOfPair withResources zip add put
    useMemory useDisk useOffHeap deserialized replication
    """
)
CONTEXT_CALLS: Final = names(
    """
    HashMap JavaSparkContext PythonAccumulatorV2 PythonParallelizeServer add addArchive addFile addJobTag apply
    applicationId cancelAllJobs cancelJobGroup cancelJobsWithTag clearJobTags conf connInfo createTempDir
    ddlToJson defaultMinPartitions defaultParallelism emptyRDD get getAbsolutePath getCanonicalName
    getCheckpointDir getClass getJobTags getLocalDir getLocalProperty getPythonAuthSocketTimeout getResult
    getSparkBufferSize id isEmpty isEncryptionEnabled jsonToDDL listArchives listFiles partitions port put
    readRDDFromFile register removeJobTag resources runJob sc secret seqAsJavaList set setCheckpointDir
    setInterruptOnCancel setJobDescription setJobGroup setLocalProperty setLogLevel setProperty size sparkUser
    startTime statusTracker stop toSeq toString uiWebUrl union version
    """
)
"""Without those that read files: they aren't pinned."""
ML_WRITES: Final = names(
    """
    overwrite save saveArray saveAsLibSVMFile saveImpl saveMetadata saveObject saveObjectToLocal saveObjects saveState
    saveSummary saveText saveToLocal toPMML write
    """
)
ALWAYS: Final = frozenset({"toString", "equals", "hashCode", "getClass"})
HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        (
            *("java.lang.String", "java.lang.Integer", "java.lang.Long", "java.lang.Double", "java.lang.Boolean"),
            *("java.lang.Short", "java.lang.Byte", "java.lang.Float", "java.lang.Character", "java.lang.Math"),
            *("java.lang.StringBuilder", "java.lang.Enum", "java.lang.reflect.Array", "java.util.", "java.math."),
            *("java.time.", "java.sql.Timestamp", "java.sql.Date", "java.net.URI", "py4j."),
            *("scala.collection.", "scala.Option", "scala.Some", "scala.None", "scala.Tuple*", "scala.jdk."),
            *("org.apache.log4j.", "org.apache.logging.", "org.slf4j.", "org.apache.hadoop.conf.Configuration"),
            *("org.apache.spark.SparkConf", "org.apache.spark.storage.StorageLevel", "org.apache.spark.sql.Dataset"),
            *("org.apache.spark.sql.classic.Dataset", "org.apache.spark.sql.classic.DataFrame*"),
            *("org.apache.spark.sql.DataFrame*", "org.apache.spark.sql.Column", "org.apache.spark.sql.functions"),
            *("org.apache.spark.sql.RelationalGroupedDataset", "org.apache.spark.sql.classic.RelationalGroupedDataset"),
            *("org.apache.spark.sql.RuntimeConfig", "org.apache.spark.sql.Row", "org.apache.spark.sql.types."),
            *("org.apache.spark.sql.catalyst.plans.", "org.apache.spark.sql.catalyst.expressions."),
            *(
                "org.apache.spark.sql.internal.RuntimeConfigImpl",
                "org.apache.spark.sql.streaming.",
                "io.delta.tables.DeltaMerge*",
            ),
        ),
        ANY,
    ),
    "java.lang.Class": frozenset({"getName", "getSimpleName", "getCanonicalName"}),
    "java.lang.System": frozenset({"currentTimeMillis", "nanoTime", "getProperty", "getenv", "lineSeparator"}),
    "org.apache.hadoop.fs.Path": frozenset({"getName", "getParent", "toUri", "suffix", "depth", "isAbsolute", "new"}),
    "org.apache.spark.api.java.JavaSparkContext": names(
        """
    hadoopConfiguration sc version appName master setLogLevel setJobGroup setJobDescription setLocalProperty
    getLocalProperty statusTracker defaultParallelism getConf startTime sparkUser
    """
    ),
    "org.apache.spark.SparkContext": names(
        """
    applicationId applicationAttemptId appName master uiWebUrl version defaultParallelism defaultMinPartitions
    getConf conf setLogLevel setJobGroup setJobDescription setLocalProperty getLocalProperty
    getExecutorMemoryStatus getExecutorIds sparkUser startTime hadoopConfiguration listFiles listJars isLocal
    isStopped
    """
    ),
    "org.apache.spark.sql.SparkSession": names("sql table read readStream conf catalog version range streams"),
    "org.apache.spark.sql.classic.SparkSession": names("sql table read readStream conf version range streams"),
    "org.apache.spark.sql.execution.QueryExecution": names(
        """
    logical analyzed optimizedPlan sparkPlan executedPlan simpleString explainString stringWithStats
    """
    ),
    "io.delta.tables.DeltaTable": names(
        """
    forName forPath isDeltaTable toDF alias as merge update updateExpr delete history detail
    """
    ),
}
"""What code that isn't pyspark's may call: by class, or a beginning of its name that ends in a dot, which methods.
Constructors are called `new`."""
_BETWEEN: Final = frozenset({"py4j", "_collections_abc", "collections", "functools", "contextlib"})
"""Code that calls Java for somebody else's."""
_OWN: Final = "headwater"
_PYSPARK: Final = "pyspark"
_STREAMS_OF_RDDS: Final = "pyspark.streaming"


class JavaCallGuard:
    """Looks at each call of Java from this process, or from one thread of it, until it is ended."""

    def __init__(self, refusals: Refusals, *, thread: int | None = None) -> None:
        self._refusals = refusals
        self._thread = thread
        self._end: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Look at calls from now on, also through gateways that are made later."""
        client_class: Any = _py4j().GatewayClient
        original = client_class.send_command

        def send_command(client: Any, command: str, *args: Any, **kwargs: Any) -> Any:
            if command[:2] in {"c\n", "i\n"}:
                self._check(command, lambda session: original(client, session), client)
            return original(client, command, *args, **kwargs)

        def end() -> None:
            if client_class.send_command is send_command:
                client_class.send_command = original

        send_command.__wrapped__ = original  # type: ignore[attr-defined]
        client_class.send_command = send_command
        self._end = end

    def end(self) -> None:
        """Look at no call any more."""
        self._end()

    def _check(self, command: str, send: Callable[[str], str], client: Any) -> None:
        module = _calling_module()
        if module.partition(".")[0] == _OWN or self._thread not in {None, threading.get_ident()}:
            return
        lines = command.split("\n", 3)
        method = lines[2] if lines[0] == "c" else "new"
        if module == _PYSPARK or module.startswith(_PYSPARK + "."):
            if not may_call(module, method):
                self._refusals.refuse_unless_allowed(f"the job calls {method} of {_short(module)}", f"java:{method}")
            return
        if method in ALWAYS:
            return
        kind = lines[1].removeprefix("z:")
        if lines[0] == "c" and not lines[1].startswith("z:"):
            kind = _class_of(lines[1], send, client)
        if not is_harmless(kind, method):
            self._refusals.refuse_unless_allowed(
                f"the job calls {kind}.{method} of Java itself", f"java:{kind}.{method}"
            )


def may_call(module: str, method: str) -> bool:
    """Return whether a module of pyspark may call this method of Java."""
    if module.startswith(_STREAMS_OF_RDDS):
        return False
    if module in {"pyspark.rdd", "pyspark.core.rdd"}:
        return method in RDD_CALLS or method == "new"
    if module in {"pyspark.context", "pyspark.core.context"}:
        return method in CONTEXT_CALLS or method == "new"
    if module.startswith(("pyspark.ml", "pyspark.mllib")):
        return method not in ML_WRITES
    return True  # what pyspark.sql does ends in a plan, and the others serve it


def is_harmless(kind: str, method: str) -> bool:
    """Return whether any code may call this method of a class of Java."""
    if kind.startswith("["):
        return True
    return any(_covers(name, kind) and (not methods or method in methods) for name, methods in HARMLESS.items())


def _covers(name: str, kind: str) -> bool:
    """Return whether a name is that of a class, of one that it is in, or the beginning of one."""
    return kind == name or kind.startswith(name.rstrip("*") if name.endswith((".", "*")) else f"{name}$")


def _py4j() -> Any:
    """Return the module of py4j that calls Java, which pyspark brings."""
    from pyspark import java_gateway  # noqa: PLC0415 - the program's own

    gateway: Any = java_gateway
    return sys.modules[gateway.JavaGateway.__module__]


def _calling_module() -> str:
    """Return the name of the module whose code calls Java: the nearest one that doesn't do it for another."""
    frame: Any = inspect.currentframe()
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _BETWEEN and name != __name__:
            return name
        frame = frame.f_back
    return ""


def _class_of(target: str, send: Callable[[str], str], client: Any) -> str:
    """Return the name of an object's class, by calls that aren't looked at."""
    try:
        get_return_value = _py4j().get_return_value
        found: Any = get_return_value(send(f"c\n{target}\ngetClass\ne\n"), client, target, "getClass")
        return str(get_return_value(send(f"c\n{found._target_id}\ngetName\ne\n"), client, target, "getName"))
    except Exception:  # noqa: BLE001 - what isn't known isn't harmless
        return f"an object {target}"


def _short(module: str) -> str:
    return "RDDs" if module.endswith(".rdd") else module
