"""`ops new`: what it writes for any combination of answers is good, passes the policy pack, and overwrites nothing."""

import json
import re
import shlex
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ops.cli import app
from ops.connection import PROJECT
from ops.new import EXPOSE_TYPES, NAMINGS, Answers, project, split
from ops.new import command as module
from ops.new.project import stack_file
from settings.__main__ import main as settings_main
from settings.files import contexts
from tests.support.example_resources import violations

ROOT = Path(__file__).parents[3]
STACKS = ("east", "west")
PLATFORMS = ("strimzi-0.45.0", "strimzi", "event-streams-11.0.0", "event-streams-12.0")
COMBINATIONS = list(product(PLATFORMS, EXPOSE_TYPES, NAMINGS))
HOSTS = {"east": "kafka.east.example.com", "west": "kafka.west.example.com"}
TOPICS = {"identity": "orders,payments.v1", "prefixed": "orders,Payments_2.eu,true"}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["new", *arguments])


def write(folder: Path, **given: str) -> None:
    """Write a pair into the folder; `license` and `host` are added where an answer needs them."""
    options = {"--stacks": "east,west", "--contexts": "east,west", "--topics": "orders"}
    options |= {f"--{option}": value for option, value in given.items()}
    hosts = [word for stack, name in HOSTS.items() for word in ("--host", f"{stack}={name}")]
    words = [word for pair in options.items() for word in pair]
    result = run(str(folder), "--yes", "--accept-license", *hosts, *words)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("platform", "expose", "naming"), COMBINATIONS, ids=map("-".join, COMBINATIONS))
def test_whatever_is_answered_the_settings_and_the_policy_pack_accept_what_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], platform: str, expose: str, naming: str
) -> None:
    folder = tmp_path / "shop"
    write(folder, platform=platform, expose=expose, naming=naming, topics=TOPICS[naming])
    capsys.readouterr()
    assert settings_main(["check", *(str(folder / f"Pulumi.{stack}.yaml") for stack in STACKS)]) == 0
    assert "hint:" not in capsys.readouterr().out
    assert {stack: [str(each) for each in violations(folder, stack)] for stack in STACKS} == {"east": [], "west": []}


@pytest.mark.parametrize("expose", ["loadbalancer", "route"])
def test_a_load_balancer_and_a_route_need_no_host(tmp_path: Path, expose: str) -> None:
    result = run(str(tmp_path / "shop"), "--yes", "--expose", expose, "--topics", "orders")
    assert result.exit_code == 0, result.output
    assert settings_main(["check", str(tmp_path / "shop" / "Pulumi.standby.yaml")]) == 0


def test_a_rule_that_the_pair_breaks_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    write(folder)
    file = folder / "Pulumi.west.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("namespace: shop-west", "namespace: elsewhere"), "utf-8")
    assert "namespace-names" in {each.rule for each in violations(folder, "west")}


@pytest.mark.parametrize(("given", "wanted"), [("here", ["here", "here"]), ("e/1:443,w", ["e/1:443", "w"])])
def test_one_context_stands_for_both_sites(tmp_path: Path, given: str, wanted: list[str]) -> None:
    folder = tmp_path / "shop"
    write(folder, contexts=given)
    assert contexts(folder) == dict(zip(STACKS, wanted, strict=True))


def test_no_rule_is_switched_off(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    write(folder, topics="Orders")
    for stack in STACKS:
        rules = json.loads((folder / f"policy.{stack}.json").read_text(encoding="utf-8"))
        assert [name for name, options in rules.items() if "enforcementLevel" in options] == []
        assert "topic-names" in rules


def test_names_are_kept_with_a_way_back_where_the_operator_has_one() -> None:
    def sets(platform: str, naming: str) -> set[str]:
        answers = Answers(
            name="shop",
            stacks=STACKS,
            platform=platform,
            expose="route",
            hosts={},
            contexts=("one",),
            topics=("orders",),
            naming=naming,
        )
        users = yaml.safe_load(stack_file(answers, "east"))["config"]["rt-inventory:users"]
        return {each["set"] for user in users for each in user["aclSets"]}

    assert "failback" in sets("strimzi-1.2.0", "identity")
    assert "failback" not in sets("event-streams-11.0.0", "identity")
    assert "failback" not in sets("strimzi-1.2.0", "prefixed")


def test_everything_that_is_wrong_is_reported_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    wrong = {
        "--stacks": "east,East",
        "--platform": "event-streams-10.0",
        "--expose": "ingres",
        "--contexts": "a,b,c",
        "--topics": "a b,orders,orders",
        "--groups": "(",
        "--naming": "same",
        "--partitions": "0",
    }
    words = [word for pair in wrong.items() for word in pair]
    result = run(str(tmp_path / "2shop"), "--yes", *words, "--host", "north=x", "--host", "west")
    assert result.exit_code == 2
    message = result.stderr
    for option in (*wrong, "--name", "--host", "--accept-license"):
        assert f"  {option}" in message, f"{option} is missing in\n{message}"
    assert "Did you mean ingress?" in message
    assert not (tmp_path / "2shop").exists()


def test_what_the_settings_find_is_reported_too(tmp_path: Path) -> None:
    name = "a" * 60
    result = run(str(tmp_path / name), "--yes", "--topics", "orders")
    assert result.exit_code == 2
    assert "Pulumi.primary.yaml: rt-inventory:cluster.name" in result.stderr
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("file", ["Pulumi.yaml", "Pulumi.prod.yaml", "policy.prod.json"])
def test_a_folder_that_holds_a_pair_already_is_refused(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("kept", encoding="utf-8")
    result = run(str(tmp_path), "--yes", "--name", "shop", "--topics", "orders")
    assert result.exit_code == 2
    assert f"(got {file})" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == [file]
    assert (tmp_path / file).read_text(encoding="utf-8") == "kept"


def test_it_asks_for_what_is_not_given_and_for_what_an_answer_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "is_terminal", lambda: True)
    typed = ["", "event-streams", "nodeport", "", "orders", "east.example.com", "west.example.com", "y"]
    arguments = ["new", str(tmp_path / "shop"), "--stacks", "east,west"]
    result = CliRunner().invoke(app, arguments, input="\n".join(typed[1:]) + "\n")
    assert result.exit_code == 0, result.output
    assert [f"{number}/5" in result.stderr for number in range(1, 6)] == [False, True, True, True, True]
    document = yaml.safe_load((tmp_path / "shop" / "Pulumi.west.yaml").read_text(encoding="utf-8"))["config"]
    assert document["kubernetes:context"] == "west"
    assert document["rt-inventory:platform"]["license"]["accept"] is True
    assert document["rt-inventory:cluster"]["expose"] == {"type": "nodeport", "host": "west.example.com"}


def test_the_next_commands_stand_in_the_order_in_which_they_are_typed(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    result = run(str(folder), "--yes", "--topics", "orders", "--json")
    document = json.loads(result.stdout)
    words = [shlex.split(line) for line in document["next"]]
    order = ["login", "init", "init", "check", "preview", "policy", "up", "up", "status"]
    assert all(word in line for word, line in zip(order, words, strict=True))
    up = [line[line.index("-s") + 1] for line in words if "up" in line]
    assert up == ["primary", "standby"]
    assert {str(path) for path in folder.iterdir() if path.is_file()} == set(document["files"])


def test_inside_the_checkout_the_pair_gets_a_pipeline_and_relative_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers(
        name="shop",
        stacks=STACKS,
        platform="strimzi",
        expose="route",
        hosts={},
        contexts=("one",),
        topics=("orders",),
    )
    folder = tmp_path / "pairs" / "shop"
    files = project.contents(answers, folder, tmp_path)
    assert yaml.safe_load(files[folder / "Pulumi.yaml"])["main"] == "../.."
    assert project.environment(folder, tmp_path) == (folder / "venv", Path("../../venv"))
    job = yaml.safe_load(files[tmp_path / ".github" / "workflows" / "pair-shop.yml"])["jobs"]["pair"]
    called = yaml.safe_load((ROOT / job["uses"]).read_text(encoding="utf-8"))
    inputs = called[True]["workflow_call"]["inputs"]  # YAML 1.1 reads the key `on` so
    assert job["with"] == {"name": "shop", "folder": "pairs/shop", "source": "east", "target": "west"}
    assert set(job["with"]) == {name for name, each in inputs.items() if each.get("required")}
    rights = [each["permissions"] for each in called["jobs"].values()]
    assert all(each.items() <= job["permissions"].items() for each in rights)


def test_the_page_shows_the_commands_that_are_printed() -> None:
    page = (ROOT / "docs" / "new-pair.md").read_text(encoding="utf-8")
    shown = page.split("<!-- next: begin -->\n```\n")[1].split("\n```\n<!-- next: end -->")[0]
    options = next(
        line for line in page.splitlines() if line.startswith("venv/bin/rt-inventory new") and "--yes" in line
    )
    words = dict(zip(shlex.split(options)[4::2], shlex.split(options)[5::2], strict=True))
    answers = Answers(
        name="orders",
        stacks=split(words["--stacks"]),
        platform="strimzi",
        expose="loadbalancer",
        hosts={},
        contexts=split(words["--contexts"]),
        topics=split(words["--topics"]),
    )
    assert answers.problems() == []
    assert shown.splitlines() == module.next_commands(answers, PROJECT / "pairs" / "orders", "rt-inventory")


def test_the_page_names_every_question_and_every_environment_of_the_pipeline() -> None:
    page = (ROOT / "docs" / "new-pair.md").read_text(encoding="utf-8")
    asked = page.split("| question | option | default |")[1].split("\n\n")[0]
    assert [f"`--{each.option} " in asked for each in module.questions({})] == [True] * 5
    for name in ("orders-dev-preview", "orders-stg-preview", "orders-dev", "orders-stg"):
        assert f"`{name}`" in page


@pytest.mark.parametrize("page", ["new-pair.md", "comparison.md"])
def test_every_link_of_the_pages_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^):]+)\)", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert links
    for link in links:
        file, _, anchor = link.partition("#")
        target = ROOT / "docs" / (file or page)
        assert target.exists(), link
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_each_question_fits_into_a_line_of_80_columns() -> None:
    shown = [f"{each.text} [{each.default}]: orders" for each in module.questions({})]
    assert [line for line in shown if len(line) > 80] == []
