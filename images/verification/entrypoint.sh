#!/bin/sh
# Starts what Spark on Kubernetes asks for, `driver` or `executor`; anything else are arguments of the job itself.
# VERIFICATION_HOME is for other places than the image's.
set -eu

home=${VERIFICATION_HOME:-/opt/verification}

# Values of the variables SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 and so on, each on a line.
java_options() {
    env | sort -t_ -k4 -n | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p'
}

case "${1:-}" in
driver)
    shift
    exec "$SPARK_HOME/bin/spark-submit" \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
        --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" \
        --deploy-mode client "$@"
    ;;
executor)
    # An option may hold spaces: it stays one word.
    set --
    while IFS= read -r option; do
        [ -z "$option" ] || set -- "$@" "$option"
    done <<END
$(java_options)
END
    exec "$JAVA_HOME/bin/java" "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
*)
    # Spark makes a folder where it is started, so that must be one which may be written: the present one, not $home.
    # -P: what lies there is no module.
    export PYTHONPATH="$home"
    exec python -P -m spark "$@"
    ;;
esac
