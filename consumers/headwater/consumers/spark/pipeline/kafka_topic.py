"""On the driver: a topic of Kafka, whose brokers are asked through Spark's own Kafka client.

So one set of settings serves both, with Kafka's Java names, and no other client has to be set up.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.consumers.replay.ranges import BusRange
from headwater.consumers.spark.session import MissingSparkError
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.lineage.bulk import BusPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG: Final = logging.getLogger(__name__)
_TIMEOUT_MILLIS: Final = 30_000
_TIME_SETTING: Final = "message.timestamp.type"
_BROKERS_TIME: Final = "LogAppendTime"


class TopicRecreated(HeadwaterError):  # noqa: N818 - no fault
    """The topic was deleted and made again while it was read. No offsets were moved."""

    def __init__(self, name: str, seen: Mapping[BusPartition, BusRange]) -> None:
        super().__init__(f"{name} was deleted and made again: the new topic is read from its beginning")
        self.seen = seen
        """What the former topic had when it was last asked."""


class SparkKafkaTopic:
    """Asks brokers about one topic. A TransientError means that no broker answers, or that there is no topic yet."""

    def __init__(self, spark: SparkSession, settings: Mapping[str, str], name: str) -> None:
        """`settings` are those of Kafka's Java client, without the prefix `kafka.`."""
        self._jvm: Any = getattr(spark, "_jvm", None)
        if self._jvm is None:
            raise MissingSparkError("a pipeline runs in the driver itself, not over Spark Connect: submit it there")
        require_kafka(spark, self._jvm)
        self.name: Final = name
        self._seen: dict[BusPartition, BusRange] = {}
        self._former: set[str] = set()
        properties = self._jvm.java.util.Properties()
        for key, value in {"default.api.timeout.ms": str(_TIMEOUT_MILLIS), **settings}.items():
            properties.setProperty(key, value)
        try:
            self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        except Exception as e:
            raise ConfigurationError(f"the settings of the Kafka client: {_java_words(e)}") from e

    def ranges(self) -> Mapping[BusPartition, BusRange]:
        """Return the offsets that can be read now. Raises TopicRecreated once if the topic has another id."""
        partitions = self._describe()
        seen, self._seen = self._seen, {}
        if seen and {*seen}.isdisjoint(partitions):
            self._former.add(next(iter(seen)).topic)
            raise TopicRecreated(self.name, seen)
        if any(each.topic in self._former for each in partitions):
            raise TransientError(f"{self.name}: not all brokers know yet that it was deleted and made again")
        if not seen:
            self._check_times()
        first, end = (self._offsets(partitions, each) for each in ("earliest", "latest"))
        self._seen = {each: BusRange(first[each], end[each]) for each in partitions}
        return self._seen

    def _describe(self) -> list[BusPartition]:
        """Return the topic's partitions. One that was deleted and made again has another id."""
        names = self._jvm.java.util.Collections.singletonList(self.name)
        cluster = self._ask(lambda: self._admin.describeCluster().clusterId().get())
        found = self._ask(lambda: self._admin.describeTopics(names).allTopicNames().get()).get(self.name)
        numbers = sorted(each.partition() for each in found.partitions())
        return [BusPartition(str(cluster), found.topicId().toString(), number) for number in numbers]

    def _check_times(self) -> None:
        """Raise a ConfigurationError where producers set the times of records.

        Spark's Kafka source ends at a time that has no microseconds of 64 bits, on each attempt anew. So one record of
        anybody who may write there would stop the pipeline for good. Where the settings can't be seen, it goes on.
        """
        config, jvm = self._jvm.org.apache.kafka.common.config, self._jvm
        resource = config.ConfigResource(config.ConfigResource.Type.TOPIC, self.name)
        try:
            found = self._admin.describeConfigs(jvm.java.util.Collections.singleton(resource)).all().get()
        except Exception as e:  # noqa: BLE001 - py4j's, for any error of Java: mostly a right that is missing
            _LOG.debug("the settings of %s can't be seen: %s", self.name, _java_words(e))
            return
        kind = found.get(resource).get(_TIME_SETTING).value()
        if kind != _BROKERS_TIME:
            raise ConfigurationError(
                f"{self.name} has {_TIME_SETTING}={kind}: a strange time in one record would stop Spark for good. Set "
                f"it to {_BROKERS_TIME} (kafka-configs.sh --alter --topic {self.name} --add-config "
                f"{_TIME_SETTING}={_BROKERS_TIME}), or fill the store by `headwater writer run`"
            )

    def close(self) -> None:
        self._admin.close()

    def _offsets(self, partitions: Sequence[BusPartition], which: str) -> dict[BusPartition, int]:
        asked, common = self._jvm.java.util.HashMap(), self._jvm.org.apache.kafka.common
        spec = getattr(self._jvm.org.apache.kafka.clients.admin.OffsetSpec, which)()
        for each in partitions:
            asked.put(common.TopicPartition(self.name, each.number), spec)
        committed = common.IsolationLevel.READ_COMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(committed)
        found = self._ask(lambda: self._admin.listOffsets(asked, options).all().get())
        offsets = {each.getKey().partition(): each.getValue().offset() for each in found.entrySet()}
        return {each: offsets[each.number] for each in partitions}

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except Exception as e:
            words = _java_words(e)
            if "UnknownTopicOrPartition" in words:
                raise TransientError(f"there is no topic {self.name} yet: the first driver makes it") from e
            raise TransientError(f"{self.name}: {words}") from e


def require_kafka(spark: SparkSession, jvm: Any) -> None:
    """Raise a MissingSparkError that names the package which this session lacks."""
    is_there = type(jvm.org.apache.spark.sql.kafka010.KafkaSourceProvider).__name__ == "JavaClass"
    if not is_there:
        package = kafka_package(spark.version)
        raise MissingSparkError(
            f"this Spark session has no Kafka source: start it with --packages {package} (or with the conf "
            f"spark.jars.packages={package})"
        )


def kafka_package(version: str) -> str:
    """Return the package of Spark's Kafka source for a version of Spark."""
    return f"org.apache.spark:spark-sql-kafka-0-10_{'2.12' if version.startswith('3') else '2.13'}:{version}"


def _java_words(error: Exception) -> str:
    """Return the message of the innermost Java exception."""
    java: Any = getattr(error, "java_exception", None)
    if java is None:
        return str(error)
    while java.getCause() is not None:
        java = java.getCause()
    return str(java.toString())
