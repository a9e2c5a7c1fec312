"""What watches a stack, by its settings: what Prometheus scrapes, and the inputs of alerts and dashboards.

Pods are scraped, not Services: operators give the metrics of brokers and workers a port of the pod and no Service, and
behind a Service it would not be known which pod answered. Both forms, PodMonitors and a plain configuration, end in the
same labels, `job`, `stack`, `namespace`, `pod`, and `mirror` or `cluster`, because both have the same rules.

Owns those rules, the choice of pods, and which mirrors, brokers and thresholds the alerts are about. Does not own the
names of the metrics, who exposes them, or who gets the alerts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from monitoring import dashboards
from monitoring.alerts import MonitoredCluster, MonitoredMirror, Thresholds
from monitoring.alerts.rendering import render
from monitoring.metrics import catalog
from monitoring.metrics.catalog import RELABELLINGS, Part
from settings.mirror_parts import FOLLOWER, FOLLOWER_PORT_NAME
from settings.mirrors import Mirror
from settings.monitoring import Monitoring
from settings.platform import annotation_domain
from settings.stack import Stack
from settings.text import format_names
from settings.verification import AUDIT, AUDIT_PORT_NAME

Job = Literal[
    "kafka", "kafka-mirror-maker-2", "strimzi-cluster-operator", "rt-inventory-audit", "rt-inventory-follower"
]
Spec = dict[str, Any]
Addresses = Mapping[str, Sequence[str]]
BROKERS: Job = "kafka"
WORKERS: Job = "kafka-mirror-maker-2"
OPERATOR: Job = "strimzi-cluster-operator"
AUDITS: Job = "rt-inventory-audit"
FOLLOWERS: Job = "rt-inventory-follower"
VERIFICATION = "rt-inventory-verification"
# Label of the resource that a job's pods belong to.
RESOURCE: Mapping[Job, str] = {BROKERS: "cluster", WORKERS: "mirror", AUDITS: "mirror", FOLLOWERS: "mirror"}
KINDS: Mapping[Job, str] = {BROKERS: "Kafka", WORKERS: "KafkaMirrorMaker2", OPERATOR: "cluster-operator"}
_OPERATOR_PORTS = {"strimzi": "http", "event-streams": "metrics"}
_PORT = "tcp-prometheus"
# Jobs that many pods in a namespace are of, each by the name of its mirror.
OF_MIRRORS = frozenset({WORKERS, AUDITS, FOLLOWERS})
# Of those the pods of this project, by the name of the application: their metrics have labels of their own.
_OWN: Mapping[Job, str] = {AUDITS: AUDIT, FOLLOWERS: FOLLOWER}
_OWN_DOMAIN = "app.kubernetes.io"
_TIMEOUT_MAX_S = 20
# Labels that the Prometheus Operator adds by itself and that no rule or panel uses.
_DROPPED = "container|endpoint"
_PORT_NAME, _PHASE = "__meta_kubernetes_pod_container_port_name", "__meta_kubernetes_pod_phase"
# `namespace` becomes that of the operator's pod; that of the resources, which the operator exports, gets this name.
_NAMESPACE_OF_RESOURCES: Mapping[str, Any] = {
    "source_labels": ["exported_namespace"],
    "regex": "(.+)",
    "target_label": "resource_namespace",
    "replacement": "$1",
}
_CAMEL = {"source_labels": "sourceLabels", "target_label": "targetLabel"}
RUNBOOK = "docs/alerts.md"


@dataclass(frozen=True, kw_only=True)
class Pods:
    """Pods of one job in one namespace: those of the resources with these names, and the port with their metrics."""

    job: Job
    namespace: str
    names: tuple[str, ...]
    domain: str
    port: str

    @property
    def selected(self) -> dict[str, str]:
        """Labels that all of them have."""
        if self.job in _OWN:
            return {f"{self.domain}/name": _OWN[self.job]}
        labels = {f"{self.domain}/kind": KINDS[self.job]}
        if self.job == BROKERS:
            # An exporter or Cruise Control beside the brokers is of the same kind and cluster.
            (cluster,) = self.names
            labels |= {f"{self.domain}/cluster": cluster, f"{self.domain}/name": f"{cluster}-kafka"}
        return labels

    @property
    def name_label(self) -> str:
        """Label with the name of their resource."""
        return f"{self.domain}/instance" if self.job in _OWN else f"{self.domain}/cluster"


def pods(settings: Stack) -> list[Pods]:
    """All pods of a stack that expose metrics: brokers; workers, audits and followers by namespace; its own operator.

    An operator that the stack does not install is left to whoever did.
    """
    cluster, kind = settings.cluster, settings.platform.type
    domain = annotation_domain(settings.platform.api)
    found = []
    if cluster.external is None and cluster.metrics is not None:
        found.append(Pods(job=BROKERS, namespace=cluster.namespace, names=(cluster.name,), domain=domain, port=_PORT))
    flows = mirrors(settings)
    workers = [(namespace, mirror.name) for namespace, mirror in flows if mirror.metrics is not None]
    found += _by_namespace(WORKERS, workers, domain, _PORT)
    if settings.verification.audit is not None:
        audited = [(settings.verification_namespace(mirror), mirror.name) for _, mirror in flows if mirror.is_verified]
        found += _by_namespace(AUDITS, audited, _OWN_DOMAIN, AUDIT_PORT_NAME)
    followed = [(namespace, mirror.name) for namespace, mirror in flows if mirror.exact_offsets is not None]
    found += _by_namespace(FOLLOWERS, followed, _OWN_DOMAIN, FOLLOWER_PORT_NAME)
    if settings.operator.install != "none":
        home = settings.operator.home(cluster.namespace)
        found.append(Pods(job=OPERATOR, namespace=home, names=(), domain=domain, port=_OPERATOR_PORTS[kind]))
    return found


def _by_namespace(job: Job, of: Iterable[tuple[str, str]], domain: str, port: str) -> list[Pods]:
    """The pods of a job in each namespace, by the names of their mirrors."""
    names: dict[str, list[str]] = {}
    for namespace, name in of:
        names.setdefault(namespace, []).append(name)
    return [
        Pods(job=job, namespace=namespace, names=tuple(here), domain=domain, port=port)
        for namespace, here in names.items()
    ]


def mirrors(settings: Stack) -> list[tuple[str, Mirror]]:
    """Namespace and settings of every KafkaMirrorMaker2 of a stack, both directions of a mirror that has two."""
    found = []
    for mirror in settings.mirrors:
        both = [mirror]
        both += [mirror.reverse_mirror()] if mirror.reverse is not None else []
        both += [mirror.failback_mirror()] if mirror.has_failback_mirror else []
        found += [(mirror.home(settings.cluster.namespace), each) for each in both]
    return found


def pod_monitor(chosen: Pods, stack: str, seconds: int) -> Spec:
    """Return the spec of a PodMonitor (monitoring.coreos.com/v1) beside the pods."""
    selector: Spec = {"matchLabels": chosen.selected}
    if chosen.job in OF_MIRRORS:
        selector["matchExpressions"] = [{"key": chosen.name_label, "operator": "In", "values": list(chosen.names)}]
    endpoint: Spec = {
        "port": chosen.port,
        "path": "/metrics",
        "interval": f"{seconds}s",
        "scrapeTimeout": f"{_timeout(seconds)}s",
        "relabelings": [_camel(rule) for rule in [*labels(chosen, stack), {"action": "labeldrop", "regex": _DROPPED}]],
        "metricRelabelings": [_camel(rule) for rule in _of_metrics(chosen.job)],
    }
    if chosen.job in _OWN:
        endpoint["honorLabels"] = True  # which are those of its target
    return {"selector": selector, "podMetricsEndpoints": [endpoint]}


def labels(chosen: Pods, stack: str) -> list[Spec]:
    """The rules that give a pod of Kubernetes its labels, as Prometheus writes them."""
    rules: list[Spec] = [
        {"target_label": "job", "replacement": chosen.job},
        {"target_label": "stack", "replacement": stack},
        {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
        {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
    ]
    if chosen.job in RESOURCE:
        rules.append({"source_labels": [_meta(chosen.name_label)], "target_label": RESOURCE[chosen.job]})
    return rules


def pod_scrapes(settings: Stack, stack: str) -> list[Spec]:
    """Return the `scrape_configs` that find the stack's pods in Kubernetes."""
    return [_pod_scrape(chosen, stack) for chosen in pods(settings)]


def static_scrapes(settings: Stack, stack: str, targets: Mapping[Job, Addresses]) -> list[Spec]:
    """Return the `scrape_configs` of addresses, by job and by the name of the cluster or mirror they belong to."""
    home = settings.cluster.namespace
    namespaces = {(WORKERS, mirror.name): namespace for namespace, mirror in mirrors(settings)}
    namespaces[OPERATOR, ""] = settings.operator.home(home)
    found = []
    for job, by_name in targets.items():
        statics = []
        for name, addresses in by_name.items():
            own = {"job": job, "stack": stack, "namespace": namespaces.get((job, name), home)}
            named = {RESOURCE[job]: name} if job in RESOURCE else {}
            statics.append({"targets": list(addresses), "labels": {**own, **named}})
        rules = [{"source_labels": ["__address__"], "target_label": "pod"}]
        if statics:
            found.append(
                {
                    "job_name": f"{stack}/{job}",
                    "static_configs": statics,
                    "relabel_configs": rules,
                    "metric_relabel_configs": _of_metrics(job),
                }
            )
    return found


def honoured_scrape(name: str, addresses: Sequence[str], path: str = "/metrics", scheme: str = "http") -> Spec:
    """Return the scrape of a push gateway or an exporter, whose own labels `stack` and `mirror` are kept."""
    return {
        "job_name": name,
        "honor_labels": True,
        "scheme": scheme,
        "metrics_path": path,
        "static_configs": [{"targets": list(addresses)}],
    }


def push_gateway_scrape(settings: Stack, stack: str) -> list[Spec]:
    """Return the scrape of the push gateway to which verifications push their metrics, if there is one."""
    if settings.verification.push_gateway is None:
        return []
    address = urlsplit(settings.verification.push_gateway)
    path = f"{address.path.rstrip('/')}/metrics"
    return [honoured_scrape(f"{stack}/{VERIFICATION}", [address.netloc], path, address.scheme)]


def prometheus(scrapes: Sequence[Spec], seconds: int, alertmanagers: Sequence[str], rule_files: Sequence[str]) -> Spec:
    """Return the configuration file of a Prometheus."""
    return {
        "global": {
            "scrape_interval": f"{seconds}s",
            "scrape_timeout": f"{_timeout(seconds)}s",
            "evaluation_interval": f"{seconds}s",
        },
        "rule_files": list(rule_files),
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": list(alertmanagers)}]}]},
        "scrape_configs": list(scrapes),
    }


def _pod_scrape(chosen: Pods, stack: str) -> Spec:
    # The API server answers with these pods only; `in` is what its label selectors call a choice of names.
    selector = [f"{key}={value}" for key, value in chosen.selected.items()]
    if chosen.job in OF_MIRRORS:
        selector.append(f"{chosen.name_label} in ({','.join(chosen.names)})")
    return {
        "job_name": f"{stack}/{chosen.job}/{chosen.namespace}",
        **({"honor_labels": True} if chosen.job in _OWN else {}),
        "kubernetes_sd_configs": [
            {
                "role": "pod",
                "namespaces": {"names": [chosen.namespace]},
                "selectors": [{"role": "pod", "label": ",".join(selector)}],
            }
        ],
        "relabel_configs": [
            {"source_labels": [_PORT_NAME], "regex": chosen.port, "action": "keep"},
            {"source_labels": [_PHASE], "regex": "Failed|Succeeded", "action": "drop"},
            *labels(chosen, stack),
        ],
        "metric_relabel_configs": _of_metrics(chosen.job),
    }


def _of_metrics(job: Job) -> list[Spec]:
    """The relabelling rules of a job's metrics, as Prometheus writes them."""
    return [*RELABELLINGS, *([dict(_NAMESPACE_OF_RESOURCES)] if job == OPERATOR else [])]


def _meta(label: str) -> str:
    """Prometheus' name of a pod's label during service discovery."""
    return "__meta_kubernetes_pod_label_" + "".join(each if each.isalnum() else "_" for each in label)


def _camel(rule: Spec) -> Spec:
    """A rule as the resource has it, with the action that the API server would fill in: else it differs from ours."""
    return {"action": "replace"} | {_CAMEL.get(key, key): value for key, value in rule.items()}


def _timeout(seconds: int) -> int:
    return min(seconds, _TIMEOUT_MAX_S)


def monitoring_of(settings: Stack) -> Monitoring:
    """Return the stack's monitoring; the defaults if it sets none."""
    return settings.monitoring or Monitoring()


def stage_of(settings: Stack, stack: str) -> str:
    """Return the label `stage` of the stack's alerts."""
    return monitoring_of(settings).stage or stack


def rule_groups(
    settings: Stack,
    stack: str,
    namespace: str | None = None,
    brokers: int | None = None,
    operators: int | None = None,
) -> list[dict[str, Any]]:
    """Return the groups of the stack's rules.

    Args:
        settings: the stack's settings.
        stack: name of the stack.
        namespace: label of every alert, if there is one.
        brokers: number of brokers that are scraped; None to take it from the settings.
        operators: number of operators that are scraped; None to take it from the settings.
    """
    chosen = monitoring_of(settings)
    return render(
        stack,
        stage_of(settings, stack),
        monitored_mirrors(settings),
        Thresholds(**chosen.thresholds.model_dump()),
        chosen.alerts_off,
        chosen.runbook_url or RUNBOOK,
        cluster=monitored_cluster(settings, brokers),
        operator=settings.operator.install != "none" if operators is None else operators > 0,
        namespace=namespace,
        grafana_url=chosen.grafana_url,
    )


def monitored_mirrors(settings: Stack) -> list[MonitoredMirror]:
    """Return every mirror; one that is at rest has `running` false."""
    run, gateway = settings.verification.run, settings.verification.push_gateway
    # A run that pushes nothing has no metrics, and a suspended schedule starts none.
    scheduled = run.schedule is not None and not run.schedule.suspend and gateway is not None
    return [
        MonitoredMirror(
            name=mirror.name,
            namespace=namespace,
            running=mirror.state == "running",
            heartbeats=mirror.heartbeats,
            checkpoints=mirror.emit_checkpoints,
            verified=scheduled and mirror.is_verified,
            replicas=mirror.replicas if mirror.scaling is None else mirror.scaling.min_replicas,
        )
        for namespace, mirror in mirrors(settings)
    ]


def monitored_cluster(settings: Stack, brokers: int | None = None) -> MonitoredCluster | None:
    """Return the stack's cluster if its brokers expose metrics, by its settings or by the number that is scraped."""
    cluster = settings.cluster
    exposed = cluster.external is None and cluster.metrics is not None
    pods = brokers if brokers is not None else sum(pool.replicas for pool in cluster.all_node_pools) if exposed else 0
    if pods == 0:
        return None
    return MonitoredCluster(name=cluster.name, namespace=cluster.namespace, pods=pods)


def allow_list_warnings(settings: Stack) -> list[str]:
    """Return a warning for each allowList that blocks metrics which alerts and dashboards read."""
    exposed = [(f"mirror {mirror.name}", Part.WORKER, mirror.metrics) for _, mirror in mirrors(settings)]
    exposed.append((f"cluster {settings.cluster.name}", Part.BROKER, settings.cluster.metrics))
    return [
        f"{subject}: metrics.allowList leaves out {format_names(names)}, which alerts and dashboards read: some "
        "would stay empty, and alerts about what is missing would fire for ever. Add them, or remove allowList."
        for subject, part, metrics in exposed
        if metrics is not None and metrics.allow_list and (names := catalog.blocked_metrics(part, metrics.allow_list))
    ]


def dashboard_files(settings: Stack) -> dict[str, str]:
    """Return the dashboards as Grafana reads them, by the name of the file."""
    chosen = monitoring_of(settings)
    return dashboards.texts(chosen.runbook_url, chosen.scrape_seconds)
