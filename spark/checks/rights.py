"""Checks of rights: the ACLs that the mirror copies, and who may write on the side that is not active."""

from collections.abc import Iterable, Mapping

from contract.verification_request import ClusterConfig, Mirror
from kafka.connectivity import subject
from kafka.mirror_metadata import Metadata, expected_acls
from kafka.topic_writers import BrokerRights, is_operators, writers
from spark.checks.registry import DOCTOR, NOTHING, Check, Remedy, check, named
from spark.run_context import RunContext


def acls_synced(mirror: Mirror, metadata: Metadata) -> Check:
    """The target has every ACL of mirrored topics that MirrorMaker copies."""
    missing = metadata.missing_acls(mirror)
    sides = [side for side in (metadata.source_acls, metadata.target_acls) if side is not None]
    refused = [side.refused for side in sides if side.refused is not None]
    wanted = expected_acls(mirror, metadata.source_acls.acls) if metadata.source_acls is not None else {}
    good = f"{len(wanted)} ACLs" if wanted else f"{NOTHING}: no ACL of a mirrored topic's literal name is to be copied"
    return Check(
        name="acls_synced",
        ok=None if refused or not wanted else not missing,
        expected="every ACL that MirrorMaker copies is on the target",
        observed=refused[0] if refused else named([f"missing: {acl}" for acl in missing]) if missing else good,
        evidence=[{"missing": str(acl), "source": str(origin)} for acl, origin in missing.items()],
    )


@check(
    "acls_synced",
    after="internal_topics",
    needs_records=False,
    left_out=lambda mirror: None if mirror.sync_topic_acls else "the mirror does not copy ACLs (sync.topic.acls)",
    remedy=Remedy(
        text="Turn on sync.topic.acls.enabled, or add the missing ACLs on the target.",
        commands=(DOCTOR,),
        page="docs/mirrors.md#rights",
    ),
)
def _acls_synced(context: RunContext) -> Check:
    return acls_synced(context.request.mirror, context.metadata)


def standby_read_only(side: ClusterConfig, rights: BrokerRights | None, topics: Iterable[str]) -> Check:
    """No access rule lets a principal write; brokers, the operator and the mirror's own user are left out.

    Super users need no rule, and no broker shows who they are: the check does not judge them, and says so.

    Args:
        side: The side that is not active, as the mirror's user reaches it.
        rights: What the cluster says of rights; None if it was not asked.
        topics: The mirrored topics by their names there.
    """
    names = sorted(topics)
    own = principal(side)
    seen = writers(rights or BrokerRights(rules=None, unknown=("it was not asked",)), names)
    found = seen.without(lambda each: each == own or is_operators(each))
    may_write = [f"{each} ({why})" for each, why in sorted(found.principals.items())]
    if may_write:
        observed = f"on {side.role} {side.alias} may write: {named(may_write)}"
    elif found.unknown or not names:
        observed = "; ".join(found.unknown) or NOTHING
    else:
        observed = f"no rule lets anybody write {len(names)} topics of {side.role} {side.alias} (super users need none)"
    return Check(
        name="standby_read_only",
        ok=False if may_write else True if names and not found.unknown else None,
        expected="no rule lets anybody but the mirror write the mirrored topics on the side that is not active",
        observed=observed,
        evidence=[{"principal": each, "by": why} for each, why in sorted(found.principals.items())],
    )


def principal(side: ClusterConfig) -> str:
    """Return the principal of the mirror's user on a side: its login, else the subject of its certificate."""
    login = side.client_config.get("sasl.username")
    return f"User:{login or subject(side.client_config) or 'ANONYMOUS'}"


def _left_out(mirror: Mirror) -> str | None:
    return None if mirror.active is not None else "the request does not say which side is active"


@check(
    "standby_read_only",
    after="connectors_running",
    needs_records=False,
    left_out=_left_out,
    remedy=Remedy(
        text="Take the right to write from whom it names: a user of the stack gets it back with `ops failover`, a rule "
        "made by hand is removed. If it is unknown, grant the mirror's user Describe on the cluster.",
        commands=(DOCTOR,),
        page="docs/mirrors.md#the-fence",
    ),
)
def _standby_read_only(context: RunContext) -> Check:
    request = context.request
    there: Mapping[str, str] = {name: request.mirror.target_topic(name) for name in context.source_topics}
    if request.mirror.active == "target":
        return standby_read_only(request.source, context.metadata.standby_rights, there)
    topics = [name for name in there.values() if name in context.target_topics]
    return standby_read_only(request.target, context.metadata.standby_rights, topics)
