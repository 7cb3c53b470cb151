#!/bin/sh
exec java -cp '/opt/kafka/*' kafka.tools.StorageTool "$@"
