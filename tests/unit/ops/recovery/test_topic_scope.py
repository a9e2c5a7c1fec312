"""What a failover of topics changes: the stack file, and what the next `up` would write of mirror and users."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import failover_scope, mirror_context
from ops.recovery.failover_scope import SomeTopics
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.topic_selection import TopicSelection
from settings.mirror_parts import FailedOver
from tests.support.applied_objects import MANAGER, AppliedObjects
from tests.support.mirror_api_server import serving
from tests.support.pulumi_engine import Engine, mirror, revealed, target, up
from tests.support.recovery_pair import Kept, Side, entry

TOPICS = ["items", r"store\..*"]
SHOP = {"name": "shop", "acls": [{"type": "topic", "names": ["*"], "operations": ["Read", "Write"]}]}
PLURALS = {"v1:KafkaMirrorMaker2": "kafkamirrormaker2s", "v1:KafkaUser": "kafkausers"}
OURS = {"managedFields", "generation", "resourceVersion"}
EARLIER = FailedOver(topics=("items",), groups=("orders",))


def settings(**changed: Any) -> dict[str, Any]:
    return target(mirrors=[mirror(topics=TOPICS, **changed)], users=[{"name": "writer"}, SHOP])


def program(moved: dict[str, Any] | None = None, **changed: Any) -> Engine:
    """What `pulumi up` makes of the stack."""
    engine = Engine()
    up(engine, settings(**changed, **({"failedOver": moved} if moved else {})))
    return engine


@dataclass
class Site:
    """A folder with the stack file, the API server of the target as `up` left it, and the mirror's source."""

    pair: MirrorContext
    folder: Path
    server: AppliedObjects
    source: Side
    environment: dict[str, str]

    @property
    def file(self) -> Path:
        return self.folder / "Pulumi.stg.yaml"

    @property
    def declared(self) -> Any:
        config = yaml.safe_load(self.file.read_text("utf-8"))["config"]
        return config["rt-inventory:mirrors"][0].get("failedOver")

    def scope(self, *topics: str, earlier: FailedOver | None = None) -> SomeTopics:
        chosen = TopicSelection(pattern="any", topics=topics, earlier=earlier)
        journal = Kept(entry(finished=None, stop={}))
        return failover_scope.of(self.pair, chosen, self.file, journal, self.environment, lambda _: None)

    def is_as_of(self, engine: Engine) -> None:
        for kind, plural in PLURALS.items():
            for (_, name), inputs in engine.all(kind).items():
                held = {key: value for key, value in self.server.objects[plural, name].items() if key != "status"}
                held["metadata"] = {key: value for key, value in held["metadata"].items() if key not in OURS}
                assert held == as_held(inputs), f"{kind} {name}"


def as_held(inputs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = revealed(inputs)
    return {key: value for key, value in found.items() if value is not None and key != "status"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    server, engine = AppliedObjects(), Engine()
    exports = up(engine, settings()).exports
    for kind, plural in PLURALS.items():
        for inputs in engine.all(kind).values():
            server.hold(plural, as_held(inputs))
    password = {"password": base64.b64encode(b"generated-password").decode()}
    server.hold("secrets", {"metadata": {"name": "writer", "namespace": "stg"}, "data": password})
    document = {"config": {f"rt-inventory:{key}": value for key, value in settings().items()}}
    (tmp_path / "Pulumi.stg.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    source = Side("es-src", {TopicPartition(name, 0): 5 for name in ("items", "store.eu", "store.us", "local")})
    source.held = {"orders": {TopicPartition("items", 0): 3}, "stock": {TopicPartition("store.eu", 0): 1}}
    source.states = dict.fromkeys(source.held, "EMPTY")
    monkeypatch.setattr(MirrorContext, "source", lambda _: source)
    with serving(server, tmp_path) as environment:
        yield Site(
            mirror_context.of_outputs("stg", exports, "mm2", environment, tmp_path),
            tmp_path,
            server,
            source,
            environment,
        )


def test_stop_and_switch_leave_what_an_up_would_leave_as_its_own_manager(site: Site) -> None:
    scope = site.scope("items")
    scope.stop()
    on_its_way = {"topics": ["items"], "groups": ["orders"], "pending": ["items"]}
    assert site.declared == on_its_way
    site.is_as_of(program(on_its_way))
    scope.require_groups(["orders"])
    scope.switch()
    assert site.declared == {"topics": ["items"], "groups": ["orders"]}
    site.is_as_of(program({"topics": ["items"], "groups": ["orders"]}))
    scope.switch()  # one that is done again
    site.is_as_of(program({"topics": ["items"], "groups": ["orders"]}))
    assert set(site.server.managers) == {MANAGER}
    assert scope.read_back() is site.pair


def test_a_topic_of_a_prefix_leaves_the_others_denied_by_name(site: Site) -> None:
    scope = site.scope("store.eu")
    scope.stop()
    scope.switch()
    moved = {"topics": ["store.eu"], "groups": ["stock"], "readOnly": ["store.us"]}
    assert site.declared == moved
    site.is_as_of(program(moved))


def test_what_is_copied_again_is_as_before(site: Site) -> None:
    scope = site.scope("items")
    scope.stop()
    scope.run_again()
    assert site.declared is None
    site.is_as_of(program())
    scope = site.scope("store.eu", earlier=EARLIER)
    scope.stop()
    scope.run_again()
    assert site.declared == {"topics": ["items"], "groups": ["orders"]}


def test_what_is_copied_again_leaves_the_others_of_an_earlier_prefix_denied_by_name(site: Site) -> None:
    scope = site.scope("items", earlier=FailedOver(topics=("store.eu",), groups=("stock",)))
    scope.stop()
    scope.run_again()
    assert site.declared == {"topics": ["store.eu"], "groups": ["stock"], "readOnly": ["store.us"]}


def test_a_group_that_has_read_a_topic_since_it_was_left_out_is_left_out_first(site: Site) -> None:
    scope = site.scope("items")
    scope.stop()
    with pytest.raises(OpsError, match=r"groups: late must be left out of the mirror before it is set"):
        scope.require_groups(["orders", "late"])
    assert "stop" not in scope.journal.steps


def test_a_group_that_reads_more_by_now_is_refused_before_anything_changes(site: Site) -> None:
    site.source.held["orders"][TopicPartition("store.us", 0)] = 1
    with pytest.raises(OpsError, match=r"orders reads store\.us too"):
        site.scope("items").stop()
    assert site.declared is None
    assert site.server.managers == []


def test_a_mirror_that_copies_the_topics_again_is_not_read_back(site: Site) -> None:
    scope = site.scope("items")
    scope.stop()
    with pytest.raises(OpsError, match="failedOver without items"):
        scope.read_back()
    scope.switch()
    flow = site.server.objects["kafkamirrormaker2s", "mm2"]["spec"]["mirrors"][0]
    flow["topicsExcludePattern"] = "__.*"
    with pytest.raises(OpsError, match="other exclusions of KafkaMirrorMaker2 stg/mm2"):
        scope.read_back()


def test_nothing_is_changed_without_the_lease(site: Site) -> None:
    scope = site.scope("items")
    assert isinstance(scope.journal, Kept)
    scope.journal.lease.lost = True
    with pytest.raises(OpsError):
        scope.stop()
    assert site.declared is None
    assert site.server.managers == []
