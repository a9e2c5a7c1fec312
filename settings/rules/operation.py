"""Rules of how a stack is operated: its platform and operator, its verification, and its monitoring.

They fit together, and a release has what is asked of it. The verification has time left after its wait, and what it
needs where it runs; alerts can be routed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from settings.cluster import Cluster, Metrics
from settings.errors import Problem, Subject
from settings.event_streams import CloudPak, underivable
from settings.mirrors import Mirror
from settings.monitoring import Monitoring
from settings.names import LABEL_LENGTH_MAX, copied
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
from settings.verification import Run, Verification

_PLATFORM = Subject("platform", "platform")
_OPERATOR = Subject("operator", "operator")
# Longest name of a mirror whose verification runs in the cluster: with what controllers add, 52 characters are left of
# a CronJob's name, and 63 of a scheduled SparkApplication's driver.
NAME_LENGTH_MAX = {"job": 45, "spark-application": 29}
# Keys that say nothing beside the others, by how the job runs.
_IDLE = {
    "local": tuple(name for name in Run.model_fields if name != "how"),
    "job": ("executor", "spark_version"),
    "spark-application": (),
}

_STORE = re.compile(r"(file://(localhost)?/[^?#]*|s3://[^/@?#]+(/[^?#]*)?)", re.DOTALL)


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


def _is_store(uri: str) -> bool:
    """Whether the job can keep its state there; the value is never shown, it may contain credentials."""
    return bool(uri.strip()) if "://" not in uri else _STORE.fullmatch(uri) is not None


_VERIFICATION = Subject("verification", "verification")


def verification(settings: Verification, mirrors: Mapping[int, Mirror], cluster: Cluster | None) -> Iterator[Problem]:
    """Yield the problems of the verification. `cluster`: None if its settings cannot be read."""
    if settings.mirror_wait_seconds >= settings.deadline_seconds:
        yield _VERIFICATION.problem(
            "mirrorWaitSeconds",
            "must be < deadlineSeconds",
            f"{settings.mirror_wait_seconds}, deadlineSeconds {settings.deadline_seconds}",
            "The comparison comes after the wait.",
        )
    if settings.state is not None and not _is_store(settings.state):
        yield Problem(
            "verification.state",
            "verification: state must be a folder, a file:// or an s3://bucket/prefix URI without credentials and "
            "query. Give credentials by the AWS environment variables.",
        )
    for name, count in Counter(settings.allow_unknown).items():
        if count > 1:
            yield _VERIFICATION.problem("allowUnknown", "must name a check once", f"{name} twice")
    canary = settings.canary
    if canary is not None and not any(copied(canary.topic, one.topics, one.topics_exclude) for one in mirrors.values()):
        yield _VERIFICATION.problem(
            "canary.topic", "must be one that a mirror copies", canary.topic, "Its records would never arrive."
        )
    if canary is None and settings.canary_p99_ms_max is not None:
        yield _VERIFICATION.problem(
            "canaryP99MsMax",
            "must come with canary",
            f"{settings.canary_p99_ms_max} and no canary",
            "No latency would be measured.",
        )
    if settings.audit is not None and settings.audit_image is None:
        yield _VERIFICATION.problem(
            "audit.image",
            "must be given unless run.image is",
            "nothing",
            "Build images/verification, push it, and name it.",
        )
    if (
        settings.audit is not None
        and "executor" in settings.audit.model_fields_set
        and settings.run.how != "spark-application"
    ):
        yield _idle("audit.executor", settings.run.how)
    yield from _run(settings, mirrors)
    if settings.run.how == "spark-application" and cluster is not None:
        yield from _driver_namespace(settings.run, [one.home(cluster.namespace) for one in mirrors.values()], cluster)


def _run(settings: Verification, mirrors: Mapping[int, Mirror]) -> Iterator[Problem]:
    run = settings.run
    given = run.model_dump(exclude_defaults=True)
    for name in _IDLE[run.how]:
        if name in given:
            yield _idle(f"run.{Run.model_fields[name].alias}", run.how)
    if not run.in_cluster:
        return
    if run.image is None:
        yield _VERIFICATION.problem(
            "run.image",
            f"must be given with how {run.how}",
            "nothing",
            "Build images/verification, push it, and name it.",
        )
    if settings.report_dir is not None:
        yield _VERIFICATION.problem(
            "reportDir",
            f"must not be set with run.how {run.how}",
            f"{settings.report_dir!r}",
            "The pod writes its report into run.reportClaim.",
        )
    if settings.state is not None and not settings.state.startswith("s3://"):
        yield _VERIFICATION.problem(
            "state",
            f"must be an s3:// URI with run.how {run.how}",
            fix="Give credentials by run.envFrom.",
            why="a folder goes with the pod",
        )
    if run.how == "spark-application" and run.schedule and run.schedule.starting_deadline_seconds is not None:
        yield _VERIFICATION.problem(
            "run.schedule.startingDeadlineSeconds",
            "must not be set with how spark-application",
            fix="Remove it.",
            why="a ScheduledSparkApplication has none",
        )
    longest = NAME_LENGTH_MAX[run.how]
    for index, mirror in mirrors.items():
        name = mirror.reverse_mirror().name if mirror.reverse is not None else mirror.name
        if len(name) > longest:
            yield Subject(f"mirrors[{index}]", f"mirror {name}").problem(
                "name",
                f"must have at most {longest} characters with verification.run.how {run.how}",
                len(name),
                "Names of its pods are made of it. Shorten it.",
            )


def _idle(key: str, how: str) -> Problem:
    """Return the problem of a key that says nothing beside how the job runs."""
    return _VERIFICATION.problem(
        key,
        f"must not be set with how {how}",
        fix="Remove it, or set run.how to where the job should run.",
        why="nothing would read it",
    )


def _driver_namespace(run: Run, mirror_namespaces: Sequence[str], cluster: Cluster) -> Iterator[Problem]:
    """Yield the problems of where Spark's driver is."""
    yield from driver_beside(run, {cluster.namespace, *mirror_namespaces})
    for home in dict.fromkeys(mirror_namespaces):
        if len(run.home(home)) > LABEL_LENGTH_MAX:
            yield _VERIFICATION.problem(
                "run.namespace",
                "must be given",
                "nothing",
                f"{run.home(home)} is longer than a namespace's name can be.",
            )


def driver_beside(run: Run, namespaces: Set[str]) -> Iterator[Problem]:
    """Yield the problem of a driver in one of these namespaces, of which it could mount the Secrets."""
    if run.how == "spark-application" and run.namespace in namespaces:
        yield _VERIFICATION.problem(
            "run.namespace",
            "must not be that of a cluster or mirror with how spark-application",
            run.namespace,
            "Give the pods a namespace of their own, or leave run.namespace out.",
            why="the driver may create pods, which may mount each Secret there, keys of the cluster's authorities too",
        )


def monitoring(settings: Monitoring, mirrors: Mapping[int, Mirror]) -> Iterator[Problem]:
    """Yield the problems of the monitoring's settings, and of mirrors without metrics."""
    twice = sorted({name for name in settings.alerts_off if settings.alerts_off.count(name) > 1})
    for name in twice:
        yield _problem("alertsOff", f"alertsOff must name an alert once (got {name} twice).")
    numbers = settings.thresholds
    if numbers.lag_seconds >= numbers.lag_critical_seconds:
        yield _problem(
            "thresholds.lagSeconds",
            f"lagSeconds must be < lagCriticalSeconds (got {numbers.lag_seconds}, lagCriticalSeconds "
            f"{numbers.lag_critical_seconds}). The warning comes first.",
        )
    if numbers.certificate_warning_days <= numbers.certificate_critical_days:
        yield _problem(
            "thresholds.certificateWarningDays",
            f"certificateWarningDays must be > certificateCriticalDays (got {numbers.certificate_warning_days}, "
            f"certificateCriticalDays {numbers.certificate_critical_days}). The warning comes first.",
        )
    for index, mirror in mirrors.items():
        if mirror.metrics is None:
            yield Subject(f"mirrors[{index}]", f"mirror {mirror.name}").problem(
                "metrics",
                "must be given where there is monitoring",
                "nothing",
                "Without them it would count as down for ever. Write `metrics: {}`.",
            )


def monitoring_hints(settings: Monitoring, cluster: Cluster | None, mirrors: Mapping[int, Mirror]) -> Iterator[Problem]:
    """Yield a hint for each setting that has no effect, or leaves something unmonitored."""
    hints = [
        hint
        for index, mirror in mirrors.items()
        for hint in _own_rules(Subject(f"mirrors[{index}].metrics", f"mirror {mirror.name}"), mirror.metrics)
    ]
    if cluster is not None:
        hints += _own_rules(Subject("cluster.metrics", f"cluster {cluster.name}"), cluster.metrics)
    if cluster is not None and cluster.external is None and cluster.metrics is None:
        hints.append(
            Problem(
                "cluster.metrics",
                f"cluster {cluster.name}: its brokers expose no metrics, so that nothing watches them. Write "
                "`metrics: {}`.",
            )
        )
    if settings.operator:
        yield from hints
        return
    if settings.slack is not None:
        hints.append(
            _problem(
                "slack",
                "slack changes nothing in Kubernetes without monitoring.operator. It is used in what "
                "`python -m ops render --as prometheus` writes.",
            )
        )
    if settings.labels:
        hints.append(_problem("labels", "labels are of no use without monitoring.operator. Remove them."))
    yield from hints


def _own_rules(at: Subject, metrics: Metrics | None) -> Iterator[Problem]:
    """Yield a hint if an exporter has rules of its own: the names that they give to metrics are unknown here."""
    if metrics is None or metrics.config_map is None:
        return
    yield Problem(
        f"{at.key}.configMap",
        f"{at.name}: the rules in {metrics.config_map} must give the names of docs/monitoring.md, for alerts and "
        "dashboards know no others: some would stay empty, and alerts about what is missing would fire for ever. "
        "Without configMap and key the stack writes rules that do.",
    )


def _problem(key: str, message: str) -> Problem:
    return Problem(f"monitoring.{key}", f"monitoring: {message}")
