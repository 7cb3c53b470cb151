#!/bin/bash
# Each KAFKA_SOME_KEY becomes some.key; testcontainers adds a line that formats the storage.
env | sed -n 's/^KAFKA_//p' | while IFS='=' read -r key value; do
  echo "$(echo "$key" | tr 'A-Z_' 'a-z.')=$value"
done > /etc/kafka/kafka.properties
echo 'log.cleaner.dedupe.buffer.size=8388608' >> /etc/kafka/kafka.properties
