#!/bin/sh
# Runs the dedicated mirror with the JMX exporter: run.sh [FILE] [arguments of connect-mirror-maker.sh].
# MIRROR_HOME and KAFKA_HOME are for other places than the image's; JMX_EXPORTER_PORT is 9404 unless it is set, and
# LOG_DIR, where Kafka's scripts keep log files, /tmp/logs: their own folder is below /opt/kafka, which is read-only.
set -eu

mirror=${MIRROR_HOME:-/opt/mirror}
file=${1:-$mirror/config/mm2.properties}
[ $# -eq 0 ] || shift

if [ ! -r "$file" ]; then
    echo "mirror: properties file must be readable (got $file). Mount it there, or name it as the first argument." >&2
    exit 2
fi

agent=$mirror/jmx-exporter.jar=${JMX_EXPORTER_PORT:-9404}:$mirror/jmx-rules.yaml
KAFKA_OPTS="${KAFKA_OPTS:+$KAFKA_OPTS }-javaagent:$agent"
LOG_DIR=${LOG_DIR:-/tmp/logs}
export KAFKA_OPTS LOG_DIR
exec "${KAFKA_HOME:-/opt/kafka}/bin/connect-mirror-maker.sh" "$file" "$@"
