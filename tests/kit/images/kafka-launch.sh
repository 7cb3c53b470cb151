#!/bin/bash
cat > /etc/kafka/log4j2.properties <<LOG
rootLogger.level = info
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d %p %c: %m%n
LOG
exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile=/etc/kafka/log4j2.properties \
  -cp '/opt/kafka/*' kafka.Kafka /etc/kafka/kafka.properties
