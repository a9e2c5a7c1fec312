import java.util.Map;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;

/** Prints which of the topics (arguments) Kafka's replication policy takes for internal. */
public class InternalNames {
    public static void main(String[] topics) {
        DefaultReplicationPolicy policy = new DefaultReplicationPolicy();
        policy.configure(Map.of("source.cluster.alias", "a"));
        for (String topic : topics) {
            System.out.println(topic + "=" + policy.isInternalTopic(topic));
        }
    }
}
