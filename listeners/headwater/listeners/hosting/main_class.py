"""A main class of Java or Scala, in the JVM of a driver with headwater in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, Final, NoReturn

from headwater.events.jobs import JobStatus
from headwater.listeners.capture.jvm import root_message
from headwater.listeners.hosting.driver import HostingError, Launch, end_of_jvm, host, make_session, start_jvm, stop
from headwater.listeners.installation.contexts import contexts
from headwater.listeners.jobs import FINISHED, RunEnd
from headwater.listeners.jobs.run_end import make_error_details

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNNER_SOURCE: Final = "java/Main.java"
_CHECK_MILLIS: Final = 500
_EXIT_SECONDS: Final = 60.0


@dataclass(frozen=True)
class MainClass:
    """What `com.acme.Main app.jar argument…` means."""

    name: str
    jar: str
    arguments: Sequence[str] = ()

    def check(self) -> None:
        """A HostingError if there is no such file."""
        if not Path(self.jar).is_file():
            raise HostingError(
                f"there is no file {self.jar}: say the jar that {self.name} is in, and then its arguments"
            )


def run_class(main: MainClass, launch: Launch) -> NoReturn:
    """Run it as spark-submit does in client mode, and end as it ends. The SparkContext is there before it."""
    main.check()
    host(lambda: _run(main), launch)


def _run(main: MainClass) -> RunEnd:
    jvm = start_jvm()
    jar = Path(main.jar).resolve()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(jvm.java.net.URL(jar.as_uri()))
    found = _find_main_method(main, jvm, loader)
    spark = make_session(main.name)
    context: Any = spark.sparkContext
    context._jsc.sc().addJar(jar.as_uri())
    arguments = context._gateway.new_array(jvm.java.lang.String, len(main.arguments))
    for place, argument in enumerate(main.arguments):
        arguments[place] = argument
    runner = _compile_runner(context, found, arguments, loader)
    runner.start()
    return _wait(runner, spark)


def _find_main_method(main: MainClass, jvm: Any, loader: Any) -> Any:
    try:
        found = loader.loadClass(main.name)
    except Exception as e:
        raise HostingError(f"there is no class {main.name} in {main.jar}: {root_message(e)}") from e
    for method in found.getMethods():
        if method.getName() == "main" and jvm.java.lang.reflect.Modifier.isStatic(method.getModifiers()):
            parameters = method.getParameterTypes()
            if len(parameters) == 1 and parameters[0].getName() == "[Ljava.lang.String;":
                return method
    raise HostingError(f"{main.name} has no public static void main(String[])")


def _compile_runner(context: Any, main: Any, arguments: Any, loader: Any) -> Any:
    """Compile the runner in the JVM where it runs, as capture compiles its classes."""
    jvm = context._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(files("headwater.listeners.hosting").joinpath(_RUNNER_SOURCE).read_text(encoding="utf-8"))
    made = compiler.getClassLoader().loadClass("headwater.hosting.Main").getConstructors()[0]
    given = context._gateway.new_array(jvm.java.lang.Object, 3)
    given[0], given[1], given[2] = main, arguments, loader
    return made.newInstance(given)


def _wait(runner: Any, spark: SparkSession) -> RunEnd:
    context: Any = spark.sparkContext
    process = context._gateway.proc
    try:
        while (state := runner.watch(_CHECK_MILLIS)) == "running":
            pass
        if state == "exiting":
            contexts.context_stops(context)
            runner.release()
    except Exception:  # noqa: BLE001 - the JVM is gone, in whatever way py4j says that
        state = "exiting"
    if state == "exiting":
        return _end_of_exit(process)
    ending = FINISHED if state == "returned" else _end_of_exception(runner)
    runner.release()
    stop(spark)
    return ending


def _end_of_exit(process: Any) -> RunEnd:
    """`System.exit`, or a JVM that died: its exit code is known when it is gone."""
    try:
        return end_of_jvm(process.wait(_EXIT_SECONDS))
    except TimeoutExpired:
        return end_of_jvm(None)


def _end_of_exception(runner: Any) -> RunEnd:
    error = runner.thrown()
    details = make_error_details(str(error.getClass().getName()), str(error.getMessage() or ""))
    return RunEnd(status=JobStatus.FAILED, exit_code=1, details_without_error=details)
