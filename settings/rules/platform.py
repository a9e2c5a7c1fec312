"""Rules of the platform and the operator: what fits together, and what a release does not have."""

from collections.abc import Iterator, Mapping

from settings.cluster import Cluster
from settings.errors import Problem, Subject
from settings.event_streams import CloudPak, underivable
from settings.mirrors import Mirror
from settings.platform import (
    EVENT_STREAMS,
    OLDEST,
    STRIMZI_V1,
    STRIMZI_V1BETA2,
    V1_SINCE,
    V1BETA2_BEFORE,
    ApiVersion,
    Operator,
    Platform,
)
from settings.rules.common import dotted

_PLATFORM = Subject("platform", "platform")
_OPERATOR = Subject("operator", "operator")


def platform(settings: Platform, *, has_mirrors: bool) -> Iterator[Problem]:
    """The release serves the API version; Event Streams' license is accepted, and mirrors are counted by it."""
    yield from _license(settings, has_mirrors=has_mirrors)
    allowed = _served(settings)
    release = f" {dotted(settings.release)}" if settings.version else ""
    if settings.api_version is not None and settings.api_version not in allowed:
        yield _PLATFORM.problem(
            "apiVersion",
            f"must be served by {settings.type}{release}",
            f"{settings.api_version}, allowed {', '.join(allowed) or 'none'}",
            "Change it, or platform.version.",
        )
    oldest = OLDEST[settings.type]
    if settings.version is not None and settings.release < oldest:
        yield _PLATFORM.problem(
            "version", f"must be >= {dotted(oldest)} for {settings.type}", settings.version, "Upgrade the operator."
        )


def _license(settings: Platform, *, has_mirrors: bool) -> Iterator[Problem]:
    """Event Streams' license is accepted, and the annotations by which mirrors are counted belong to it."""
    terms, counted = settings.license, settings.cloud_pak
    if settings.type != "event-streams":
        if terms is None:
            return
        yield _PLATFORM.problem("license", f"must not be given for {settings.type}", "one", "Remove it.")
        return
    if terms is None or not terms.accept:
        yield _PLATFORM.problem(
            "license.accept",
            "must be true for event-streams",
            "false" if terms else "nothing",
            "Read IBM's license terms and accept them.",
        )
        return
    for name, value in counted.contradictions(terms).items():
        yield _PLATFORM.problem(
            f"cloudPak.{_key(name)}",
            "must be what the license names",
            f"{value}, with license.use {terms.use}",
            "IBM's license service would count mirrors by another license: correct one of them.",
        )
    missing = [_key(name) for name in underivable(terms) if getattr(counted, name) is None]
    if missing and has_mirrors:
        yield _PLATFORM.problem(
            "cloudPak",
            f"must have {', '.join(missing)} with license.use {terms.use}",
            "nothing",
            "They do not follow from the license's use, and IBM's license service counts mirrors by them: "
            "copy them from your license.",
        )


def _key(name: str) -> str:
    """A field of `cloudPak` as a stack file has it."""
    return str(CloudPak.model_fields[name].alias)


def _served(settings: Platform) -> list[ApiVersion]:
    if settings.type == "event-streams":
        return [EVENT_STREAMS]
    if settings.version is None:
        return [STRIMZI_V1, STRIMZI_V1BETA2]  # the API version decides which release is meant
    release = settings.release
    served = [STRIMZI_V1BETA2] if release < V1BETA2_BEFORE else []
    return [*([STRIMZI_V1] if release >= V1_SINCE else []), *served]


def operator(settings: Operator, cluster: Cluster | None, mirrors: Mapping[int, Mirror]) -> Iterator[Problem]:
    """One way of installing it, and it watches every namespace in which this stack has resources for it."""

    if settings.install == "olm" and settings.approval == "Manual" and settings.starting_csv is None:
        # A subscription that waits for a hand's approval never becomes ready inside one `up`.
        yield _OPERATOR.problem(
            "startingCsv", "must be given with approval Manual", "nothing", "Pin the version to approve."
        )
    if (settings.install == "yaml") != (settings.folder is not None):
        rule = "must be given" if settings.folder is None else "must not be given"
        yield Problem(
            "operator.folder",
            f"operator: folder {rule} with install {settings.install} (got {settings.folder or 'nothing'}). "
            "It holds the YAML files of an operator's release, for install yaml.",
        )
    if settings.catalog is not None and settings.install != "olm":
        yield _OPERATOR.problem(
            "catalog",
            f"must not be given with install {settings.install}",
            settings.catalog.image,
            "Remove it, or use olm.",
        )
    if settings.create_namespaces and (settings.install == "none" or not settings.watched_namespaces):
        rule = "with install none" if settings.install == "none" else "without watchedNamespaces"
        yield _OPERATOR.problem(
            "createNamespaces", f"must not be given {rule}", "true", "Remove it: there is none to make."
        )
    if settings.all_namespaces and settings.watched_namespaces:
        yield _OPERATOR.problem(
            "watchedNamespaces",
            "must not be given with allNamespaces",
            ", ".join(settings.watched_namespaces),
            "Choose one.",
        )
    if cluster is None or settings.install == "none" or settings.all_namespaces:
        return
    watched = settings.watched(cluster.namespace)
    used = {"cluster.namespace": cluster.namespace} if cluster.external is None else {}
    used |= {f"mirrors[{index}].namespace": mirror.home(cluster.namespace) for index, mirror in mirrors.items()}
    for key, namespace in used.items():
        if namespace not in watched:
            yield Problem(
                key,
                f"operator: watchedNamespaces must hold every namespace that the stack uses (got {', '.join(watched)}; "
                f"{namespace} is missing). Add it.",
            )
