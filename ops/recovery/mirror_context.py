"""A mirror and the two clusters that it joins, as the stacks' outputs have them, and its last verification.

Owns how commands find a mirror, and which verification is the last: that of the last `up` in the stack's outputs, or a
newer report on this machine. Connects to nothing.
"""

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contract.documents import parse
from contract.fields import VerificationError
from contract.report_rows import read_report
from contract.stack_outputs import ClusterOutputs, FailedOverOutputs, MirrorOutputs
from contract.verification_metrics import GROUP_METRICS
from contract.verification_request import Request, Resource
from kafka.cluster import Cluster
from ops import verify
from ops.connection import PROJECT
from ops.errors import OpsError
from ops.pulumi.stack import stack_outputs, typed_outputs
from settings.files import beside
from settings.mirror_parts import GROUPS_EXCLUDE, TOPICS_EXCLUDE, exactly

FAILBACK_SUFFIX = "-failback"
"""Ends the name of the mirror that a failback makes the other way round."""
REPORTS = Path("reports")
REPORTS_MAX = 200
_PAGE = "page"
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class MirrorContext:
    """One mirror of a stack with both its clusters. `repr` shows no secret.

    `outputs` are the mirror's among the stack's outputs, `proof` the latest verification known, `cluster` the outputs
    of the stack's own cluster, the mirror's target, `source_cluster` those of the source's where Pulumi need not be
    asked for them.
    """

    stack: str
    mirror: str
    plan: verify.Plan
    request: Request = field(repr=False)
    outputs: MirrorOutputs
    cluster: ClusterOutputs
    proof: Mapping[str, Any] | None
    project: Path = PROJECT
    source_cluster: ClusterOutputs | None = None

    @property
    def active(self) -> str:
        """The side that applications use: `source` or `target`."""
        return self.outputs.active or "source"

    @property
    def state(self) -> str:
        """The state in which the mirror is declared: running, paused or stopped."""
        return self.outputs.state

    @property
    def rest_state(self) -> str:
        """The state in which the mirror copies nothing: stopped, or paused where its operator can do no more."""
        return self.outputs.rest_state

    @property
    def connect_group(self) -> str | None:
        """The group of the mirror's workers; None if an older program wrote the stack's outputs."""
        return self.outputs.group_id

    @property
    def source_stack(self) -> str | None:
        """Stack of the source; None for an external cluster."""
        return self.outputs.source_stack

    @property
    def resource(self) -> Resource:
        """The mirror's custom resource; raises OpsError if the outputs do not tell it."""
        if self.request.mirror.resource is None:
            raise OpsError(f"stack {self.stack}: mirror {self.mirror} must name its resource. Run `pulumi up` once.")
        return self.request.mirror.resource

    @property
    def label(self) -> str:
        """The stack as metrics call it, and as the program knows it: without its organization and project."""
        return verify.label_of(self.stack)

    @property
    def keeps_names(self) -> bool:
        """Whether copies have the names of their originals."""
        return self.request.mirror.naming == "identity"

    @property
    def failed_over(self) -> FailedOverOutputs | None:
        """Topics that applications use at the target by themselves; None where both sides are not split."""
        return self.outputs.failed_over

    def source(self) -> Cluster:
        """Return the source, not connected yet."""
        return Cluster(self.request.source)

    def target(self) -> Cluster:
        """Return the target, not connected yet."""
        return Cluster(self.request.target)

    def name_of(self, side: str) -> str:
        """Return the name of a side's cluster."""
        name = self.outputs.source_cluster if side == "source" else self.outputs.target_cluster
        return name or side


def load(
    stack: str,
    mirror: str | None,
    environment: Mapping[str, str],
    project: Path = PROJECT,
    outputs: Callable[[], Mapping[str, Any]] | None = None,
) -> MirrorContext:
    """Return a mirror of a stack, or the stack's only one; raises OpsError if the outputs do not tell it.

    `outputs` returns the stack's outputs if Pulumi is not to be asked for them here.
    """
    found = stack_outputs(stack, environment, project) if outputs is None else outputs()
    return of_outputs(stack, found, mirror, environment, project)


def of_outputs(
    stack: str, outputs: Mapping[str, Any], mirror: str | None, environment: Mapping[str, str], project: Path = PROJECT
) -> MirrorContext:
    """Return a mirror from the outputs of its stack, secrets in plain text."""
    planned = verify.plan(stack, outputs if mirror is not None else _lasting(outputs), mirror)
    known = typed_outputs(stack, outputs)
    return MirrorContext(
        stack=stack,
        mirror=planned.mirror,
        plan=planned,
        request=_request(planned, environment),
        outputs=known.mirrors.get(planned.mirror) or MirrorOutputs(),
        cluster=known.cluster,
        proof=known.verifications.get(planned.mirror),
        project=project,
    )


def names(outputs: Mapping[str, Any]) -> list[str]:
    """Return the mirrors of a stack, without what is there only during a failback."""
    return sorted(_lasting(outputs)["verificationRequests"])


def carrying(known: MirrorContext, like: MirrorContext, environment: Mapping[str, str]) -> MirrorContext:
    """Return the pair with the topics of another one: a mirror that is not to copy yet is declared with none."""
    changed = {key: like.plan.request["mirror"][key] for key in ("topics", "topics_exclude")}
    return _with_mirror(known, changed, environment)


def narrowed(known: MirrorContext, topics: Iterable[str], environment: Mapping[str, str]) -> MirrorContext:
    """Return the pair with some of its topics only, by their names, also such as are failed over by themselves.

    Groups that have moved with topics count again. Nothing is sent through such a mirror.
    """
    names, asked = [*topics], known.plan.request["mirror"]
    moved = {exactly(group) for group in (known.failed_over.groups if known.failed_over else ())}
    changed = {
        "topics": [exactly(name) for name in names],
        "topics_exclude": [],
        "groups_exclude": [pattern for pattern in asked.get("groups_exclude") or () if pattern not in moved],
        "failed_over": [],
        "canary": None,
        "counts_from": {key: value for key, value in (asked.get("counts_from") or {}).items() if key in names},
    }
    return _with_mirror(known, changed, environment)


def split(
    known: MirrorContext, topics: Iterable[str], groups: Iterable[str], environment: Mapping[str, str]
) -> MirrorContext:
    """Return the pair as outputs have it after these topics and groups were failed over by themselves."""
    moved, asked = FailedOverOutputs(topics=tuple(topics), groups=tuple(groups)), known.plan.request["mirror"]
    left_out = {
        "topics_exclude": [*(asked.get("topics_exclude") or TOPICS_EXCLUDE), *map(exactly, moved.topics)],
        "groups_exclude": [*(asked.get("groups_exclude") or GROUPS_EXCLUDE), *map(exactly, moved.groups)],
        "failed_over": list(moved.topics),
    }
    outputs = known.outputs.model_copy(update={"failed_over": moved})
    return replace(_with_mirror(known, left_out, environment), outputs=outputs)


def _with_mirror(known: MirrorContext, changed: Mapping[str, Any], environment: Mapping[str, str]) -> MirrorContext:
    mirror = {**known.plan.request["mirror"], **changed}
    planned = replace(known.plan, request={**known.plan.request, "mirror": mirror})
    return replace(known, plan=planned, request=_request(planned, environment))


def declaring(source: str, project: Path = PROJECT) -> str:
    """Return the stack that declares the mirror whose source is a stack; raises OpsError unless there is one."""
    found = [
        stack
        for stack, values in beside(project, None).items()
        for mirror in _list(values.get("mirrors"))
        if isinstance(mirror, Mapping) and isinstance(mirror.get("source"), Mapping)
        if mirror["source"].get("stack") == source
    ]
    if len(set(found)) != 1:
        names = ", ".join(sorted(set(found))) or "none"
        raise OpsError(
            f"stack {source}: must be the source of a mirror in one stack file (got {names}). Name the stack that "
            "declares the mirror: --stack."
        )
    return found[0]


def _request(planned: verify.Plan, environment: Mapping[str, str]) -> Request:
    try:
        return parse(dict(planned.request), {**environment, **planned.secrets})
    except VerificationError as error:
        raise OpsError(
            f"stack {planned.stack}: its request for mirror {planned.mirror} cannot be read. {error}"
        ) from None


def _lasting(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs without the requests of what is there only during a failback."""
    requests = outputs.get("verificationRequests") or {}
    passing = {f"{name}{FAILBACK_SUFFIX}" for name in requests}
    return {**outputs, "verificationRequests": {name: one for name, one in requests.items() if name not in passing}}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def connected(side: Cluster) -> Cluster:
    """Return the side once it answers its user; raises ClusterError."""
    side.connect()
    return side


def latest_verification(pair: MirrorContext, reports: Path = REPORTS) -> Mapping[str, Any] | None:
    """Return the last run whose end is known, by the report's names; None if there is none."""
    runs = [one for one in (_of_outputs(pair), *_reports(pair, reports)) if _finished(one) is not None]
    return max(runs, key=lambda one: (_finished(one) or _NEVER, "seconds" in one), default=None)


def latest_proof(pair: MirrorContext, reports: Path = REPORTS) -> Mapping[str, Any] | None:
    """Return the same by the names of the stack's outputs: what an `up` reported, unless a run here is newer."""
    last = latest_verification(pair, reports)
    if last is None or "seconds" not in last or last.get("finished_at") == (pair.proof or {}).get("finishedAt"):
        return pair.proof
    names = {ok: [check["name"] for check in verify.checks_of(last) if check["ok"] is ok] for ok in (False, None)}
    return {
        "verdict": last.get("verdict"),
        "passed": last.get("exit_code") == 0,
        "finishedAt": last.get("finished_at"),
        "recordsCompared": last.get("records_compared"),
        "failed": ", ".join(names[False]),
        "unknown": ", ".join(names[None]),
        "report": str(last[_PAGE]),
    }


def _of_outputs(pair: MirrorContext) -> dict[str, Any]:
    """Return the verification in the outputs, by the names of a report; {} if there is none."""
    proof = pair.proof or {}
    names = {"verdict": "verdict", "finishedAt": "finished_at", "recordsCompared": "records_compared"}
    known = {ours: proof[theirs] for theirs, ours in names.items() if proof.get(theirs) is not None}
    return {**known, "checks": verify.checks_of(proof)} if "verdict" in known else {}


def _reports(pair: MirrorContext, folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield reports of this mirror: of the latest `up`, and of the latest run of `ops verify`."""
    named = (pair.proof or {}).get("report")
    own = f"{glob.escape(f'{pair.stack}-{pair.mirror}')}-[0-9]*T[0-9]*Z/report.json"
    newest = sorted(folder.glob(own), reverse=True)[:REPORTS_MAX]
    for path in [*([pair.project / str(named)] if named else []), *newest]:
        try:
            found = read_report(path.with_name("report.json"), "groups", *GROUP_METRICS)
        except (OSError, ValueError):
            continue
        if _is_of(found, pair):
            yield {**found, _PAGE: path.with_name("report.html")}
            if path in newest:
                return


def _is_of(found: Mapping[str, Any], pair: MirrorContext) -> bool:
    """Whether a report is of this mirror between these clusters: the folder may have reports of other stacks.

    A stack of the same name may be deployed elsewhere, or may have been before: only the addresses differ.
    """
    if found.get("mirror") != pair.mirror or found.get("stack") not in (None, pair.label):
        return False
    for role in ("source", "target"):
        side = found.get(role)
        address = side.get("bootstrap_servers") if isinstance(side, dict) else None
        if address not in (None, getattr(pair.request, role).client_config["bootstrap.servers"]):
            return False
    return True


def _finished(run: Mapping[str, Any]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(run["finished_at"]))
    except (KeyError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
