"""The commands about offsets: what is shown and set, what is refused, and that all is refused together."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError
from typer.testing import CliRunner, Result

from kafka import group_commits, lag, mirror_position
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.cli import app
from ops.errors import OpsError
from ops.offsets import command, offset_plan
from ops.offsets.offset_plan import Change, Plan
from ops.recovery import group_offsets

from ...support.offset_clusters import SECRET, MadeUpPair
from ...support.recovery_pair import Side

PARTITION = TopicPartition("items", 0)
POSITIONS = ["-t", "items", "-p", "0", "-o", "70", "-p", "1", "-o", "30"]


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUpPair:
    """A pair with a group that stands somewhere on both sides."""
    return _installed(tmp_path, monkeypatch)


def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **mirror: Any) -> MadeUpPair:
    monkeypatch.chdir(tmp_path)
    pair = MadeUpPair(tmp_path, **mirror)
    pair.source_cluster.groups["orders"] = {
        TopicPartition("items", 0): 60,
        TopicPartition("items", 1): 20,
        TopicPartition("items", 2): 0,
    }
    pair.target_cluster.groups["orders"] = {TopicPartition("items", 0): 40}
    return pair.install(monkeypatch)


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["offsets", *arguments], env={"COLUMNS": "200"})
    assert SECRET not in result.output
    return result


def document(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("command", ["show", "translate", "export", "import", "set"])
def test_help_teaches_by_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"python -m ops offsets {command} --stack" in result.stdout


def test_show_reports_both_sides_and_about_what_is_read_again(made_up: MadeUpPair) -> None:
    made_up.target_cluster.members.add("orders")
    first, second = document("show", "--group", "orders")["positions"]
    assert first["source"] == {"state": "EMPTY", "offset": 60, "lag": 40}
    assert first["target"] == {"topic": "items", "state": "STABLE", "offset": 40, "lag": 70, "exact": None}
    assert (first["repeated"], first["skipped"]) == (30, None)
    assert (second["target"]["offset"], second["target"]["lag"], second["repeated"]) == (None, None, None)
    assert not made_up.asked


def test_records_that_the_mirror_has_not_copied_are_not_taken_for_such_as_the_group_has_read(
    made_up: MadeUpPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 of 100 records are copied, and the group has read 60: of the 50 that it would read there, 20 are new to it."""
    partition = TopicPartition("items", 0)
    made_up.copied[partition] = 80
    made_up.target_cluster.logs[partition] = (10, 90)
    monkeypatch.setattr(lag, "first_records", lambda _, behind, *__: {tp: (at, None) for tp, at in behind.items()})
    first, _ = document("show", "--group", "orders")["positions"]
    assert (first["source"]["lag"], first["target"]["lag"], first["repeated"]) == (40, 50, 30)


def test_without_the_mirrors_position_what_is_read_again_is_unknown_and_the_reason_is_reported(
    made_up: MadeUpPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_position, "open_reader", lambda *_: (None, "grant Read on topic mm2-offsets"))
    found = document("show", "--group", "orders")
    first, _ = found["positions"]
    assert (first["target"]["lag"], first["repeated"]) == (70, None)
    assert found["unseen"] == ["what is read again is not known: grant Read on topic mm2-offsets"]


def test_show_asks_each_cluster_for_its_groups_once(made_up: MadeUpPair, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for cluster in (made_up.source_cluster, made_up.target_cluster):
        for name in ("connect", "group_states"):
            read = getattr(cluster, name)
            counted = partial(_counted, asked, f"{cluster.role} {name}", read)
            monkeypatch.setattr(cluster, name, counted)
    document("show")
    assert sorted(asked) == ["source connect", "source group_states", "target connect", "target group_states"]


def _counted(asked: list[str], name: str, read: Callable[..., Any], *arguments: Any) -> Any:
    asked.append(name)
    return read(*arguments)


def test_a_cluster_that_is_unreachable_is_an_error(made_up: MadeUpPair, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: float) -> None:
        raise ClusterError("target es-target: is down")

    monkeypatch.setattr(made_up.target_cluster, "connect", fail)
    assert document("show", code=2)["error"] == "target es-target: is down"


def test_show_exact_reports_what_the_job_found(made_up: MadeUpPair) -> None:
    row = {"group": "orders", "topic": "items", "partition": 0, "committed": 61, "synced": 45, "lowest": 71}
    made_up.report = {"groups": [{**row, "repeated": 26, "skipped": 0, "judged": True}]}
    made_up.report["checks"] = [{"name": "records_complete", "ok": False, "observed": "3 lost in items-0"}]
    result = run("show", "--exact", "--group", "orders")
    assert "records_complete: 3 lost in items-0" in result.stderr
    first, second = document("show", "--exact", "--group", "orders")["positions"]
    assert (first["source"]["offset"], first["target"]["exact"], first["repeated"], first["skipped"]) == (61, 71, 26, 0)
    assert second["target"]["exact"] is None
    assert made_up.asked[0]["groups"] == ["orders"]
    assert "canary" not in made_up.asked[0]


def test_a_group_that_is_not_there_or_not_carried_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(tmp_path, monkeypatch)
    assert "must exist at the source (got none of nobody)" in document("show", "-g", "nobody", code=2)["error"]
    message = document("show", "-g", "console-consumer-1", "-g", "connect-x", code=2)["error"]
    assert "got console-consumer-1, connect-x" in message


def test_translate_gives_each_position_its_counterpart(made_up: MadeUpPair, tmp_path: Path) -> None:
    out = tmp_path / "there.csv"
    options = ["--topic", "items", "--partition", "0", "--offset", "5", "--partition", "1", "--offset", "7"]
    first, second = document("translate", *options, "--out", str(out))["positions"]
    assert (first["source"]["offset"], first["target"]) == (5, {"topic": "items", "offset": 15})
    assert (second["partition"], second["target"]["offset"]) == (1, 17)
    assert out.read_text() == "items,0,15\nitems,1,17\n"
    assert made_up.asked[0]["topics"] == ["items"]
    assert made_up.asked[0]["groups_exclude"] == [".*"]


def test_copies_are_named_as_on_their_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(tmp_path, monkeypatch, naming="prefixed", counts_from={"items": {"0": 3}})
    back = ["translate", "--from", "target", "-t", "es-src.items", "-p", "0", "-o", "15"]
    (row,) = document(*back)["positions"]
    assert row["source"] == {"topic": "items", "offset": 5}
    message = document("translate", "--from", "target", "-t", "items", "-p", "0", "-o", "15", code=2)["error"]
    assert "topic items: must be one that mirror mm2 carries, by its name on the target" in message


def test_a_position_without_a_counterpart_is_exit_1(made_up: MadeUpPair) -> None:
    row = {"exact": None, "problem": "it cannot be translated", "removed": 0, "target_topic": "items"}
    made_up.report = {"positions": [row]}
    (reported,) = document("translate", "-t", "items", "-p", "0", "-o", "5", code=1)["positions"]
    assert (reported["target"]["offset"], reported["problem"]) == (None, "it cannot be translated")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate"], "or --file must be given"),
        (["translate", "-t", "items", "-p", "0"], "must be given together"),
        (["translate", "-t", "a", "-t", "b", "-p", "0", "-o", "1"], "must be given together"),
        (["set", "-g", "orders"], "must be given, one of them"),
        (["set", "-g", "orders", "--exact", "--to-synced"], "must be given, one of them"),
        (["set", "-g", "orders", "--to-synced", "--on", "source"], "must be on the target"),
        (["set", "-g", "orders", "-t", "items", "-p", "0", "-o", "50"], "--yes must be given"),
    ],
)
def test_wrong_options_are_one_message(made_up: MadeUpPair, arguments: list[str], message: str) -> None:
    assert message in document(*arguments, code=2)["error"]
    assert not made_up.target_cluster.commits


def test_set_exact_moves_a_group_to_where_its_records_are_and_leaves_empty_partitions(made_up: MadeUpPair) -> None:
    found = document("set", "-g", "orders", "--exact", "--yes")
    assert made_up.target_cluster.groups["orders"] == {TopicPartition("items", 0): 70, TopicPartition("items", 1): 30}
    assert [(one["now"], one["wanted"]) for one in found["changes"]] == [(40, 70), (None, 30)]
    assert (found["set"], found["left"]) == (2, [])
    again = document("set", "-g", "orders", "--exact")  # what is done already is not asked about
    assert (again["set"], all(one["done"] for one in again["changes"])) == (0, True)


def test_set_exact_works_on_the_source_too(made_up: MadeUpPair) -> None:
    document("set", "-g", "orders", "--exact", "--on", "source", "--yes")
    assert made_up.source_cluster.groups["orders"][TopicPartition("items", 0)] == 30
    assert made_up.asked[0]["positions"] == [{"side": "target", "topic": "items", "partition": 0, "offset": 40}]


def test_what_has_no_exact_offset_is_left_and_reported_by_the_exit_code(made_up: MadeUpPair) -> None:
    row = {"target_topic": "items", "removed": 0, "problem": None}
    made_up.report = {"positions": [{**row, "exact": 70}, {**row, "exact": None, "problem": "nothing corresponds"}]}
    found = document("set", "-g", "orders", "--exact", "--yes", code=1)
    assert found["left"] == ["group orders on items-1 at 20: nothing corresponds"]
    assert made_up.target_cluster.groups["orders"] == {TopicPartition("items", 0): 70}


def test_a_group_that_reads_on_at_the_other_side_is_reported(made_up: MadeUpPair) -> None:
    made_up.source_cluster.members.add("orders")
    (note,) = document("set", "-g", "orders", "--exact", "--dry-run")["notes"]
    assert "orders have members on the source" in note


def test_a_dry_run_changes_nothing(made_up: MadeUpPair) -> None:
    position = ["-t", "items", "-p", "0", "-o", "50"]
    found = document("set", "-g", "orders", *position, "--dry-run")
    assert (found["dryRun"], found["set"]) == (True, 0)
    assert not made_up.target_cluster.commits


def test_everything_that_is_wrong_is_reported_and_nothing_is_set(made_up: MadeUpPair) -> None:
    made_up.target_cluster.members.add("orders")
    options = ["-t", "items", "-p", "0", "-o", "111", "-p", "1", "-o", "5", "-p", "9", "-o", "0", "--yes"]
    message = document("set", "-g", "orders", *options, code=2)["error"]
    assert "got members in orders" in message
    assert "group orders on items-0: offset must be from 10 to 110, where the log is (got 111)" in message
    assert "group orders on items-9: partition must exist on cluster es-target" in message
    assert not made_up.target_cluster.commits


def test_to_synced_takes_mirrormakers_newest_checkpoints(made_up: MadeUpPair) -> None:
    made_up.checkpoints_by_group = {("orders", "items", 0): 5, ("orders", "items", 1): 45, ("other", "items", 0): 1}
    found = document("set", "-g", "orders", "--to-synced", "--yes")
    assert made_up.target_cluster.groups["orders"] == {TopicPartition("items", 0): 10, TopicPartition("items", 1): 45}
    assert "10 instead of 5" in found["notes"][0]
    message = document("set", "-g", "nobody", "--to-synced", "--yes", code=2)["error"]
    assert "must hold a checkpoint of each group (got none of nobody)" in message
    made_up.checkpoints_by_group = {("orders", "items", 1): 99}  # of a topic that was created again
    message = document("set", "-g", "orders", "--to-synced", "--yes", code=2)["error"]
    assert "orders on items-1: offset must be from 0 to 50, where the log is (got 99)" in message


def test_that_the_mirror_would_undo_it_is_reported(made_up: MadeUpPair) -> None:
    made_up.checkpoints_by_group = {("orders", "items", 0): 45}
    (note,) = document("set", "-g", "orders", "-t", "items", "-p", "0", "-o", "20", "--yes")["notes"]
    assert "will move orders on items-0 to 45 forward again" in note


def test_a_group_that_moves_while_the_question_is_on_the_screen_is_not_set_back(
    made_up: MadeUpPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its application began, read on, committed and ended meanwhile. A position that is right by then is none."""
    made_up.target_cluster.groups["bills"] = {TopicPartition("items", 1): 3}
    held = made_up.target_cluster.groups["orders"]

    def asked(*_: object) -> None:
        held.update({TopicPartition("items", 0): 95, TopicPartition("items", 1): 30})

    monkeypatch.setattr(command, "require_yes", asked)
    message = document("set", "-g", "orders", "-g", "bills", *POSITIONS, code=2)["error"]
    assert "cluster es-target: groups must not move while their offsets are set." in message
    assert "group orders on items-0: has moved since the plan (got 95, planned from 40 to 70)." in message
    assert "items-1" not in message
    assert message.endswith("Nothing was set.")
    assert not made_up.target_cluster.commits


def test_what_is_exported_is_imported(made_up: MadeUpPair, tmp_path: Path) -> None:
    made_up.target_cluster.groups["bills"] = {TopicPartition("items", 1): 3}
    for name in ("kept.json", "kept.csv"):
        made_up.target_cluster.groups["orders"] = {TopicPartition("items", 0): 40}
        found = document("export", "--out", str(tmp_path / name))
        assert (found["groups"], found["positions"]) == (["bills", "orders"], 2)
        made_up.target_cluster.groups["orders"] = {TopicPartition("items", 0): 90}
        document("import", "--file", str(tmp_path / name), "--yes")
        assert made_up.target_cluster.groups["orders"] == {TopicPartition("items", 0): 40}
    assert (tmp_path / "kept.csv").read_text() == "bills,items,1,3\norders,items,0,40\n"


def test_a_group_whose_name_is_markup_is_exported_and_shown_as_it_is(made_up: MadeUpPair, tmp_path: Path) -> None:
    made_up.target_cluster.groups["a[/b]\x1b[2J"] = {TopicPartition("items", 1): 3}
    result = CliRunner().invoke(app, ["offsets", "export", "--out", str(tmp_path / "kept.json")])
    assert result.exit_code == 0, result.output
    assert "a[/b]\\x1b[2J" in result.stdout


def test_an_export_of_one_group_is_for_kafkas_own_tool(made_up: MadeUpPair, tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    document("export", "--on", "source", "--group", "orders", "--out", str(file))
    assert file.read_text() == "items,0,60\nitems,1,20\nitems,2,0\n"
    message = document("import", "--file", str(file), code=2)["error"]
    assert message.count("group must be given") == 3


def test_groups_that_cannot_be_listed_are_not_left_out_of_an_export(made_up: MadeUpPair, tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    made_up.target_cluster.lost = "target es-target: __consumer_offsets-1 has no leader. Start the brokers."
    message = document("export", "--out", str(file), code=2)["error"]
    assert message == f"{made_up.target_cluster.lost} Or name the groups that are meant: --group."
    assert not file.exists()
    assert document("export", "--group", "orders", "--out", str(file))["groups"] == ["orders"]


def test_offsets_of_the_other_side_are_not_imported(made_up: MadeUpPair, tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    document("export", "--on", "source", "--out", str(file))
    message = document("import", "--file", str(file), "--yes", code=2)["error"]
    assert "must hold offsets of the target (got side source). Translate them first" in message
    document("translate", "--file", str(file), "--out", str(tmp_path / "there.json"))
    document("import", "--file", str(tmp_path / "there.json"), "--dry-run", code=2)  # partition 2 holds no record
    assert not made_up.target_cluster.commits


@pytest.mark.parametrize(("key", "other"), [("stack", "prod"), ("mirror", "mm3")])
def test_a_file_of_another_mirror_is_neither_imported_nor_translated(
    made_up: MadeUpPair, tmp_path: Path, key: str, other: str
) -> None:
    file = tmp_path / "kept.json"
    document("export", "--out", str(file))
    file.write_text(json.dumps({**json.loads(file.read_text()), key: other}))
    found = {"stack": "stg", "mirror": "mm2", key: other}
    for arguments in (["import", "--yes"], ["translate", "--from", "target"]):
        message = document(*arguments, "--file", str(file), code=2)["error"]
        assert f"file {file}: must hold offsets of mirror mm2 of stack stg" in message
        assert f"(got mirror {found['mirror']} of stack {found['stack']})" in message
        assert f"--stack {found['stack']} --mirror {found['mirror']}" in message
    assert not made_up.target_cluster.commits
    assert not made_up.asked
    file.write_text(json.dumps({**json.loads(file.read_text()), "stack": "acme/rt-inventory/stg", "mirror": "mm2"}))
    document("import", "--file", str(file))


def test_a_table_is_shown_to_people(made_up: MadeUpPair) -> None:
    shown = run("show")
    assert shown.exit_code == 0
    assert "about read again" in shown.stdout
    planned = run("set", "-g", "orders", "--exact", "--dry-run")
    assert "to be set" in planned.stdout
    assert "Nothing was set." in planned.stderr
    assert "from the source to the target" in run("translate", "-t", "items", "-p", "0", "-o", "5").stdout


def side_without_positions() -> Any:
    return Side("es-tgt", {PARTITION: 10}, {})


def plan_from_nothing(wanted: Mapping[str, int]) -> Plan:
    """Sets groups that have no position yet."""
    changes = (Change(group=group, topic="items", partition=0, now=None, wanted=at) for group, at in wanted.items())
    return Plan(side="target", cluster="es-tgt", changes=tuple(changes))


def test_who_interrupts_a_set_learns_which_groups_were_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def commit_each(_: Any, wanted: Any) -> Iterator[tuple[str, Any]]:
        yield next(iter(wanted))
        raise KeyboardInterrupt

    monkeypatch.setattr(group_offsets, "commit_each", commit_each)
    monkeypatch.setattr(group_offsets, "require_inactive", lambda *_: None)
    wanted = plan_from_nothing({"orders": 1, "till": 1, "web": 1})
    with pytest.raises(
        OpsError, match=r"Interrupted\. Set by now: orders, perhaps others, .* Run the same command again"
    ):
        offset_plan.carry_out(side_without_positions(), wanted)


def test_many_groups_are_read_set_and_read_back_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one is refused, those are named that stand where they were to be set."""
    cluster = side_without_positions()
    reads, send, commits_of = list[int](), cluster.admin.alter_consumer_group_offsets, group_commits.read

    def read_commits(cluster: Any, groups: Any) -> Any:
        reads.append(len(list(groups)))
        return commits_of(cluster, groups)

    def group_offsets_of(groups: Any) -> dict[str, dict[TopicPartition, int]]:
        reads.append(len(list(groups)))
        return {name: dict(cluster.held.get(name, {})) for name in groups}

    def set_offsets(asked: Any, **options: Any) -> Any:
        cluster.admin.refused = KafkaError(KafkaError.NON_EMPTY_GROUP) if asked[0].group_id == "g210" else None
        return send(asked, **options)

    monkeypatch.setattr(cluster, "group_offsets", group_offsets_of)
    monkeypatch.setattr(group_commits, "read", read_commits)
    wanted = plan_from_nothing({f"g{number:03}": 1 + number % 9 for number in range(300)})
    offset_plan.carry_out(cluster, wanted)
    assert cluster.held == wanted.groups
    assert reads == [300, 200, 200, 100, 100], "all of them before the first is set"
    cluster.held.clear()
    monkeypatch.setattr(cluster.admin, "alter_consumer_group_offsets", set_offsets)
    with pytest.raises(OpsError, match=r"group g210 must be set .* It has members") as caught:
        offset_plan.carry_out(cluster, wanted)
    number = len(cluster.held)
    assert "g211" in cluster.held, "requests that were in flight were carried out"
    assert f"Set by now: g000, g001, g002, g003, g004, g005, g006, g007 and {number - 8} more." in str(caught.value)
