"""Check of the ACLs that the mirror copies."""

from spark.checks.check import NOTHING, Check, named
from spark.clusters.acls import copies
from spark.clusters.metadata import Metadata
from spark.request.model import Mirror


def acls_synced(mirror: Mirror, metadata: Metadata) -> Check:
    """The target has every ACL of mirrored topics that MirrorMaker copies."""
    missing = metadata.missing_acls(mirror)
    sides = [side for side in (metadata.source_acls, metadata.target_acls) if side is not None]
    refused = [side.refused for side in sides if side.refused is not None]
    wanted = copies(mirror, metadata.source_acls.acls) if metadata.source_acls is not None else {}
    good = f"{len(wanted)} ACLs" if wanted else f"{NOTHING}: no ACL of a mirrored topic's literal name is to be copied"
    return Check(
        name="acls_synced",
        ok=None if refused or not wanted else not missing,
        expected="every ACL that MirrorMaker copies is on the target",
        observed=refused[0] if refused else named([f"missing: {acl}" for acl in missing]) if missing else good,
        evidence=[{"missing": str(acl), "source": str(origin)} for acl, origin in missing.items()],
    )
