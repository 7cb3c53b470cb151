"""Events to Kafka. An answer means that all in-sync replicas have the records.

config     what may be configured, and what librdkafka gets
cluster    what is asked of a cluster before anything is sent: which one it is, the topic, its limits
sender     one librdkafka producer, from its beginning to its first failure
listener   what the listener bus sees: senders one after the other
errors     librdkafka's errors in words that say what to do
checks     what `headwater doctor` looks at: network, then roundtrip, a record there and back
schemas    the schemas of the events, in a registry if there is one
"""

from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.listener import KafkaFactory, KafkaListener

__all__ = ["KafkaConfig", "KafkaFactory", "KafkaListener"]
