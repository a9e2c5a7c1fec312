"""Check of the ACLs that the mirror copies."""

from contract.verification_request import Mirror
from kafka.mirror_metadata import Metadata, expected_acls
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
