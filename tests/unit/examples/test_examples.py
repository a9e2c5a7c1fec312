"""Every example: its stack files are good, it renders to the expected manifests, and the README's table has it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples import __main__ as catalog
from examples.__main__ import Example, examples, with_table
from settings import hints
from settings.__main__ import main
from tests.support.example_resources import manifests, violations

ROOT = Path(__file__).parents[3]
STACKS = [pytest.param(each, stack, id=f"{each.name}-{stack}") for each in examples() for stack in each.stacks]


@pytest.mark.parametrize(("example", "stack"), STACKS)
def test_the_stack_file_is_good(example: Example, stack: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(example.folder / f"Pulumi.{stack}.yaml")]) == 0, capsys.readouterr().err
    assert "hint:" not in capsys.readouterr().out


@pytest.mark.parametrize(("example", "stack"), STACKS)
def test_it_renders_to_the_expected_manifests(example: Example, stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "manifests", manifests)
    assert example.rendered(stack) == example.expected(stack).read_text(encoding="utf-8"), (
        "the manifests changed: look at the difference, then run `python -m examples`"
    )


@pytest.mark.parametrize(("example", "stack"), STACKS)
def test_no_mandatory_rule_of_the_policy_pack_is_broken(example: Example, stack: str) -> None:
    assert violations(example.folder, stack) == []


@pytest.mark.parametrize(("example", "stack"), STACKS)
def test_no_rule_is_switched_off_or_lifted_for_it(example: Example, stack: str) -> None:
    file = example.policy(stack)
    rules = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    assert [name for name, options in rules.items() if "enforcementLevel" in options or isinstance(options, str)] == []
    assert "exception.rt-inventory/" not in example.expected(stack).read_text(encoding="utf-8")


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_every_policy_configuration_is_of_one_of_its_stacks(example: Example) -> None:
    assert {*example.folder.glob("policy.*")} <= {example.policy(stack) for stack in example.stacks}


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_its_readme_is_short_and_says_how_to_render_it(example: Example) -> None:
    text = (example.folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {example.name}\n")
    assert len(text.splitlines()) <= (26 if example.story.exists() else 14)
    assert f"make render EXAMPLE={example.name} STACK=" in text


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_it_is_a_pulumi_project_that_runs_this_program(example: Example) -> None:
    project = (example.folder / "Pulumi.yaml").read_text(encoding="utf-8")
    assert f"name: {example.name}\n" in project
    assert "main: ../..\n" in project
    assert "virtualenv: venv #" in project


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_pulumi_finds_the_virtual_environment_beside_the_project_and_beside_the_program(example: Example) -> None:
    """It runs the program by the first and dynamic providers, which start in the program's folder, by the second."""
    settings = yaml.safe_load((example.folder / "Pulumi.yaml").read_text(encoding="utf-8"))
    name = settings["runtime"]["options"]["virtualenv"]
    beside_the_program = example.folder / settings["main"] / name
    assert (example.folder / name / "bin" / "python").is_file()
    assert (example.folder / name).resolve() == beside_the_program.resolve()


def test_the_readme_has_the_present_table() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == with_table(readme), "run `python -m examples`"


@pytest.mark.parametrize(("example", "stack"), STACKS)
def test_no_broker_is_reached_by_an_ingress_which_strimzi_deprecates_since_1_2(example: Example, stack: str) -> None:
    found = [
        f"{each['metadata']['name']}: listener {listener['name']}"
        for each in manifests(example.folder, stack)
        if each["kind"] == "Kafka"
        for listener in each["spec"]["kafka"]["listeners"]
        if listener["type"] == "ingress"
    ]
    assert found == []


def test_event_streams_adds_no_subscription_beside_an_operator_for_all_namespaces() -> None:
    example = next(each for each in examples() if each.name == "event-streams")
    for stack in example.stacks:
        assert not {"Subscription", "OperatorGroup"} & {each["kind"] for each in manifests(example.folder, stack)}
    readme = " ".join((example.folder / "README.md").read_text(encoding="utf-8").split())
    assert "`ibm-eventstreams` subscribed once for all namespaces" in readme


def test_both_sites_of_one_kubernetes_cluster_have_one_operator_and_each_namespace_is_made_once() -> None:
    example = next(each for each in examples() if each.name == "us-europe-own-offsets")
    made = [each for stack in example.stacks for each in manifests(example.folder, stack)]
    (group,) = (each for each in made if each["kind"] == "OperatorGroup")
    assert group["spec"]["targetNamespaces"] == ["kafka-us", "kafka-europe"]
    assert [each["kind"] for each in made].count("Subscription") == 1
    namespaces = sorted(each["metadata"]["name"] for each in made if each["kind"] == "Namespace")
    assert namespaces == ["kafka-europe", "kafka-operator", "kafka-us"]


@pytest.mark.parametrize(("version", "kafka"), [("11.0.0", "3.0.1"), ("11.1.0", "3.2.3"), ("12.0.0", "4.0.0")])
def test_the_mirror_of_event_streams_may_write_its_offset_syncs_in_every_release(version: str, kafka: str) -> None:
    example = next(each for each in examples() if each.name == "event-streams")
    source, target = (_values(example, stack) for stack in ("dev", "stg"))
    for values in (source, target):
        values["platform"]["version"] = version
    target["mirrors"][0]["version"] = kafka
    assert not [hint for hint in hints(target, "stg", {"dev": source}) if "offsetSyncs" in hint.key]


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/architecture.md",
        "docs/adr/0003-operator-stand-in.md",
        "examples/event-streams/README.md",
        "examples/event-streams-to-cloud/README.md",
    ],
)
def test_whoever_reads_of_event_streams_learns_that_its_definitions_here_are_derived(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert re.search(r"Event Streams[^|]{0,120} (are )?derived from (those of the )?Strimzi", text)


def _values(example: Example, stack: str) -> dict[str, Any]:
    document = yaml.safe_load((example.folder / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))
    return {key.removeprefix("rt-inventory:"): value for key, value in document["config"].items()}
