import java.util.Map;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;

/** Prints how a replication policy of Kafka (first argument) names the internal topics of an alias (second one). */
public class InternalTopics {
    public static void main(String[] arguments) throws Exception {
        Class<?> policy = Class.forName("org.apache.kafka.connect.mirror." + arguments[0]);
        for (String separator : new String[] {".", "_", "-", ""}) {
            for (String enabled : new String[] {"true", "false"}) {
                DefaultReplicationPolicy names = (DefaultReplicationPolicy) policy.getConstructor().newInstance();
                names.configure(Map.of(
                        "source.cluster.alias", arguments[1],
                        "replication.policy.separator", separator,
                        "replication.policy.internal.topic.separator.enabled", enabled));
                System.out.println(separator + " " + enabled + "=" + names.offsetSyncsTopic(arguments[1]) + " "
                        + names.checkpointsTopic(arguments[1]) + " " + names.heartbeatsTopic());
            }
        }
    }
}
