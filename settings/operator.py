"""How the operator gets into the cluster's namespace: by OLM, or it is there already."""

from typing import Literal

from settings.model import Model, Seconds
from settings.names import Label


class Operator(Model):
    """An OLM subscription; with `install: none` nothing is created and the operator must be there."""

    install: Literal["olm", "none"] = "olm"
    package: Label = "strimzi-kafka-operator"
    channel: str = "stable"
    source: Label = "operatorhubio-catalog"
    source_namespace: Label = "olm"
    approval: Literal["Automatic", "Manual"] = "Automatic"
    starting_csv: str | None = None
    ready_seconds: Seconds = 600
