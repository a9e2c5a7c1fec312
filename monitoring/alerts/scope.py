"""Of whom the alerts speak: selectors and the series that stand for what is gone, for one stack or for any."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from monitoring.alerts.model import Alert, MonitoredCluster, MonitoredMirror

WORKERS = "kafka-mirror-maker-2"
BROKERS = "kafka"
OPERATOR = "strimzi-cluster-operator"
ANY = ".+"
# How long a plain rule file, which knows no names, remembers what was scraped once.
REMEMBERED = "2d"
# How long a pod may be silent before it counts as gone, so that one after the other may restart.
RESTARTING = "5m"


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One stack with its mirrors and its cluster; or, without a stack, everything that Prometheus sees.

    `cluster` is None where the brokers are not watched, `operator` false where the operator is not.
    """

    stack: str | None = None
    mirrors: tuple[MonitoredMirror, ...] = ()
    cluster: MonitoredCluster | None = None
    operator: bool = False

    @property
    def selector(self) -> str:
        """Matcher of everything that belongs to the stack."""
        return f'stack=~"{ANY}"' if self.stack is None else f'stack="{self.stack}"'

    def concerned(self, alert: Alert) -> tuple[MonitoredMirror, ...]:
        """Return the mirrors that an alert is for."""
        return tuple(mirror for mirror in self.mirrors if alert.mirrors is not None and alert.mirrors(mirror))

    def tokens(self, mirrors: Sequence[MonitoredMirror]) -> Mapping[str, str]:
        """Return what stands in expressions for each `<token>`, for an alert about these mirrors."""
        known = {
            "stack": self.selector,
            "mirror": f"{self.selector},{_one_of('mirror', [mirror.name for mirror in mirrors])}",
            "ready": self._ready(mirrors),
            "authorities": self._authorities(),
            "missing pods": self._missing_pods(),
            "missing workers": self._missing_workers(mirrors),
            "operators": self._operators(),
            "at work": self._at_work(),
        }
        cluster = [] if self.cluster is None else [self.cluster.name]
        return {**known, "cluster": f"{self.selector},{_one_of('cluster', cluster)}"}

    def none_of(self, series: str, mirrors: Sequence[MonitoredMirror]) -> str:
        """Return a zero for each mirror that should have this series, also where nothing is scraped of it."""
        if self.stack is None:
            return f"0 * max by (stack, mirror) (max_over_time({series}[{REMEMBERED}]))"
        return self._each(mirrors, lambda _: 0)

    def _ready(self, mirrors: Sequence[MonitoredMirror]) -> str:
        """Whether the operator calls the mirrors ready, with the labels of all other series."""
        where = _one_of("resource_namespace", sorted({mirror.namespace for mirror in mirrors}))
        names = _one_of("name", [mirror.name for mirror in mirrors])
        state = _copied(f'strimzi_resource_state{{kind="KafkaMirrorMaker2",{where},{names}}}', "mirror", "name")
        if self.stack is not None:
            return _labelled(state, stack=self.stack)
        return self._of_whose_stack(state, WORKERS, "mirror")

    def _authorities(self) -> str:
        """When the authorities expire that the operator made, in seconds since 1970."""
        clusters = [] if self.cluster is None else [self.cluster.name]
        namespaces = {mirror.namespace for mirror in self.mirrors} | (
            {self.cluster.namespace} if self.cluster else set()
        )
        where = f"{_one_of('resource_namespace', sorted(namespaces))},{_one_of('cluster', clusters)}"
        expires = _copied(f"strimzi_certificate_expiration_timestamp_ms{{{where}}} / 1000", "certificate", "type")
        if self.stack is not None:
            return _labelled(expires, stack=self.stack)
        return self._of_whose_stack(expires, BROKERS, "cluster")

    def _of_whose_stack(self, series: str, job: str, resource: str) -> str:
        """The operator knows no stacks: take it from the pods of the same resource."""
        pods = f'up{{job="{job}",{self.selector}}}'
        whose = f"max by (namespace, {resource}, stack) ({pods} >= bool 0)"
        named = _copied(series, "namespace", "resource_namespace")
        return f"{named} * on (namespace, {resource}) group_left (stack) {whose}"

    def _missing_pods(self) -> str:
        """How many pods of the cluster have not answered for some minutes: in a rolling restart each is away briefly.

        A pod counts once, also where its restart has made it another target.
        """
        up = f'up{{job="{BROKERS}",{self.selector},{_one_of("cluster", [self.cluster.name] if self.cluster else [])}}}'
        answering = f"sum by (stack, cluster) (max by (stack, cluster, pod) (max_over_time({up}[{RESTARTING}])))"
        if self.stack is None or self.cluster is None:
            pods = f"count by (stack, cluster) (count by (stack, cluster, pod) ({up}))"
            were = f"max_over_time({pods}[{REMEMBERED}:5m])"
            return f"{were} - ({answering} or 0 * {were})"
        none = _labelled("vector(0)", stack=self.stack, cluster=self.cluster.name)
        return f"{self.cluster.pods} - ({answering} or {none})"

    def _missing_workers(self, mirrors: Sequence[MonitoredMirror]) -> str:
        """How many workers of each mirror answer less than half of the time, or are not there at all.

        Of those that an autoscaler has added only what is scraped is known; of all, where no settings are.
        """
        up = f'up{{job="{WORKERS}",{self.selector},{_one_of("mirror", [mirror.name for mirror in mirrors])}}}'
        answered = f"max by (stack, mirror, pod) (avg_over_time({up}[15m]))"
        bad = f"sum by (stack, mirror) ({answered} < bool 0.5)"
        if self.stack is None:
            return bad
        wanted = self._each(mirrors, lambda mirror: mirror.replicas)
        none = self._each(mirrors, lambda _: 0)
        missing = f"({wanted}) - (sum by (stack, mirror) ({answered} >= bool 0.5) or {none})"
        return f"{missing} > {bad} or {bad} or {missing}"

    def _each(self, mirrors: Sequence[MonitoredMirror], number: Callable[[MonitoredMirror], int]) -> str:
        """A number for each mirror of the stack."""
        return " or ".join(
            _labelled(f"vector({number(mirror)})", stack=self.stack or "", mirror=mirror.name) for mirror in mirrors
        )

    def _operators(self) -> str:
        """How many operators of the stack answer."""
        up = f'up{{job="{OPERATOR}",{self.selector}}}'
        if self.stack is None:
            return f"sum by (stack) ({up}) or 0 * max by (stack) (max_over_time({up}[{REMEMBERED}]))"
        return f"sum by (stack) ({up}) or {_labelled('vector(0)', stack=self.stack)}"

    def _at_work(self) -> str:
        """Leaves out mirrors that were stopped on purpose, where no settings have told so."""
        if self.stack is not None:
            return ""
        return f'unless on (stack, mirror) rt_inventory_mirror_state{{{self.selector},state=~"paused|stopped"}} == 1'


def _one_of(label: str, values: Sequence[str]) -> str:
    return f'{label}=~"{"|".join(values) or ANY}"' if len(values) != 1 else f'{label}="{values[0]}"'


def _labelled(series: str, **labels: str) -> str:
    for label, value in labels.items():
        series = f'label_replace({series}, "{label}", "{value}", "", "")'
    return series


def _copied(series: str, label: str, source: str) -> str:
    return f'label_replace({series}, "{label}", "$1", "{source}", "(.+)")'
