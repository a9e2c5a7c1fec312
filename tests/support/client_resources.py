"""Resources beside mirrors that connect to Kafka, for the rules that judge clients."""

from typing import Any

from tests.support.compliant_resources import NAMESPACE, Sample


def client(shape: str, kind: str, **spec: Any) -> Sample:
    """A KafkaConnect, KafkaConnector or KafkaBridge with this spec."""
    metadata = {"name": "pipes", "namespace": NAMESPACE}
    return Sample(f"kubernetes:{shape}:{kind}", {"metadata": metadata, "spec": spec})
