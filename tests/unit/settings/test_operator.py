"""Where an operator runs, what it watches and what OLM is asked for."""

from typing import Any

import pytest

from settings import parse
from settings.platform import Operator, Platform

from ...support.stack_values import TARGET, with_value


def made(**values: Any) -> Operator:
    return Operator.model_validate(values, by_name=True)


def test_an_operator_runs_and_watches_beside_its_cluster_unless_it_is_reported_otherwise() -> None:
    assert (made().home("kafka"), made().watched("kafka")) == ("kafka", ("kafka",))
    elsewhere = made(namespace="operators", watched_namespaces=("a", "b", "a"))
    assert (elsewhere.home("kafka"), elsewhere.watched("kafka")) == ("operators", ("a", "b"))
    assert made(all_namespaces=True).watched("kafka") == ()


@pytest.mark.parametrize(
    ("platform", "package", "source", "source_namespace"),
    [
        ({}, "strimzi-kafka-operator", "operatorhubio-catalog", "olm"),
        ({"distribution": "openshift"}, "strimzi-kafka-operator", "community-operators", "openshift-marketplace"),
        ({"type": "event-streams"}, "ibm-eventstreams", "ibm-operator-catalog", "openshift-marketplace"),
    ],
)
def test_the_package_comes_from_where_it_is_usually_published(
    platform: dict[str, Any], package: str, source: str, source_namespace: str
) -> None:
    found = made().subscription(Platform.model_validate(platform, by_name=True))
    assert (found.name, found.source, found.source_namespace) == (package, source, source_namespace)


def test_what_is_set_wins_over_what_is_usual() -> None:
    own = made(package="p", channel="c", source="s", source_namespace="n").subscription(Platform())
    assert (own.name, own.channel, own.source, own.source_namespace) == ("p", "c", "s", "n")


@pytest.mark.parametrize(
    ("path", "value", "namespaces"),
    [
        ("cluster/name", "passive", ("passive",)),
        ("mirrors/0/namespace", "mirrors", ("passive", "mirrors")),
        ("cluster/createNamespace", False, ()),
    ],
)
def test_a_stack_makes_the_namespaces_that_it_uses(path: str, value: object, namespaces: tuple[str, ...]) -> None:
    watched = with_value(TARGET, "operator", {"allNamespaces": True})
    assert parse(with_value(watched, path, value)).namespaces == namespaces


def test_a_stack_makes_the_operators_namespace_unless_the_operator_is_there_already() -> None:
    values = with_value(TARGET, "operator", {"namespace": "operators", "allNamespaces": True})
    assert parse(values).namespaces == ("passive", "operators")
    assert parse(with_value(values, "operator/install", "none")).namespaces == ("passive",)


def test_a_stack_makes_the_watched_namespaces_of_other_stacks_when_it_is_reported() -> None:
    operator = {"namespace": "operators", "watchedNamespaces": ["passive", "active"]}
    assert parse(with_value(TARGET, "operator", operator)).namespaces == ("passive", "operators")
    made_too = with_value(TARGET, "operator", operator | {"createNamespaces": True})
    assert parse(made_too).namespaces == ("passive", "operators", "active")
    assert parse(with_value(made_too, "cluster/createNamespace", False)).namespaces == ("operators", "active")
