"""KafkaMirrorMaker2: connectors over REST, their state in the status, and what is asked of the workers under them.

The workers are processes of their own, and `workers` writes the files of their secrets too.
"""

import logging
import shutil
import time
from dataclasses import dataclass
from typing import Any

from . import NotReadyError, connect, connectors, metrics_config
from .connect import Rest
from .connectors import Connector, connector_problem, has_failed
from .kubernetes_api import MIRROR, Kubernetes, Object
from .reconcile import AGAIN_S, Outcome
from .workers import MirrorSecrets, Workers, WorkerTools, stop_all

logger = logging.getLogger(__name__)

ACTIONS = {"paused": "pause", "stopped": "stop", "running": "resume"}
FIRST_RESTART_S, LAST_RESTART_S = 10, 600


@dataclass
class Mirrors:
    """Reconciler of KafkaMirrorMaker2."""

    kubernetes: Kubernetes
    tools: WorkerTools
    resource = MIRROR
    finalizer: str | None = "sandbox.strimzi.io/processes"

    def reconcile(self, resource: Object) -> Outcome:
        """Run the workers and keep the connectors as in the spec; see `Reconciler`."""
        namespace, name, spec = resource["metadata"]["namespace"], resource["metadata"]["name"], resource["spec"]
        folder = self.tools.folder / namespace / name / "secrets"
        secrets = MirrorSecrets(self.kubernetes, namespace, name, spec, folder)
        workers = Workers(self.tools, resource, secrets, metrics_config.read(self.kubernetes, resource, spec))
        secrets.write()
        status: dict[str, Any] = {
            "url": workers.url(0),
            "replicas": workers.replicas,
            "labelSelector": f"strimzi.io/cluster={name},strimzi.io/name={name}-mirrormaker2,"
            "strimzi.io/kind=KafkaMirrorMaker2",
        }
        workers.run(status)
        if workers.replicas == 0:
            return Outcome({**status, "connectors": []}, again_s=10.0)
        rest = workers.rest(status)
        try:
            wanted = connectors.definitions(name, spec, folder)
            states = _keep_connectors(workers, secrets, rest, wanted)
            status["connectors"] = [
                states[entry.name]["status"] for entry in wanted if "status" in states.get(entry.name, {})
            ]
            warnings = connect.manage_offsets(self.kubernetes, resource, rest, wanted, states)
            _check(workers, rest, wanted, states, status)
        finally:
            rest.close()
        return Outcome(status, again_s=AGAIN_S, warnings=warnings)

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Stop the workers and remove their files; topics on the clusters stay, as with Strimzi."""
        stop_all(self.tools, namespace, name)
        shutil.rmtree(self.tools.folder / namespace / name, ignore_errors=True)

    def stored(self) -> list[tuple[str, str]]:
        """Namespace and name of every mirror that has files here."""
        found = self.tools.folder.glob("*/*/layout.json")
        return sorted((path.parent.parent.name, path.parent.name) for path in found)


def _keep_connectors(
    workers: Workers, secrets: MirrorSecrets, rest: Rest, wanted: list[Connector]
) -> dict[str, dict[str, Any]]:
    """Create, change and delete connectors until they are as wanted, and return Connect's answers by connector name.

    A connector reads its secrets when it starts, so it is restarted when one of its two sides has new ones; the
    connectors of other sources go on.
    """
    have, changed = rest.connectors(), False
    for name in sorted(have.keys() - {entry.name for entry in wanted}):
        logger.info("%s: delete connector %s", workers.name, name)
        rest.delete(name)
        changed = True
    applied: dict[str, str] = workers.memory.setdefault("applied", {})
    sources = {mirror["source"]["alias"]: mirror["source"] for mirror in workers.spec["mirrors"]}
    for entry in wanted:
        used = secrets.fingerprint(workers.spec["target"], sources[entry.source_alias])
        known = have.get(entry.name)
        if known is None or known["info"]["config"] != entry.config:
            logger.info("%s: %s connector %s", workers.name, "change" if known else "create", entry.name)
            rest.put(entry.name, entry.config)
            workers.changed()
            changed = True
        elif applied.get(entry.name, used) != used:
            logger.info("%s: restart connector %s with its new secrets", workers.name, entry.name)
            rest.restart(entry.name, only_failed=False)
            workers.changed()
            changed = True
        state = known["status"]["connector"]["state"].lower() if known else "running"
        if entry.state != state and (entry.state != "running" or state in ("paused", "stopped")):
            rest.state(entry.name, ACTIONS[entry.state])
            changed = True
        if applied.get(entry.name) != used:
            applied[entry.name] = used
            workers.save()
    return rest.connectors() if changed else have


def _check(
    workers: Workers, rest: Rest, wanted: list[Connector], states: dict[str, dict[str, Any]], status: dict[str, Any]
) -> None:
    """Raise NotReadyError if a connector or a worker is not well; restart what failed where that is asked for."""
    known = {name: state["status"] for name, state in states.items() if "status" in state}
    for entry in wanted:
        if entry.auto_restart and has_failed(known.get(entry.name)):
            _auto_restart(workers, rest, entry)
    for entry in wanted:
        if problem := connector_problem(workers.name, entry, known.get(entry.name)):
            raise NotReadyError(problem[0], problem[1], retry_s=2.0, status=dict(status))
    # The one that was asked for the connectors has answered just now.
    others = [replica for replica in range(workers.replicas) if workers.url(replica) != rest.url]
    dead = [replica for replica in others if not workers.answers(replica)]
    if dead:
        raise workers.down(dead, status)


def _auto_restart(workers: Workers, rest: Rest, entry: Connector) -> None:
    """Restart what failed, ever less often and at most `maxRestarts` times."""
    histories: dict[str, Any] = workers.memory.setdefault("restarts", {})
    history = histories.setdefault(entry.name, {"count": 0, "at": 0.0})
    wait_s = min(LAST_RESTART_S, FIRST_RESTART_S * 2 ** history["count"])
    if time.time() < history["at"] + wait_s:
        return
    if entry.max_restarts is not None and history["count"] >= entry.max_restarts:
        return
    rest.restart(entry.name, only_failed=True)
    history.update(count=history["count"] + 1, at=time.time())
    workers.save()
