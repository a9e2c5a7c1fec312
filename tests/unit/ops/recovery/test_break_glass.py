"""A failover without Pulumi: what it reads beside the mirror, and that it writes what `pulumi up` would write."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from contract.stack_outputs import KEY
from ops.errors import OpsError
from ops.pulumi.process import UnreachableError
from ops.recovery import break_glass, failover_result, kubernetes_access, mirror_context
from ops.recovery.break_glass import DirectChanges
from settings.users import ACTIVE_LABEL
from tests.support.applied_objects import MANAGER, AppliedObjects
from tests.support.mirror_api_server import serving
from tests.support.pulumi_engine import Engine, mirror, revealed, target, up
from tests.support.recovery_project import Project

CLIENTS = {"source": "rt-inv-dev-user", "target": "shop"}
USERS = [{"name": "writer"}, {"name": "shop", "aclSets": [{"set": "producer", "topics": ["items"]}]}]
PLURALS = {"v1:Secret": "secrets", "v1:KafkaMirrorMaker2": "kafkamirrormaker2s", "v1:KafkaUser": "kafkausers"}
CREDENTIALS = {"writer": "generated-password", "shop": "generated-password"}
OURS = {"managedFields", "generation", "resourceVersion"}


def settings(**changed: Any) -> dict[str, Any]:
    return target(mirrors=[mirror(clients=CLIENTS, **changed)], users=USERS)


@cache
def program(**changed: str) -> Engine:
    """What `pulumi up` makes of the stack."""
    engine = Engine()
    up(engine, settings(**changed))
    return engine


@dataclass
class Site:
    """A folder with the stack file, and the API server of the target as `up` left it."""

    folder: Path
    server: AppliedObjects
    environment: dict[str, str]

    def changes(self, **more: Any) -> DirectChanges:
        make = partial(break_glass.direct_changes, "mm2")
        return make(folder=self.folder, name="stg", environment=self.environment, **more)

    def held(self, plural: str, name: str) -> dict[str, Any]:
        found = dict(self.server.objects[plural, name])
        found.pop("status", None)
        return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key not in OURS}}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    server = AppliedObjects()
    for kind, plural in PLURALS.items():
        for inputs in program().all(kind).values():
            server.hold(plural, as_held(inputs))
    for name, password in CREDENTIALS.items():  # written by the operator
        data = {"password": base64.b64encode(password.encode()).decode()}
        document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "stg"}, "data": data}
        server.hold("secrets", document, "strimzi-user-operator")
    document = {"config": {f"rt-inventory:{key}": value for key, value in settings().items()}}
    (tmp_path / "Pulumi.stg.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    with serving(server, tmp_path) as environment:
        yield Site(tmp_path, server, environment)


def as_held(inputs: dict[str, Any]) -> dict[str, Any]:
    """A resource as the API server has it."""
    found: dict[str, Any] = revealed(inputs)
    text = found.pop("stringData", None) or {}
    if text:
        found["data"] = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
    return {key: value for key, value in found.items() if value is not None and key != "status"}


def test_the_mirror_is_found_by_the_stack_file_and_is_as_pulumi_knows_it(site: Site) -> None:
    known = break_glass.load("stg", None, site.environment, site.folder)
    engine = Engine()
    seen = up(engine, settings())
    wanted = mirror_context.of_outputs("stg", seen.exports, "mm2", site.environment, site.folder)
    assert known.plan.secrets == wanted.plan.secrets
    assert known.request == wanted.request
    assert (known.outputs, known.cluster) == (wanted.outputs, wanted.cluster)
    assert known.source_cluster is not None
    assert known.source_cluster.name == "rt-inventory-dev"


def test_stop_and_switch_leave_what_an_up_would_leave_as_its_own_manager(site: Site) -> None:
    changes, said = site.changes(), list[str]()
    changes.set_mirror("mm2", {"state": "stopped"})
    changes.up(None, said.append)
    stopped = program(state="stopped")
    for kind, plural in PLURALS.items():
        for (_, name), inputs in stopped.all(kind).items():
            assert site.held(plural, name) == as_held(inputs), f"{kind} {name}"
    changes.set_mirror("mm2", {"state": "stopped", "active": "target"})
    changes.up("mm2", said.append)
    switched = program(state="stopped", active="target")
    for kind, plural in PLURALS.items():
        for (_, name), inputs in switched.all(kind).items():
            assert site.held(plural, name) == as_held(inputs), f"{kind} {name}"
    assert set(site.server.managers) == {MANAGER}
    assert changes.outputs()["mirrors"]["mm2"]["active"] == "target"
    assert any("KafkaMirrorMaker2 stg/mm2" in line for line in said)
    assert not [line for line in said if "generated-password" in line]
    entry = yaml.safe_load(changes.file.read_text(encoding="utf-8"))["config"]["rt-inventory:mirrors"][0]
    assert (entry["state"], entry["active"]) == ("stopped", "target")


def test_a_mirror_that_was_stopped_too_early_runs_again(site: Site) -> None:
    changes = site.changes()
    for state in ("stopped", "running"):
        changes.set_mirror("mm2", {"state": state})
        changes.up(None, lambda _: None)
    (inputs,) = program().all("v1:KafkaMirrorMaker2").values()
    assert site.held("kafkamirrormaker2s", "mm2") == as_held(inputs)


def test_what_somebody_else_owns_stays(site: Site) -> None:
    held = site.server.objects["kafkamirrormaker2s", "mm2"]
    held["metadata"]["annotations"] = {**held["metadata"].get("annotations", {}), "strimzi.io/restart": "x"}
    held["spec"]["replicas"] = 7
    for entry in held["metadata"]["managedFields"]:
        entry["fieldsV1"]["f:spec"].pop("f:replicas")
    site.changes().set_mirror("mm2", {"state": "stopped"})
    site.changes().up(None, lambda _: None)
    after = site.held("kafkamirrormaker2s", "mm2")
    assert (after["spec"]["replicas"], after["metadata"]["annotations"]["strimzi.io/restart"]) == (7, "x")


def test_a_clients_secret_that_did_not_exist_is_made(site: Site) -> None:
    del site.server.objects["secrets", "mm2-clients"]
    changes = site.changes()
    changes.set_mirror("mm2", {"state": "stopped", "active": "target"})
    changes.up("mm2", lambda _: None)
    inputs = as_held(program(state="stopped", active="target").one("v1:Secret", "mm2-clients"))
    held = site.held("secrets", "mm2-clients")
    assert (held["data"], held["type"]) == (inputs["data"], inputs["type"])


def test_nothing_is_changed_without_permission(site: Site) -> None:
    def refuse() -> None:
        raise OpsError("the Lease is lost")

    changes = site.changes(require_permission=refuse)
    for change in (lambda: changes.set_mirror("mm2", {"state": "stopped"}), lambda: changes.up(None, lambda _: None)):
        with pytest.raises(OpsError, match="the Lease is lost"):
            change()
    assert not site.server.managers


def test_a_resource_that_does_not_become_ready_is_an_error_with_the_reason(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "READY_WITHIN_S", 0.0)
    site.server.ready = False
    changes = site.changes()
    changes.set_mirror("mm2", {"state": "stopped"})
    with pytest.raises(OpsError, match="KafkaMirrorMaker2 stg/mm2: must be Ready within 0 s"):
        changes.up(None, lambda _: None)
    assert changes.outputs()["mirrors"]["mm2"]["state"] == "running"


def test_a_missing_copy_credential_or_mirror_is_named(site: Site) -> None:
    with pytest.raises(OpsError, match=r"stack stg: --mirror must be one of .* \(got other, allowed mm2\)"):
        break_glass.load("stg", "other", site.environment, site.folder)
    with pytest.raises(OpsError, match="needs its stack file"):
        break_glass.load("prod", None, site.environment, site.folder)
    writer = site.server.objects.pop(("secrets", "writer"))
    with pytest.raises(OpsError, match="Secret stg/writer: must have the key password"):
        break_glass.load("stg", None, site.environment, site.folder)
    site.server.objects["secrets", "writer"] = writer
    site.server.objects["secrets", "mm2-break-glass"]["data"][KEY] = base64.b64encode(b'{"outputs": 1}').decode()
    with pytest.raises(OpsError, match=r"Secret stg/mm2-break-glass: outputs\.json must be one of this release"):
        break_glass.load("stg", None, site.environment, site.folder)
    del site.server.objects["secrets", "mm2-break-glass"]
    with pytest.raises(OpsError, match="Secret stg/mm2-break-glass: must exist for --break-glass"):
        break_glass.load("stg", None, site.environment, site.folder)


def test_the_active_side_is_known_by_the_copys_label(site: Site) -> None:
    known = break_glass.load("stg", None, site.environment, site.folder)
    assert break_glass.active_side(known, site.environment) == "source"
    site.server.objects["secrets", "mm2-break-glass"]["metadata"]["labels"][ACTIVE_LABEL] = "target"
    assert break_glass.active_side(known, site.environment) == "target"
    del site.server.objects["secrets", "mm2-break-glass"]
    assert break_glass.active_side(known, site.environment) is None
    with pytest.raises(OpsError, match="access must be given"):
        break_glass.active_side(known, {"KUBECONFIG": "/nowhere"})


def test_a_copy_is_up_to_date_whatever_a_failover_changed(site: Site) -> None:
    pair, changes = break_glass.load("stg", None, site.environment, site.folder), site.changes()
    assert break_glass.why_outdated(changes, pair) is None
    changes.set_mirror("mm2", {"state": "stopped", "active": "target"})
    changes.up("mm2", lambda _: None)
    assert break_glass.why_outdated(changes, pair) is None


@pytest.mark.parametrize(
    ("settings_of_the_last_up", "why"),
    [
        ({"topics": ["items", "more"]}, "Secret stg/mm2-break-glass is not of the last `up`"),
        ({"version": "4.2.0"}, "Secret stg/mm2-break-glass is not of the last `up`"),
        (None, "Secret stg/mm2-break-glass: must exist"),
    ],
)
def test_a_copy_that_is_old_or_gone_is_not_used(
    site: Site, settings_of_the_last_up: dict[str, Any] | None, why: str
) -> None:
    engine = Engine()
    seen = up(engine, settings(**(settings_of_the_last_up or {})))
    pair = mirror_context.of_outputs("stg", seen.exports, "mm2", site.environment, site.folder)
    if settings_of_the_last_up is None:
        del site.server.objects["secrets", "mm2-break-glass"]
    assert why in str(break_glass.why_outdated(site.changes(), pair))


@pytest.mark.parametrize("more", [["--dry-run"], ["--unplanned", "--dry-run"]])
def test_the_command_asks_pulumi_nothing(project: Project, monkeypatch: pytest.MonkeyPatch, more: list[str]) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError("Pulumi must not be asked")

    monkeypatch.setattr(mirror_context, "load", fail)
    monkeypatch.setattr(break_glass, "load", lambda *_: project.pair)
    monkeypatch.setattr(break_glass, "find", lambda *_: break_glass.BreakGlassSecret(
        namespace="rt-inventory-stg", mirror="mm2", context=None, environment={}
    ))  # fmt: skip
    found = project.document("failover", "--to", "stg", "--break-glass", *more)
    assert found["warnings"][0] == break_glass.UNSEEN
    assert not project.previewed
    assert project.unchanged


def test_the_summary_names_what_lets_pulumi_take_it_over() -> None:
    done = {
        **dict.fromkeys(("newestMirrored", "clientsSecret", "translationUnknown", "recordsLost", "stranded")),
        "mirror": "mm2",
        "stack": "stg",
        "switchedAt": "then",
        "path": "unplanned",
        "activeOnTarget": [],
        "groups": {},
        "reconcileWith": break_glass.reconcile_command("stg"),
    }
    console = Console(width=200, record=True, file=StringIO())
    console.print(failover_result.summary(done))
    assert "Once its state is in reach again: pulumi up --refresh -s stg" in console.export_text()


def test_commands_with_the_option_name_it_where_the_state_is_out_of_reach(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any) -> Any:
        raise UnreachableError("stack stg: no state.")

    monkeypatch.setattr(mirror_context, "load", unreachable)
    option = "If the bucket or its key is lost: --break-glass."
    for words in (["failover", "--to", "stg"], ["status"]):
        assert project.document(*words, code=2)["error"].endswith(f"log in to the cloud again. {option}")
    found = project.document("failback", "--to", "dev", "--stack", "stg", code=2)["error"]
    assert found.endswith("log in to the cloud again.")
