"""What Event Streams has beside Strimzi: its components, IBM's license, and the annotations that count a mirror's pods.

The operator counts brokers by itself. Pods of mirrors carry annotations that the resource must give them: which product
of which license they run, in which release. They follow `platform.license` and `platform.version`; what cannot be
derived from those must be given.
"""

from pydantic import Field

from settings.model import Config, Count, Model, Resources, empty

CP4I, NON_PRODUCTION = "CloudPakForIntegration", "NonProduction"
USES = (f"{CP4I}{NON_PRODUCTION}", f"{CP4I}Production", f"EventAutomation{NON_PRODUCTION}", "EventAutomationProduction")
# The product that is counted under a non-production license of Cloud Pak for Integration.
_PRODUCT = {
    "product_id": "2a79e49111f44ec3acd89608e56138f5",
    "product_name": "IBM Event Streams for Non Production",
    "cloudpak_ratio": "2:1",
}
_CLOUD_PAK = {"cloudpak_id": "c8b82d189e7545f0892db9ef2731b90d", "cloudpak_name": "IBM Cloud Pak for Integration"}
# License id → release of Cloud Pak for Integration, from the licensing reference of IBM Event Automation.
_CLOUD_PAK_RELEASES = {
    "L-RJON-BZFQU2": "2021.2.1",
    "L-RJON-BZFQSB": "2021.2.1",
    "L-RJON-C5CSNH": "2021.3.1",
    "L-RJON-C5CSM2": "2021.3.1",
    "L-RJON-C7QG3S": "2021.4.1",
    "L-RJON-C7QFZX": "2021.4.1",
    "L-RJON-CD3JKX": "2022.2.1",
    "L-RJON-CD3JJU": "2022.2.1",
    "L-RJON-CJR2TC": "2022.4.1",
    "L-YBXJ-ADJNSM": "2023.2.1",
    "L-PYRA-849GYQ": "2023.2.1",
    "L-VTPK-22YZPK": "2023.4.1",
}
# Setting → annotation.
CLOUD_PAK_ANNOTATIONS = {
    "productionType": "eventstreams.production.type",
    "productId": "productID",
    "productName": "productName",
    "productVersion": "productVersion",
    "productMetric": "productMetric",
    "cloudpakRatio": "productCloudpakRatio",
    "cloudpakId": "cloudpakId",
    "cloudpakName": "cloudpakName",
    "cloudpakVersion": "cloudpakVersion",
}
CHARGED_CONTAINERS = "productChargedContainers"
# IBM's instructions for Event Streams 11.0, which asks for no license id, name this release; later ones name none.
_CLOUD_PAK_OF_11_0 = "2022.1.1"


class License(Model):
    """Acceptance of IBM's license for Event Streams. `id` is the license's identifier, `use` what it is used for."""

    accept: bool
    """Whether IBM's license terms are accepted. Event Streams does not start otherwise."""
    id: str | None = None
    """Identifier of the license, for releases that ask for it."""
    use: str | None = None
    """What the license is used for, such as `CloudPakForIntegrationNonProduction`. One for production needs `cloudPak`.
    """

    @property
    def is_production(self) -> bool:
        """Whether it is used for production; a use that IBM adds later is taken for that."""
        return self.use is not None and NON_PRODUCTION not in self.use

    @property
    def is_cloud_pak(self) -> bool:
        """Whether the license is that of Cloud Pak for Integration, as it is if nothing else is said."""
        return self.use is None or self.use.startswith(CP4I)


class CloudPak(Model):
    """Pod annotations with which IBM's license service counts a mirror; `productChargedContainers` follows the mirror.

    What is not set follows the license and the release. The product of a license for production, and of one that is not
    Cloud Pak for Integration's, cannot be derived: a stack with mirrors must give `productId`, `productName` and, in a
    Cloud Pak, `cloudpakRatio` then, as the license names them.
    """

    production_type: str | None = None
    """`eventstreams.production.type`. Without it the license's `use`."""
    product_id: str | None = None
    """`productID`. Without it that of the license; for production it must be given."""
    product_name: str | None = None
    """`productName`. Without it that of the license; for production it must be given."""
    product_version: str | None = None
    """`productVersion`. Without it the release of the platform."""
    product_metric: str = "VIRTUAL_PROCESSOR_CORE"
    """`productMetric`."""
    cloudpak_ratio: str | None = None
    """`productCloudpakRatio`. Without it 2:1; for production it must be given."""
    cloudpak_id: str | None = None
    """`cloudpakId`. Without it that of Cloud Pak for Integration, if the license is its."""
    cloudpak_name: str | None = None
    """`cloudpakName`. Without it that of Cloud Pak for Integration, if the license is its."""
    cloudpak_version: str | None = None
    """`cloudpakVersion`. Without it the release whose license has this `id`, if that is known."""
    annotations: Config = Field(default_factory=empty)
    """Further annotations of the pods."""

    def derived(self, terms: License, version: str) -> "CloudPak":
        """Return the annotations with what follows from a license and a release, such as 11.3.0, filled in."""
        values: dict[str, str] = {"production_type": terms.use or USES[0], "product_version": version}
        if not underivable(terms):
            values |= _PRODUCT
        if terms.is_cloud_pak:
            values |= _CLOUD_PAK
            release = _CLOUD_PAK_RELEASES.get(terms.id or "")
            if terms.id is None and version.startswith("11.0."):
                release = _CLOUD_PAK_OF_11_0
            values |= {"cloudpak_version": release} if release else {}
        missing = {name: value for name, value in values.items() if getattr(self, name) is None}
        return self.model_copy(update=missing)

    def contradictions(self, terms: License) -> dict[str, str]:
        """Return fields that say another license than the one accepted, by name with their value."""
        found = {}
        if self.production_type is not None and terms.use is not None and self.production_type != terms.use:
            found["production_type"] = self.production_type
        if terms.is_production:
            found |= {name: value for name, value in _PRODUCT.items() if getattr(self, name) == value}
        return found


def underivable(terms: License) -> tuple[str, ...]:
    """Return the fields of `CloudPak` that do not follow from a license and must be given."""
    if terms.is_cloud_pak and not terms.is_production:
        return ()
    return ("product_id", "product_name", *(("cloudpak_ratio",) if terms.is_cloud_pak else ()))


# Field of the settings → field of the EventStreams resource.
COMPONENTS = {
    "admin_ui": "adminUI",
    "admin_api": "adminApi",
    "rest_producer": "restProducer",
    "apicurio_registry": "apicurioRegistry",
}


class Component(Model):
    """One part of Event Streams. It is there unless `enabled` is false; other fields are for `specOverrides`."""

    enabled: bool = True
    """Whether it runs."""
    replicas: Count | None = None
    """Number of its pods. Without it the operator's."""
    resources: Resources = Field(default_factory=Resources)
    """CPU and memory of each."""


class Components(Model):
    """Which parts run beside the brokers of Event Streams; without any it is a bare Kafka.

    IBM's user interface asks the other three for what it shows.
    """

    admin_ui: Component | None = Field(default=None, alias="adminUI")
    """The user interface."""
    admin_api: Component | None = None
    """The API for administration."""
    rest_producer: Component | None = None
    """The REST interface of producers."""
    apicurio_registry: Component | None = None
    """The schema registry."""
