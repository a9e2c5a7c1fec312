"""How the operator gets into the cluster's namespace: by OLM, from its release's YAML, or it is there already."""

from typing import Annotated, Literal

from pydantic import Field

from settings.model import Model, Seconds
from settings.names import Label
from settings.platform import Platform


class Catalog(Model):
    """A CatalogSource that this stack makes; `image` is the index with its tag or digest."""

    image: str
    display_name: str = "Kafka operators"
    publisher: str = "platform"
    poll_minutes: Annotated[int, Field(ge=1, le=10_080)] = 45


class Package(Model):
    """What a Subscription asks OLM for."""

    name: str
    channel: str
    source: str
    source_namespace: str


_OPERATOR_HUB = Package(
    name="strimzi-kafka-operator", channel="stable", source="operatorhubio-catalog", source_namespace="olm"
)
_COMMUNITY = _OPERATOR_HUB.model_copy(
    update={"source": "community-operators", "source_namespace": "openshift-marketplace"}
)
_IBM = Package(
    name="ibm-eventstreams", channel="v3.0", source="ibm-operator-catalog", source_namespace="openshift-marketplace"
)


class Operator(Model):
    """The operator's installation and what it watches; with `install: none` nothing is created.

    It watches the cluster's namespace, or those in `watchedNamespaces`, or with `allNamespaces` every one.
    """

    install: Literal["olm", "yaml", "none"] = "olm"
    namespace: Label | None = None
    watched_namespaces: tuple[Label, ...] = ()
    create_namespaces: bool = False
    all_namespaces: bool = False
    package: Label | None = None
    channel: str | None = None
    source: Label | None = None
    source_namespace: Label | None = None
    catalog: Catalog | None = None
    approval: Literal["Automatic", "Manual"] = "Automatic"
    starting_csv: str | None = None
    folder: str | None = None
    ready_seconds: Seconds = 600

    def home(self, cluster_namespace: str) -> str:
        """Namespace in which the operator runs."""
        return self.namespace or cluster_namespace

    def watched(self, cluster_namespace: str) -> tuple[str, ...]:
        """Namespaces that the operator watches, its own first unless it has none to watch; empty means all."""
        if self.all_namespaces:
            return ()
        return tuple(dict.fromkeys(self.watched_namespaces or (cluster_namespace,)))

    def subscription(self, platform: Platform) -> Package:
        """The package with what is not set taken from where the platform's operator is usually published."""
        if platform.type == "event-streams":
            usual = _IBM
        else:
            usual = _COMMUNITY if platform.distribution == "openshift" else _OPERATOR_HUB
        return Package(
            name=self.package or usual.name,
            channel=self.channel or usual.channel,
            source=self.source or usual.source,
            source_namespace=self.source_namespace or usual.source_namespace,
        )
