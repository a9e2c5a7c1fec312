"""The command `ops follow`: its rounds one after the other, what it prints, refuses and serves."""

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from kafka.cluster import Cluster
from ops.cli import app
from ops.errors import OpsError
from ops.follow import command
from ops.follow.follower import STATES, Round
from ops.metrics.command import serving
from ops.recovery import mirror_context
from tests.support.followed_sides import ITEMS, ORDERS, SYNCS, Followed
from tests.support.recovery_pair import known
from tests.unit.kafka import test_offset_syncs as simulated


@pytest.fixture
def ready(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> Followed:
    """The clusters of the command are the simulated ones."""
    followed.copies((simulated.RECORD, 40))
    followed.source.log[ITEMS], followed.target.log[ITEMS] = 40, 40
    followed.stands(30)
    monkeypatch.setattr(mirror_context, "load", lambda *_: followed.follower.pair)
    monkeypatch.setattr(command, "Follower", lambda *_: followed.follower)
    monkeypatch.setattr(Cluster, "connect", lambda *_: None)
    return followed


def test_one_round_prints_the_states_and_fails_unless_all_is_exact(ready: Followed) -> None:
    done = CliRunner().invoke(app, ["follow", "--once", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["mirror"], document["positions"]["exact"], document["set_offsets"]) == ("mm2", 1, 1)
    ready.on_target(12, group="other")
    ready.stands(20, group="other")
    done = CliRunner().invoke(app, ["follow", "--once"])
    assert done.exit_code == 1
    assert "foreign" in done.stdout


def test_one_round_in_which_a_group_was_not_read_fails(ready: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    def some(unlisted: dict[str, str], **_: object) -> dict[str, str]:
        unlisted[""] = "source: cannot list all consumer groups"
        return {ORDERS: "STABLE"}

    monkeypatch.setattr(ready.source, "group_states", some)
    done = CliRunner().invoke(app, ["follow", "--once", "--json"])
    document = json.loads(done.stdout)
    assert (document["positions"]["exact"], document["problems"]) == (1, ["source: cannot list all consumer groups"])
    assert done.exit_code == 1
    assert "source: cannot list all consumer groups" in done.stderr


def test_one_round_in_which_a_group_could_not_be_listed_fails(ready: Followed) -> None:
    ready.lost = "source: __consumer_offsets-1 has no leader"
    done = CliRunner().invoke(app, ["follow", "--once"])
    assert done.exit_code == 1
    assert ready.lost in done.stderr


def test_a_pod_gets_the_outputs_as_a_file_and_the_secrets_as_variables(
    ready: Followed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pair = ready.follower.pair
    request = {key: value for key, value in pair.plan.request.items() if key != "stack"}
    side = {**request["source"], "client_config": {"bootstrap.servers": "h:1", "sasl.password": {"env": "SECRET"}}}
    outputs = {"verificationRequests": {"mm2": {**request, "source": side}}, "mirrors": {"mm2": {"exactlyOnce": True}}}
    file = tmp_path / "outputs.json"
    file.write_text(json.dumps(outputs))
    pairs = list[Any]()
    monkeypatch.setattr(command, "Follower", lambda one, *_: pairs.append(one) or ready.follower)
    monkeypatch.setattr(mirror_context, "load", lambda *_: pytest.fail("Pulumi must not be asked"))
    arguments = ["follow", "--stack", "stg", "--mirror", "mm2", "--outputs", str(file), "--once"]
    done = CliRunner().invoke(app, arguments, env={"SECRET": "of-a-variable", "TARGET_PASSWORD": "x"})
    assert done.exit_code == 0, done.output
    (found,) = pairs
    assert found.request.source.client_config["sasl.password"] == "of-a-variable"
    assert (found.label, found.mirror, found.outputs.exactly_once) == ("stg", "mm2", True)
    done = CliRunner().invoke(app, arguments, env={"SECRET": None, "TARGET_PASSWORD": "x"})
    assert done.exit_code == 2
    assert "SECRET" in done.stderr


@pytest.mark.parametrize(("text", "got"), [(None, "No such file"), ("{", "no JSON"), ("[]", "got list")])
def test_a_file_of_outputs_that_cannot_be_used_is_named(tmp_path: Path, text: str | None, got: str) -> None:
    file = tmp_path / "outputs.json"
    if text is not None:
        file.write_text(text)
    done = CliRunner().invoke(app, ["follow", "--outputs", str(file)], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert str(file) in done.stderr
    assert got in done.stderr
    done = CliRunner().invoke(app, ["follow", "--outputs", str(file), "--break-glass"])
    assert "--break-glass" in done.stderr


def test_it_is_ready_while_rounds_succeed(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = command.FollowMetrics(followed.follower.pair)
    with serving("127.0.0.1:0", metrics) as url:
        address = url.replace("/metrics", "/ready")
        assert httpx.get(address).status_code == 503, "no round has ended yet"
        metrics.last = followed.follower.round()
        assert httpx.get(address).status_code == 200
        assert "rt_inventory_follow_positions{" in httpx.get(url).text
        metrics.ended -= command.CURRENT_WITHIN_S
        assert httpx.get(address).status_code == 503
        said = httpx.get(url).text
        assert "rt_inventory_follow_age_seconds{" in said, "a stale follower still says how old it is"
        assert "rt_inventory_follow_positions{" not in said, "what it knew is not what is"


@pytest.mark.parametrize("changed", [{"active": "target"}, {"state": "stopped"}])
def test_a_mirror_that_is_not_to_be_followed_is_refused(
    ready: Followed, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(SYNCS, **changed))
    done = CliRunner().invoke(app, ["follow", "--once"])
    assert done.exit_code == 2
    assert "There is nothing to follow now" in done.stderr
    assert ready.at() is None


@pytest.mark.parametrize(("takes_s", "waits_s"), [(0.1, 0.1), (0.3, 0.5)])
def test_a_short_round_that_leaves_more_unproven_is_followed_by_another_at_once(
    followed: Followed, monkeypatch: pytest.MonkeyPatch, takes_s: float, waits_s: float
) -> None:
    clock, began, counts = [100.0], list[float](), [0, 2, 2, 3, 1, 1]

    def rounds() -> Round:
        began.append(clock[0])
        clock[0] += takes_s
        return Round(
            positions={**dict.fromkeys(STATES, 0), "unproven": counts[len(began) - 1]}, groups=1, set_offsets=0
        )

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(followed.follower, "round", rounds)
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    metrics = command.FollowMetrics(followed.follower.pair)
    command.repeat(followed.follower, metrics, 0.5, lambda: len(began) == len(counts))
    assert [round(later - one, 6) for one, later in pairwise(began)] == [0.5, waits_s, 0.5, waits_s, 0.5]


def test_rounds_go_on_after_one_that_fails_and_metrics_tell_their_age(
    followed: Followed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.source.log[ITEMS], followed.target.log[ITEMS] = 40, 40
    followed.stands(30)
    metrics, turns = command.FollowMetrics(followed.follower.pair), iter(range(4))
    plain = followed.follower.round

    def rounds() -> Any:
        if next(turns) < 2:
            raise OpsError("broken")
        return plain()

    monkeypatch.setattr(followed.follower, "round", rounds)
    command.repeat(followed.follower, metrics, 0.01, lambda: metrics.last is not None)
    said = capsys.readouterr().err
    assert (said.count("round failed: broken"), said.count("rounds succeed again")) == (1, 1)
    found = {one.name: one.samples for one in metrics.families}
    assert found["rt_inventory_follow_positions"][0] == ({"stack": "stg", "mirror": "mm2", "state": "exact"}, 1.0)
    assert 0 <= found["rt_inventory_follow_age_seconds"][0][1] < 60
