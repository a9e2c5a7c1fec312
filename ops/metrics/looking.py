"""One look at the mirrors of a stack for their metrics. What fails is told as such, never as values of an earlier look.

Owns the metrics about the look itself. Does not own what is seen: that is the look of `ops status`.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from confluent_kafka import KafkaException

from ops import verify
from ops.connection import PROJECT, stack_outputs
from ops.doctor import cluster_looks, connect_looks
from ops.errors import OpsError
from ops.metrics import inventory, proofs
from ops.metrics.families import Family, merged
from ops.recovery import pair as pairs
from ops.recovery import sight
from ops.recovery.pair import Pair
from spark.clusters.cluster import Cluster
from spark.errors import VerificationError

MIRRORS_AT_ONCE = 4
ANSWER_WITHIN_S = 3.0
FORESEEN = (OpsError, VerificationError, KafkaException, OSError)
TIMESTAMP, DURATION, ERROR = (
    f"{inventory.PREFIX}_status_timestamp_seconds",
    f"{inventory.PREFIX}_status_duration_seconds",
    f"{inventory.PREFIX}_status_error",
)
_HELP = {
    TIMESTAMP: "When the last look that succeeded was taken.",
    DURATION: "How long the last look that succeeded took.",
    ERROR: "1 if the last look failed, so that nothing else is known now; 0 if it succeeded.",
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look brought: metrics, the mirrors that were seen, and what went wrong.

    `errors` are by mirror, "" for the stack itself; `unknown` says in words what could not be learned of a mirror that
    was looked at.
    """

    stack: str
    families: list[Family] = field(default_factory=list)
    mirrors: tuple[str, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def look(
    stack: str,
    mirror: str | None,
    environment: Mapping[str, str],
    folder: Path = PROJECT,
    *,
    verified: bool = True,
    debug: bool = False,
) -> Look:
    """Look at one mirror of a stack, or at all of them; an error is in the result, an unforeseen one by its type only.

    With `verified` the metrics of the last verification are among the others, with `debug` an unforeseen error is
    raised.
    """
    began, label = time.monotonic(), verify.label_of(stack)
    try:
        outputs = stack_outputs(stack, environment, folder)
        names = [mirror] if mirror is not None else pairs.names(outputs)
        if not names:
            verify.plan(stack, outputs)  # says that there is none
        known = {name: pairs.of_outputs(stack, outputs, name, environment, folder) for name in names}
    except Exception as error:
        if debug and not isinstance(error, FORESEEN):
            raise
        return failed(stack, mirror, words(error))
    with ThreadPoolExecutor(MIRRORS_AT_ONCE) as pool:
        asked = {name: pool.submit(_mirror, one, environment, began, verified=verified) for name, one in known.items()}
        found: list[Family] = []
        errors: dict[str, str] = {}
        unknown: list[str] = []
        for name, future in asked.items():
            try:
                told, lacking = future.result()
            except Exception as error:
                if debug and not isinstance(error, FORESEEN):
                    raise
                errors[name] = words(error)
                found += [status(ERROR, 1, label, name)]
            else:
                found += told
                unknown += [f"mirror {name}: {what} is unknown: {why}" for what, why in lacking.items()]
    return Look(stack=label, families=merged(found), mirrors=tuple(asked), errors=errors, unknown=tuple(unknown))


def failed(stack: str, mirror: str | None, why: str, mirrors: Iterable[str] = ()) -> Look:
    """Return a look that brought nothing, for the mirror or those that are known, else for the stack."""
    names, label = tuple(mirrors) or (mirror or "",), verify.label_of(stack)
    told = merged(status(ERROR, 1, label, name) for name in names)
    return Look(stack=label, families=told, mirrors=names if names != ("",) else (), errors=dict.fromkeys(names, why))


def status(name: str, value: float, stack: str, mirror: str) -> Family:
    """Return a metric about the look at a mirror."""
    return Family(name=name, text=_HELP[name], samples=[({"stack": stack, "mirror": mirror}, float(value))])


def words(error: Exception) -> str:
    """Return what may be said of an error: of one that nobody foresaw the type alone, its text may hold a secret."""
    if not isinstance(error, FORESEEN):
        return f"the look must not meet an error that it does not foresee (got {type(error).__name__}). Report it."
    return str(error.args[0].str()) if isinstance(error, KafkaException) else str(error)


def _mirror(
    pair: Pair, environment: Mapping[str, str], began: float, *, verified: bool
) -> tuple[list[Family], Mapping[str, str]]:
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(_certificates, cluster) for cluster in (pair.source(), pair.target())]
        seen = sight.look(pair, environment)
        certificates = [one for future in asked for one in future.result()]
    told = [
        *inventory.families(seen, certificates),
        status(TIMESTAMP, seen.at, pair.label, pair.mirror),
        status(DURATION, time.monotonic() - began, pair.label, pair.mirror),
        status(ERROR, 0, pair.label, pair.mirror),
        *(proofs.families(pair) if verified else []),
    ]
    # The journal of failovers needs access to Kubernetes, which an exporter may lack: no metric is missing without it.
    return told, {what: why for what, why in seen.unknown.items() if what != sight.RECOVERY}


def _certificates(cluster: Cluster) -> list[tuple[str, datetime]]:
    """What the doctor sees: what the client holds, and what brokers show at the addresses that they advertise."""
    config = cluster.side.client_config
    addresses = set(connect_looks.servers(config.get("bootstrap.servers", "")))
    if "SSL" not in config.get("security.protocol", "").upper():
        return []
    try:
        cluster.connect(ANSWER_WITHIN_S)
        brokers = cluster.admin.list_topics(timeout=ANSWER_WITHIN_S).brokers
        addresses |= {f"{one.host}:{one.port}" for one in brokers.values()}
    except (VerificationError, KafkaException):
        pass  # what the client holds is known all the same
    shown = cluster_looks.certificates(config, addresses)
    return [(f"{cluster.side.role}: {one.what}", one.ends) for one in shown]
