import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;

/** Prints how replication policies of Kafka (all further arguments) name the internal topics of an alias (the first). */
public class InternalTopics {
    public static void main(String[] arguments) throws Exception {
        String alias = arguments[0];
        for (String policy : List.of(arguments).subList(1, arguments.length)) {
            for (String separator : new String[] {".", "_", "-", ""}) {
                for (String enabled : new String[] {"true", "false"}) {
                    Class<?> type = Class.forName("org.apache.kafka.connect.mirror." + policy);
                    DefaultReplicationPolicy names = (DefaultReplicationPolicy) type.getConstructor().newInstance();
                    names.configure(Map.of(
                            "source.cluster.alias", alias,
                            "replication.policy.separator", separator,
                            "replication.policy.internal.topic.separator.enabled", enabled));
                    System.out.println(policy + " " + separator + " " + enabled + "=" + names.offsetSyncsTopic(alias)
                            + " " + names.checkpointsTopic(alias) + " " + names.heartbeatsTopic());
                }
            }
        }
    }
}
