"""Proof, inside `pulumi up`, that a mirror is complete; an `up` with a bad verdict fails.

Owns when the job runs and the request it gets. Does not own the job (`python -m spark`) or what its checks mean.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pulumi

from components import endpoint
from components.endpoint import ClusterEndpoint
from components.kafka.mirror_maker_2 import MirrorMaker2
from components.replication_flow import ReplicationFlow
from components.verification.audit import AuditInCluster
from components.verification.in_cluster import InClusterArgs, VerificationInCluster
from components.verification_run import SLACK_WEBHOOK, VerificationRun, destination_arguments
from contract import verification_request
from settings.mirror_parts import groups_left_out, topics_left_out
from settings.mirrors import BROKERS_DECIDE, Mirror
from settings.names import SEPARATOR, copied
from settings.stack import Stack
from settings.topics import (
    HEARTBEATS,
    InternalTopic,
    checkpoints_topic,
    checkpoints_topic_name,
    internal_topic_separator,
    internal_topics_of,
    offset_syncs_topic,
)
from settings.users import CERTIFICATE, PASSWORD, PRIVATE_KEY, User, security
from settings.verification import Canary

_OWN_SEPARATOR = ("separator", SEPARATOR)
VARIABLES = {PASSWORD: "PASSWORD", CERTIFICATE: "CERTIFICATE", PRIVATE_KEY: "PRIVATE_KEY"}
"""How variables of an environment end, by what they hold. They begin with the side; `<SIDE>_CA` is its authority."""

_OPEN = (("failed", False), ("unknown", None))


@dataclass(frozen=True, kw_only=True)
class VerificationArgs:
    """What is verified: the mirror between its two clusters, as deployed; `context` is the kubeconfig's, if set."""

    settings: Stack
    flow: ReplicationFlow
    deployed: MirrorMaker2
    context: str | None = None


class Verification(pulumi.ComponentResource):
    """A mirror that was verified."""

    request: pulumi.Output[Mapping[str, Any]]
    """The request of a job that runs beside Pulumi; secrets in it are names of variables."""
    environment: pulumi.Output[Mapping[str, str]]
    """The variables that the request names; a secret."""
    outcome: pulumi.Output[Mapping[str, Any] | None]
    """Verdict, report, end and number of records of the latest run, and `failed` and `unknown` checks, if any, by name.

    None if `up` does not verify the mirror: the settings say never, it is stopped, or a failback is under way.

    Of a run in the cluster: how and where it runs, and its verdict once it has passed.
    """

    def __init__(self, name: str, args: VerificationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Run the job if it is due; an `up` fails with the checks that do not hold."""
        super().__init__("rt-inventory:verification:Verification", name, None, opts)
        flow = args.flow
        self.request = pulumi.Output.all(
            flow.source.outside_servers, flow.target.outside_servers, args.deployed.connect_url
        ).apply(lambda known: build_request(args, *known, context=args.context))
        self.environment = pulumi.Output.secret(
            pulumi.Output.all(*_secrets(flow.source), *_secrets(flow.target)).apply(_environment)
        )
        self.outcome = pulumi.Output.from_input(None)
        if not flow.mirror.is_verified:
            pulumi.log.info(
                f"mirror {flow.mirror.name}: not verified, because it is declared {_declared(flow.mirror)}."
            )
        elif args.settings.verification.run.in_cluster:
            self.outcome = self._in_cluster(name, args)
        elif args.settings.verification.when != "never":
            self.outcome = self._run(name, args)
        if flow.mirror.is_verified and args.settings.verification.audit is not None:
            inside, users = self._inside(args), [_access(user) for user in args.settings.users]
            read = replace(inside, trigger=inside.request.apply(lambda known: fingerprint([known], users)))
            AuditInCluster(f"{name}-audit", read, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"outcome": self.outcome})

    def _in_cluster(self, name: str, args: VerificationArgs) -> pulumi.Output[Mapping[str, Any] | None]:
        made = VerificationInCluster(f"{name}-pods", self._inside(args), pulumi.ResourceOptions(parent=self))
        return made.stack_output.apply(lambda found: found)

    def _inside(self, args: VerificationArgs) -> InClusterArgs:
        """What pods get that read both clusters."""
        flow = args.flow
        request = pulumi.Output.all(
            flow.source.bootstrap_servers, flow.target.bootstrap_servers, args.deployed.connect_url
        ).apply(lambda known: build_request(args, *known))
        return InClusterArgs(
            settings=args.settings,
            mirror=flow.mirror.name,
            mirror_namespace=flow.namespace,
            namespace=args.settings.verification_namespace(flow.mirror),
            request=request,
            environment=self.environment,
            trigger=self._trigger(args),
        )

    def _trigger(self, args: VerificationArgs) -> pulumi.Output[str]:
        # No proof depends on annotations: an exception that is renewed verifies nothing again. Nor on names of stacks,
        # clusters and namespaces, which only label the report, nor on what a machine calls the Kubernetes cluster.
        users = [_access(user) for user in args.settings.users]
        return pulumi.Output.all(self.request.apply(proven), args.deployed.spec, args.deployed.state).apply(
            lambda known: fingerprint(known, users)
        )

    def _run(self, name: str, args: VerificationArgs) -> pulumi.Output[Mapping[str, Any] | None]:
        settings = args.settings.verification
        run = VerificationRun(
            f"{name}-run",
            {
                "request": self.request,
                "environment": self._with_webhook(name, args),
                "trigger": self._trigger(args),
                "when": settings.when,
                "reportDir": str(settings.report_path(pulumi.get_stack(), args.flow.mirror.name)),
                "deadlineSeconds": settings.deadline_seconds,
                "state": settings.state,
                "told": destination_arguments(
                    settings.push_gateway, slack=settings.slack_webhook is not None, index=str(settings.index_path)
                ),
            },
            pulumi.ResourceOptions(parent=self),
        )
        found = pulumi.Output.all(
            passed=run.passed,
            verdict=run.verdict,
            message=run.message,
            checks=run.checks,
            report=run.report,
            finishedAt=run.finished_at,
            recordsCompared=run.records_compared,
        )
        # Not part of what is exported: a bad verdict must not take the stack's outputs away from the people on call.
        found.apply(_require_passed)
        return found.apply(_shown)

    def _with_webhook(self, name: str, args: VerificationArgs) -> pulumi.Output[Mapping[str, str]]:
        """The job's variables; the webhook's address is in no stack output, as those of the request are."""
        webhook = args.settings.verification.slack_webhook
        if webhook is None:
            return self.environment
        namespace = args.settings.verification_namespace(args.flow.mirror)
        address = endpoint.secret_value(f"{name}-slack", webhook.secret, webhook.key, namespace, self)
        return pulumi.Output.secret(
            pulumi.Output.all(self.environment, address).apply(lambda known: {**known[0], SLACK_WEBHOOK: known[1]})
        )


def build_request(
    args: VerificationArgs,
    source_servers: str,
    target_servers: str,
    connect_url: str | None,
    *,
    context: str | None = None,
) -> dict[str, Any]:
    """Return the request of `python -m spark` for a mirror; `context` is the kubeconfig's for a job beside Pulumi."""
    flow, settings = args.flow, args.settings.verification
    mirror, version = flow.mirror, args.settings.mirror_version(flow.mirror)
    checkpoints: dict[str, Any] = {**named_checkpoints(mirror, version)}  # left out where the separator gives the name
    standby: dict[str, Any] = {"active": mirror.active} if mirror.standby == "read-only" else {}
    split: dict[str, Any] = {"failed_over": mirror.failed_over.topics} if mirror.failed_over else {}
    followed: dict[str, Any] = {"exact_offsets": True} if mirror.exact_offsets is not None else {}
    request = verification_request.Request(
        stack=pulumi.get_stack(),
        source=_cluster_config("source", mirror.source.alias, flow.source, source_servers),
        target=_cluster_config("target", mirror.target.alias, flow.target, target_servers),
        mirror=verification_request.Mirror(
            name=mirror.name,
            topics=mirror.topics,
            topics_exclude=topics_left_out(mirror),
            groups=mirror.groups,
            groups_exclude=groups_left_out(mirror),
            naming=mirror.naming,
            separator=_separator(mirror, version),
            version=version,
            source_alias=mirror.source.alias,
            target_alias=mirror.target.alias,
            replication_factor=_factor(mirror),
            connect_url=connect_url,
            connectors=mirror.connectors,
            offset_storage_topic=mirror.storage_topics["offset"],
            **checkpoints,
            offset_syncs_topic=verification_request.OffsetSyncs(
                name=offset_syncs_topic(mirror, version).name, location=mirror.offset_syncs_location
            ),
            canary=_canary(settings.canary, mirror),
            counts_from=_counts_from(mirror),
            topic_configs=_topic_configs(mirror),
            **standby,
            **split,
            sync_topic_acls=mirror.sync_topic_acls,
            sync_group_offsets=mirror.sync_group_offsets,
            **followed,
            internal_topics=_internal_topics(mirror, version),
            resource=verification_request.Resource(
                api_version=args.settings.platform.api,
                kind="KafkaMirrorMaker2",
                namespace=flow.namespace,
                name=mirror.name,
                **({"context": context} if context is not None else {}),
            ),
        ),
        limits=verification_request.Limits(
            mirror_wait_seconds=settings.mirror_wait_seconds,
            deadline_seconds=settings.deadline_seconds,
            reread_records_max=settings.reread_records_max,
            duplicates_max=settings.duplicates_max,
            lag_records_max=settings.lag_records_max,
            lag_seconds_max=settings.lag_seconds_max,
            canary_p99_ms_max=settings.canary_p99_ms_max,
            allow_unknown=settings.allow_unknown,
            isolation=settings.isolation,
        ),
    )
    return request.document()


def proven(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a request on which the verdict depends."""
    mirror = request["mirror"]
    sides = {role: {key: request[role][key] for key in ("alias", "client_config")} for role in ("source", "target")}
    resource = {key: value for key, value in mirror["resource"].items() if key != "context"}
    known = {key: value for key, value in request.items() if key != "stack"}
    return {**known, **sides, "mirror": {**mirror, "resource": resource}}


def named_checkpoints(mirror: Mirror, kafka_version: str) -> dict[str, str]:
    """Return the request's name of the checkpoints topic; {} if it follows from the separator."""
    name = checkpoints_topic(mirror, kafka_version).name
    join = _separator(mirror, kafka_version)
    derived = checkpoints_topic_name(mirror.source.alias, join)
    return {} if name == derived else {"checkpoints_topic": name}


def _separator(mirror: Mirror, kafka_version: str) -> str:
    """Return the separator of remote topics; that of internal topics if names are kept and none is set."""
    return mirror.separator or internal_topic_separator(mirror, kafka_version)


def _declared(mirror: Mirror) -> str:
    """Return why an `up` does not verify a mirror."""
    if mirror.is_at_rest:
        return mirror.state
    return f"with failback {mirror.failback}" if mirror.failback else "with topics that are failing over"


def _counts_from(mirror: Mirror) -> dict[str, Any]:
    """Return where the mirror counts from as a document has it: a time as text, or offsets by partition."""
    left_out = mirror.failed_over.topics if mirror.failed_over else ()
    return {
        topic: where.time or dict(where.offsets) for topic, where in mirror.counts_from.items() if topic not in left_out
    }


def _topic_configs(mirror: Mirror) -> verification_request.TopicConfigs:
    """Return how the mirror copies configuration, from its settings and the connector's free map."""
    free = mirror.source_connector_config
    known: dict[str, Any] = {
        "use_defaults_from": free.get("use.defaults.from", "target"),
        "filter_class": free.get("config.property.filter.class"),
    }
    return verification_request.TopicConfigs(
        sync=mirror.sync_topic_configs, exclude=mirror.config_properties_exclude, **known
    )


def _internal_topics(mirror: Mirror, kafka_version: str) -> tuple[verification_request.InternalTopic, ...]:
    """The mirror's own topics with the factor that it creates them with; heartbeats are checked if they exist."""
    syncs = str(mirror.source_connector_config.get("emit.offset-syncs.enabled", True)).lower() != "false"
    optional = {
        HEARTBEATS: mirror.heartbeats,
        checkpoints_topic(mirror, kafka_version).name: mirror.emit_checkpoints,
        offset_syncs_topic(mirror, kafka_version).name: syncs,
    }
    heartbeats = InternalTopic(name=HEARTBEATS)
    others = HEARTBEATS if not mirror.heartbeats else None  # whose factor is not this mirror's
    return tuple(
        verification_request.InternalTopic(
            name=topic.name,
            location=topic.location,
            replication_factor=_factor(mirror) if topic.name != others else None,
            required=optional.get(topic.name, True),
        )
        for topic in dict.fromkeys((*internal_topics_of(mirror, kafka_version), heartbeats))
    )


def _factor(mirror: Mirror) -> int | None:
    """The factor of what the mirror creates; None where its target's brokers decide it."""
    return mirror.replication_factor if mirror.replication_factor != BROKERS_DECIDE else None


def _canary(canary: Canary | None, mirror: Mirror) -> verification_request.Canary | None:
    """Return the canary of a mirror that copies its topic; others have none, and nothing is added in a failback."""
    if (
        canary is None
        or mirror.failback is not None
        or not copied(canary.topic, mirror.topics, topics_left_out(mirror))
    ):
        return None
    return verification_request.Canary(topic=canary.topic, records=canary.records, partition=canary.partition)


def fingerprint(known: Sequence[Any], users: Sequence[Mapping[str, Any]]) -> str:
    """Return a digest of what the proof depends on: request, mirror, its state, users. No secret is in it."""
    text = json.dumps([*known, users], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _access(user: User) -> dict[str, Any]:
    """A user's login and rights; neither MirrorMaker's own separator nor who may read its credentials changes them."""
    values = user.model_dump(mode="json", exclude={"annotations", "exported"})
    sets = [{key: value for key, value in one.items() if (key, value) != _OWN_SEPARATOR} for one in values["acl_sets"]]
    return {**values, "acl_sets": sets}


def _cluster_config(
    role: str, alias: str, cluster: ClusterEndpoint, servers: str
) -> verification_request.ClusterConfig:
    login, variables = cluster.login, role.upper()
    protocol, mechanism = security(login.authentication, tls=cluster.tls)
    config: dict[str, Any] = {"bootstrap.servers": servers, "security.protocol": protocol}
    if mechanism is not None:
        config |= {
            "sasl.mechanism": mechanism,
            "sasl.username": login.username,
            "sasl.password": {"env": f"{variables}_PASSWORD"},
        }
    elif login.authentication == "tls":
        config |= {
            "ssl.certificate.pem": {"env": f"{variables}_CERTIFICATE"},
            "ssl.key.pem": {"env": f"{variables}_PRIVATE_KEY"},
        }
    if cluster.ca_secret is not None:
        config["ssl.ca.pem"] = {"env": f"{variables}_CA"}
    names = {"cluster": cluster.name, "stack": cluster.stack, "namespace": cluster.namespace}
    known = {key: name for key, name in names.items() if name is not None}
    return verification_request.ClusterConfig(role=role, alias=alias, **known, client_config=config)


def _secrets(cluster: ClusterEndpoint) -> tuple[pulumi.Output[endpoint.Values], pulumi.Output[str | None]]:
    return cluster.credentials, cluster.ca_certificate


def _environment(known: Sequence[Any]) -> dict[str, str]:
    """The variables that the request names, by `_cluster_config`; what a cluster does not have is left out."""
    environment: dict[str, str] = {}
    for side, credentials, authority in (("SOURCE", *known[:2]), ("TARGET", *known[2:])):
        environment |= {f"{side}_{VARIABLES[part]}": value for part, value in credentials.items()}
        if authority is not None:
            environment[f"{side}_CA"] = authority
    return environment


def _require_passed(found: Mapping[str, Any]) -> None:
    """Raise RunError with the run's message if the checks do not hold.

    Not in a preview: there the latest run is shown as it was, and the `up` that follows runs again.
    """
    if found["passed"] is not True and not pulumi.runtime.is_dry_run():
        raise pulumi.RunError(found["message"])


def _shown(found: Mapping[str, Any]) -> dict[str, Any]:
    """What every `up` prints: the verdict, the report with all checks, and the names of those that do not hold.

    `passed` is false where the run failed the `up`: what it left unknown was not allowed, or is not any more.
    """
    # A check without an answer comes back from the engine without `ok`.
    by_answer = {key: [check["name"] for check in found["checks"] or () if check.get("ok") is ok] for key, ok in _OPEN}
    shown = {key: found[key] for key in ("verdict", "report", "finishedAt", "recordsCompared")}
    refused = {"passed": False} if found["passed"] is False else {}
    return shown | {key: ", ".join(names) for key, names in by_answer.items() if names} | refused
