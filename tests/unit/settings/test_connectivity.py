"""Who reaches whose brokers: one setting exposes a cluster; what cannot be reached is refused or hinted at."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from settings import SettingsError, contexts, hints, parse
from settings.__main__ import main
from settings.cluster import Cluster

from ...support.stack_values import SOURCE, TARGET, Values, with_value

INSIDE, HIDDEN = with_value(SOURCE, "cluster/expose", None), with_value(TARGET, "cluster/expose", None)


def cluster(**settings: Any) -> Values:
    """A stack with nothing but a cluster."""
    return {"cluster": {"name": "kafka", "namespace": "kafka", **settings}}


def problems(values: Values) -> dict[str, str]:
    """What is wrong with a stack by itself, by key."""
    try:
        parse(values)
    except SettingsError as error:
        return {problem.key: problem.message for problem in error.problems}
    return {}


@pytest.mark.parametrize("type_", ["loadbalancer", "route", "nodeport", "ingress"])
def test_one_setting_adds_a_listener_for_all_who_are_elsewhere(type_: str) -> None:
    host = {"nodeport": {"host": "10.0.0.7"}, "ingress": {"host": "kafka.x", "hostTemplate": "b-{nodeId}.x"}}
    values = cluster(expose={"type": type_, **host.get(type_, {})})
    platform = {"platform": {"type": "strimzi", "distribution": "openshift"}}
    found = parse({**values, **platform}).cluster
    inside, outside = found.all_listeners
    assert (inside.name, inside.type, inside.port) == ("tls", "internal", 9093)
    assert (outside.name, outside.type, outside.port) == ("external", type_, 9094)
    assert (found.client_listener, found.outside_listener) == (inside, outside)
    assert (outside.tls, outside.authentication) == (inside.tls, inside.authentication)


def test_the_exposed_listener_has_the_login_of_the_one_inside() -> None:
    listeners = [{"name": "plain", "port": 9092}, {"name": "mtls", "port": 9093, "authentication": "tls"}]
    found = parse(cluster(listener="mtls", listeners=listeners, expose={"type": "loadbalancer"})).cluster
    assert [each.name for each in found.all_listeners] == ["plain", "mtls", "external"]
    assert (found.client_listener.name, found.outside_listener.authentication) == ("mtls", "tls")


def test_without_it_everybody_has_the_same_listener() -> None:
    found = Cluster.model_validate({"name": "kafka", "namespace": "kafka"})
    assert found.outside_listener == found.client_listener
    assert not found.is_reached_from_outside


OUTSIDE = {"name": "external", "port": 9095, "type": "loadbalancer"}


@pytest.mark.parametrize(
    ("settings", "key", "message"),
    [
        ({"expose": {"type": "route"}}, "cluster.expose.type", r"type must not be route on kubernetes"),
        ({"expose": {"type": "internal"}}, "cluster.expose.type", r"got 'internal', allowed route, loadbalancer"),
        ({"expose": {"type": "ingress"}}, "cluster.expose.host", r"host and hostTemplate must be given with ingress"),
        ({"expose": {"type": "nodeport"}}, "cluster.expose.host", r"host must be given with nodeport \(got nothing\)"),
        (
            {"expose": {"type": "loadbalancer", "port": 9093}},
            "cluster.expose.port",
            r"port must be its own \(got 9093, as listener tls\)",
        ),
        (
            {"expose": {"type": "loadbalancer", "port": 9404}},
            "cluster.expose.port",
            r"port must be its own \(got 9404, which the operator keeps for metrics\)",
        ),
        (
            {"expose": {"type": "loadbalancer"}, "listeners": [{"name": "tls", "port": 9093}, OUTSIDE]},
            "cluster.expose",
            r"expose must be the only one to make this listener",
        ),
        (
            {"expose": {"type": "loadbalancer"}, "listeners": [{**OUTSIDE, "name": "lb"}]},
            "cluster.expose",
            r"expose must come with an internal listener in cluster.listener \(got lb of type loadbalancer",
        ),
    ],
)
def test_what_cannot_be_exposed_is_refused_with_the_remedy(settings: Values, key: str, message: str) -> None:
    found = problems(cluster(**settings))
    assert list(found) == [key]
    with pytest.raises(SettingsError, match=message):
        parse(cluster(**settings))


def test_a_mirror_in_another_kubernetes_cluster_than_a_hidden_source_is_refused() -> None:
    apart = {"dev": "site-a", "stg": "site-b"}
    with pytest.raises(SettingsError) as error:
        parse(TARGET, "stg", {"dev": INSIDE}, contexts=apart)
    assert [(problem.key, problem.message) for problem in error.value.problems] == [
        (
            "mirrors[0].source.stack",
            "mirror mm2: source.stack must expose its brokers to other Kubernetes clusters (got listener tls of type "
            "internal on stack dev in context site-a, and this stack in context site-b). Set cluster.expose in "
            "Pulumi.dev.yaml. If both are one Kubernetes cluster, give both stacks one kubernetes:context.",
        )
    ]
    for fine in (apart | {"dev": "site-b"}, {"stg": "site-b"}, {}):
        parse(TARGET, "stg", {"dev": INSIDE}, contexts=fine)
    parse(TARGET, "stg", {"dev": SOURCE}, contexts=apart)
    external = with_value(INSIDE, "cluster", {"name": "x", "namespace": "x", "external": {"bootstrapServers": ["h:1"]}})
    assert not [hint for hint in hints(TARGET, "stg", {"dev": external}) if "Kubernetes" in hint.message]


def test_clusters_that_only_their_own_kubernetes_cluster_reaches_are_hinted_at() -> None:
    mirror, proof = hints(HIDDEN, "stg", {"dev": INSIDE})[-2:]
    assert mirror.key == "mirrors[0].source.stack"
    assert "brokers of stack dev are reached only within their Kubernetes cluster" in mirror.message
    assert mirror.message.endswith("set cluster.expose in Pulumi.dev.yaml.")
    assert proof.key == "verification.run.how"
    assert "beside Pulumi, and the brokers of stg and dev are reached only within Kubernetes" in proof.message


def test_who_verifies_in_the_cluster_or_never_needs_nothing_exposed_at_the_target() -> None:
    job = {"run": {"how": "job", "image": "registry/verification:1.2.3"}}
    for verification in (job, {"when": "never"}):
        assert not [
            hint
            for hint in hints({**HIDDEN, "verification": verification}, "stg", {"dev": SOURCE})
            if "Kubernetes" in hint.message
        ]
    assert not [hint for hint in hints(TARGET, "stg", {"dev": SOURCE}) if "Kubernetes" in hint.message]


def test_a_network_policy_that_nobody_asked_for_is_hinted_at() -> None:
    """Ours alone isolates the workers where the operator makes no policies."""

    def found(**given: Any) -> list[str]:
        run = {"how": "job", "image": "registry/verification:1.2.3", **given}
        reported = hints({**TARGET, "verification": {"run": run}}, "stg", {"dev": SOURCE})
        return [hint.message for hint in reported if hint.key == "verification.run.networkPolicy"]

    (message,) = found()
    assert "STRIMZI_NETWORK_POLICY_GENERATION=false" in message
    for given in ({"networkPolicy": True}, {"networkPolicy": False}, {"how": "local", "image": None}):
        assert found(**given) == []


def kubeconfig(path: Path, **servers: str) -> None:
    """A kubeconfig with a context for each of these API servers."""
    contexts = [{"name": name, "context": {"cluster": f"of-{name}", "user": "me"}} for name in servers]
    clusters = [{"name": f"of-{name}", "cluster": {"server": server}} for name, server in servers.items()]
    path.write_text(yaml.safe_dump({"contexts": contexts, "clusters": clusters}), encoding="utf-8")


def test_check_reads_the_contexts_of_the_stack_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "kubeconfig"
    kubeconfig(config, **{"site-a": "https://a:6443", "site-b": "https://b:6443"})
    monkeypatch.setenv("KUBECONFIG", str(config))
    text = """\
config:
  kubernetes:context: {context}
  rt-inventory:cluster: {{name: {name}, namespace: {name}, brokers: 3{expose}}}
  rt-inventory:users: [{{name: user}}]
"""
    mirror = """\
  rt-inventory:mirrors:
    - {name: mm2, source: {stack: dev, alias: a, user: user}, target: {alias: b, user: user}, topics: [items]}
"""
    (tmp_path / "Pulumi.dev.yaml").write_text(text.format(context="site-a", name="dev", expose=""))
    path = tmp_path / "Pulumi.stg.yaml"
    path.write_text(text.format(context="site-b", name="stg", expose="") + mirror)
    assert contexts(tmp_path) == {"dev": "site-a", "stg": "site-b"}
    assert main(["check", str(path)]) == 2
    assert "on stack dev in context site-a, and this stack in context site-b" in capsys.readouterr().err
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))  # two contexts may be of one cluster
    assert main(["check", str(path)]) == 0
    kubeconfig(config, **{"site-a": "https://a:6443", "site-b": "https://a:6443/"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{config}")
    assert main(["check", str(path)]) == 0
    kubeconfig(config, **{"site-a": "https://a:6443", "site-b": "https://b:6443"})
    assert main(["check", str(path)]) == 2
    own = path.read_text()
    path.write_text(own.replace("config:\n", "config:\n  kubernetes:kubeconfig: of-another-machine\n"))
    assert main(["check", str(path)]) == 0
    path.write_text(own)
    config.write_text("- no kubeconfig: [")
    assert main(["check", str(path)]) == 0
    (tmp_path / "Pulumi.dev.yaml").write_text(
        text.format(context="site-a", name="dev", expose=", expose: {type: loadbalancer}")
    )
    assert main(["check", str(path)]) == 0
