"""Copies of Secrets: whose they were before, and when mirrors may start."""

from ...support.pulumi_engine import Engine, mirror, target, up

PARENT = "urn:pulumi:stg::rt-inventory::rt-inventory:kafka:MirrorMaker2::mm2"


def test_a_copy_is_known_by_the_name_that_it_had_when_its_mirror_owned_it() -> None:
    engine = Engine()
    up(engine, target())
    for secret in ("rt-inv-dev-user", "rt-inventory-dev-cluster-ca-cert"):
        (alias,) = engine.asked(f"secrets-stg/{secret}").aliases
        assert (alias.spec.name, alias.spec.parentUrn) == (f"mm2-{secret}", PARENT)


def test_copies_of_a_namespace_and_a_name_are_never_mistaken_for_others() -> None:
    engine = Engine()
    flows = [mirror(name=name, namespace=place) for name, place in (("a", "stg-one"), ("b", "stg"))]
    up(engine, target(mirrors=flows))
    copied = {name for kind, name in engine.resources if kind == "v1:Secret" and "rt-inv-dev-user" in name}
    assert copied == {"secrets-stg-one/rt-inv-dev-user", "secrets-stg/rt-inv-dev-user"}


def test_a_mirror_waits_for_its_secrets_users_and_topics() -> None:
    engine = Engine()
    topics = [{"name": "audit", "partitions": 1, "replicas": 3}]
    up(engine, target(topics=topics, mirrors=[mirror(internalTopics="declared")]))
    needed = {urn.rsplit("::", 1)[-1] for urn in engine.asked("mm2").dependencies}
    assert {
        "secrets-stg/rt-inv-dev-user",
        "secrets-stg/rt-inventory-dev-cluster-ca-cert",
        "users-writer",
        "topics-audit",
        "internal-topics-mm2-offsets",
    } <= needed


def test_the_namespace_exists_before_anything_in_it() -> None:
    engine = Engine()
    up(engine, target(mirrors=[mirror(namespace="mirrors")]))
    needed = {urn.rsplit("::", 1)[-1] for urn in engine.asked("secrets").dependencies}
    assert {"namespaces-stg", "namespaces-mirrors"} <= needed
