"""Rules of who reaches whom: a mirror its source's brokers, a verification beside Pulumi those of both sides.

Names that end in `.svc` are known within one Kubernetes cluster only.
"""

from collections.abc import Iterator, Mapping

from settings.cluster import Cluster, Listener
from settings.draft import Draft
from settings.errors import Problem
from settings.flows import Flow, flows


def reach(found: Draft, stack: str | None, others: Mapping[str, Draft], contexts: Mapping[str, str]) -> list[Problem]:
    """A mirror reaches the brokers of a source that is known, by its context, to be in another Kubernetes cluster."""
    own, problems = contexts.get(stack or ""), []
    for flow, listener in _inside_only(found, stack, others):
        there = contexts.get(str(flow.source))
        if own is None or there is None or own == there:
            continue
        problems.append(
            Problem(
                f"{flow.where}.source.stack",
                f"mirror {flow.mirror.name}: source.stack must expose its brokers to other Kubernetes clusters (got "
                f"listener {listener.name} of type {listener.type} on stack {flow.source} in context {there}, and this "
                f"stack in context {own}). Set cluster.expose in Pulumi.{flow.source}.yaml. "
                "If both are one Kubernetes cluster, give both stacks one kubernetes:context.",
            )
        )
    return problems


def reach_hints(found: Draft, stack: str | None, others: Mapping[str, Draft]) -> list[Problem]:
    """What works only if everything is, and runs, in one Kubernetes cluster."""
    hidden = list(_inside_only(found, stack, others))
    result = [
        Problem(
            f"{flow.where}.source.stack",
            f"mirror {flow.mirror.name}: the brokers of stack {flow.source} are reached only within their Kubernetes "
            f"cluster (listener {listener.name} is of type {listener.type}). If the mirror runs in another one, set "
            f"cluster.expose in Pulumi.{flow.source}.yaml.",
        )
        for flow, listener in hidden
    ]
    settings = found.verification
    if not found.mirrors or settings is None or settings.run.in_cluster or settings.when == "never":
        return result
    sides = [stack or "this stack"] if _hidden(found.against) else []
    sides += [str(flow.source) for flow in flows(stack or "", found) if _hides(others.get(flow.source or ""))]
    if sides:
        files = " and ".join(f"Pulumi.{name}.yaml" for name in dict.fromkeys(sides))
        result.append(
            Problem(
                "verification.run.how",
                f"verification: it runs beside Pulumi, and the brokers of {' and '.join(dict.fromkeys(sides))} are "
                f"reached only within Kubernetes. Set cluster.expose in {files}, or run the verification there: "
                "run.how job.",
            )
        )
    return result


def _inside_only(found: Draft, stack: str | None, others: Mapping[str, Draft]) -> Iterator[tuple[Flow, Listener]]:
    """Mirrors with sources of other stacks that nobody outside reaches, unless both clusters share a namespace."""
    for flow in flows(stack or "", found):
        there = others.get(flow.source or "")
        if flow.is_reverse or there is None or not flow.mirror.source.copy_secrets:
            continue
        listener = _hidden(there.against)
        if listener is not None:
            yield flow, listener


def _hides(draft: Draft | None) -> bool:
    return draft is not None and _hidden(draft.against) is not None


def _hidden(cluster: Cluster | None) -> Listener | None:
    """The listener by which others must connect, if it is reached within Kubernetes only."""
    try:
        if cluster is None or cluster.is_reached_from_outside:
            return None
        return cluster.outside_listener
    except KeyError:  # told where the cluster is judged
        return None
