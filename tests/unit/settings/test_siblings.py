"""A stack file beside the others of its folder: what is wrong between them, what is only hinted at, what is left."""

from pathlib import Path
from typing import Any

import pytest

from settings import SettingsError, Stack, beside, hints, parse
from settings.__main__ import main
from settings.files import check
from settings.parsing import parse_settings
from settings.replication_topology import ReplicationTopology, flows

from ...support.stack_values import SOURCE, TARGET, Values, with_value

ALL = {"type": "topic", "names": ["*"], "operations": ["Read", "Describe"]}
GROUPS = {"type": "group", "names": ["*"], "operations": ["Describe"]}
GOOD = with_value(SOURCE, "users/0/acls", [ALL, GROUPS])
# The other direction: dev mirrors what stg has.
BACK = {
    "name": "back",
    "source": {"stack": "stg", "alias": "es-tgt", "user": "writer"},
    "target": {"alias": "es-src", "user": "reader"},
    "topics": ["audit"],
    "replicationFactor": 1,
}


def problems(values: Values, dev: Values | None = GOOD, **more: Values) -> dict[str, str]:
    """What is wrong with a stack `stg` beside others, by key."""
    siblings = ({"dev": dev} if dev is not None else {}) | more
    try:
        parse(values, "stg", siblings, require_siblings=True)
    except SettingsError as error:
        return {problem.key: problem.message for problem in error.problems}
    return {}


def test_a_pair_that_fits_is_good_and_nothing_is_hinted_at() -> None:
    assert problems(TARGET) == {}
    assert hints(TARGET, "stg", {"dev": GOOD}) == ()


def test_sparks_driver_is_not_beside_a_cluster_of_another_stack() -> None:
    run = {"how": "spark-application", "image": "registry.example.com/verification:1.0.0", "namespace": "active"}
    found = problems(with_value(TARGET, "verification/run", run), with_value(GOOD, "cluster/namespace", "active"))
    assert "must not be that of a cluster or mirror" in found["verification.run.namespace"]
    apart = with_value(TARGET, "verification/run", {**run, "namespace": "apart"})
    assert problems(apart, with_value(GOOD, "cluster/namespace", "active")) == {}


def test_a_missing_source_file_is_wrong_in_a_check_and_nothing_to_the_program() -> None:
    assert "mirrors[0].source.stack" in problems(TARGET, None)
    assert isinstance(parse(TARGET, "stg", {}), Stack)


def test_the_program_reports_the_files_beside_it() -> None:
    with pytest.raises(SettingsError, match=r"source\.user must be a user of stack dev"):
        parse(with_value(TARGET, "mirrors/0/source/user", "nobody"), "stg", {"dev": SOURCE})


@pytest.mark.parametrize(
    "dev",
    [
        {},
        {"cluster": 3, "users": "x", "topics": {}, "mirrors": None},
        {"cluster": {"name": "active", "namespace": "active"}},
        with_value(SOURCE, "users/0/authentication", "oauth"),
        with_value(SOURCE, "topics/0", "items"),
        with_value(SOURCE, "cluster/brokers", "many"),
    ],
)
def test_a_siblings_own_mistakes_are_reported_when_it_is_checked(dev: Values) -> None:
    found = problems(TARGET, dev)
    assert set(found) <= {"mirrors[0].source.user"}
    assert not found or dev.get("users") is None


def test_a_source_that_leaves_its_topics_to_others_is_not_held_against_them() -> None:
    assert problems(TARGET, with_value(GOOD, "topics", [])) == {}


def test_topics_that_mirrors_bring_to_the_source_count() -> None:
    fed = with_value(GOOD, "mirrors", [{**BACK, "source": {"stack": "prod", "alias": "es-prod", "user": "reader"}}])
    prod = with_value(SOURCE, "topics", [{"name": "audit", "partitions": 1, "replicas": 1}])
    mirror = with_value(TARGET, "mirrors/0/topics", ["items", "audit"])
    assert problems(mirror, fed, prod=prod) == {}
    assert list(problems(mirror, GOOD, prod=prod)) == ["mirrors[0].topics[1]"]
    renamed = with_value(fed, "mirrors/0/naming", "prefixed")
    assert list(problems(mirror, renamed, prod=prod)) == ["mirrors[0].topics[1]"]
    assert problems(with_value(mirror, "mirrors/0/topics/1", r"es-prod\.audit"), renamed, prod=prod) == {}


def test_a_source_that_is_filled_from_outside_may_hold_anything() -> None:
    external = {"name": "cloud", "cluster": {"bootstrapServers": ["a:9092"]}, "secret": {"name": "s"}}
    fed = with_value(GOOD, "mirrors", [{**BACK, "source": {"alias": "cloud", "external": external}}])
    assert problems(with_value(TARGET, "mirrors/0/topics", ["anything"]), fed) == {}


def test_what_a_reverse_takes_to_another_stack_counts_there() -> None:
    both = with_value(with_value(TARGET, "mirrors/0/naming", "prefixed"), "mirrors/0/reverse", {"topics": ["audit"]})
    around = ReplicationTopology({"dev": parse_settings(GOOD), "stg": parse_settings(both)})
    assert around.topics("dev") == {"items", "store.inventory", "es-tgt.audit"}
    assert around.topics("stg") == {"audit", "es-src.items", "es-src.store.inventory"}
    assert [(flow.source, flow.target, flow.where) for flow in flows("stg", parse_settings(both))] == [
        ("dev", "stg", "mirrors[0]"),
        ("stg", "dev", "mirrors[0].reverse"),
    ]


@pytest.mark.parametrize(
    ("topics", "back", "naming", "is_loop"),
    [
        (["items"], ["audit"], "identity", False),
        (["items", "audit"], ["audit"], "identity", True),
        (["items"], [".*"], "identity", True),
        ([".*"], [".*"], "identity", True),
        ([".*"], [".*"], "prefixed", False),
        (["items"], ["items"], "prefixed", False),
    ],
)
def test_identity_names_in_both_directions_are_refused_where_topics_overlap(
    topics: list[str], back: list[str], naming: str, is_loop: bool
) -> None:
    dev = with_value(GOOD, "mirrors", [{**BACK, "topics": back, "naming": naming}])
    dev = with_value(dev, "topics/+", {"name": "audit", "partitions": 1, "replicas": 1})
    stg = with_value(with_value(TARGET, "mirrors/0/topics", topics), "mirrors/0/naming", naming)
    found = problems(stg, dev)
    assert ("mirrors[0].naming" in found) is is_loop
    assert set(found) <= {"mirrors[0].naming"}


def test_identity_names_in_both_directions_are_refused_without_declared_topics() -> None:
    dev = with_value(with_value(GOOD, "topics", []), "mirrors", [{**BACK, "topics": ["(a|b).*"]}])
    stg = with_value(with_value(TARGET, "topics", []), "mirrors/0/topics", ["(a|b).*"])
    assert list(problems(stg, dev)) == ["mirrors[0].naming"]
    assert problems(with_value(stg, "mirrors/0/topics", ["(c|d).*"]), dev) == {}


def test_an_excluded_topic_does_not_come_back() -> None:
    dev = with_value(GOOD, "mirrors", [{**BACK, "topics": [".*"], "topicsExclude": ["items|store.*"]}])
    assert problems(TARGET, dev) == {}


def test_two_prefixed_directions_call_each_cluster_by_one_alias() -> None:
    back = {**BACK, "naming": "prefixed", "topics": [".*"]}
    stg = with_value(with_value(TARGET, "mirrors/0/topics", [".*"]), "mirrors/0/naming", "prefixed")
    assert problems(stg, with_value(GOOD, "mirrors", [back])) == {}
    other = {**back, "source": {"stack": "stg", "alias": "passive", "user": "writer"}}
    assert list(problems(stg, with_value(GOOD, "mirrors", [other]))) == ["mirrors[0].target.alias"]
    # A plain name never matches the prefixed copy: nothing comes back.
    named = with_value(stg, "mirrors/0/topics", ["items"])
    assert problems(named, with_value(GOOD, "mirrors", [{**other, "topics": ["items", "audit"]}])) == {}


def test_a_reverse_fits_the_brokers_of_the_source() -> None:
    stg = with_value(with_value(TARGET, "mirrors/0/naming", "prefixed"), "mirrors/0/reverse", {"topics": ["audit"]})
    assert list(problems(stg)) == ["mirrors[0].replicationFactor"]
    assert problems(stg, with_value(GOOD, "cluster/brokers", 3)) == {}


def test_an_alias_of_a_file_that_has_nothing_to_do_with_the_mirror_may_be_used_again() -> None:
    other = with_value(SOURCE, "mirrors", [{**BACK, "source": {"stack": "far", "alias": "es-src", "user": "u"}}])
    assert problems(TARGET, GOOD, other=other) == {}


def hinted(values: Values, dev: Values) -> dict[str, str]:
    """Hints by key; the pair itself is good."""
    assert problems(values, dev) == {}
    return {hint.key: hint.message for hint in hints(values, "stg", {"dev": dev})}


def test_a_bare_dot_that_matches_two_topics_is_pointed_out() -> None:
    dev = with_value(GOOD, "topics/+", {"name": "store-inventory", "partitions": 1, "replicas": 1})
    stg = with_value(TARGET, "mirrors/0/topics", ["items", "store.inventory"])
    assert hinted(stg, dev) == {
        "mirrors[0].topics[1]": "mirror mm2: 'store.inventory' matches store-inventory, store.inventory on stack dev, "
        r"because '.' stands for any character. Write 'store\.inventory' for the one topic."
    }
    assert hinted(TARGET, dev) == {}
    assert hinted(stg, GOOD) == {}


def granting(*acls: dict[str, Any], **more: Any) -> Values:
    return with_value({**GOOD, **more}, "users/0/acls", [GROUPS, *acls])


READ = {"type": "topic", "names": ["items"], "operations": ["Read"]}
SYNCS = {"type": "topic", "names": ["mm2-offset-syncs.es-tgt.internal"], "operations": ["Read", "Write"]}


def test_topics_that_the_mirrors_user_may_not_read_are_pointed_out() -> None:
    assert "may not read store.inventory, which" in hinted(TARGET, granting(READ))["mirrors[0].source.user"]
    prefix = {**READ, "names": ["store."], "match": "prefix"}
    assert hinted(TARGET, granting(READ, prefix)) == {}
    assert hinted(TARGET, granting({**READ, "names": ["*"], "operations": ["All"]})) == {}
    assert hinted(TARGET, granting({**READ, "names": ["*"], "operations": ["Write"]}))


def test_a_user_who_sees_no_group_at_the_source_is_pointed_out() -> None:
    blind = with_value(GOOD, "users/0/acls", [ALL])
    assert "may see no group" in hinted(TARGET, blind)["mirrors[0].groups"]
    assert hinted(TARGET, with_value(GOOD, "users/0/acls", [ALL, {**GROUPS, "operations": ["Read"]}])) == {}
    without = with_value(with_value(TARGET, "mirrors/0/emitCheckpoints", False), "mirrors/0/syncGroupOffsets", False)
    assert hinted(without, blind) == {}


@pytest.mark.parametrize(
    "cluster", [{"superUsers": ["reader"]}, {"authorization": "none"}, {"superUsers": ["reader"], "version": "4.3.1"}]
)
def test_rights_are_not_asked_for_where_everything_is_allowed(cluster: dict[str, Any]) -> None:
    dev = {**SOURCE, "users": [{"name": "reader"}], "cluster": {**SOURCE["cluster"], **cluster}}
    assert hinted(TARGET, dev) == {}


def test_offset_syncs_at_the_source_need_a_right_there() -> None:
    stg = with_value(TARGET, "mirrors/0/offsetSyncsLocation", "source")
    reported = hinted(stg, granting(ALL))["mirrors[0].offsetSyncsLocation"]
    assert "may not write mm2-offset-syncs.es-tgt.internal" in reported
    assert reported.endswith("Give its aclSets entry mirror-source offsetSyncsFor: es-tgt.")
    assert hinted(stg, granting(ALL, SYNCS)) == {}
    entry = {"set": "mirror-source", "topics": ["*"], "groups": ["*"], "offsetSyncsFor": "es-tgt"}
    assert hinted(stg, with_value({**SOURCE, "users": [{"name": "reader"}]}, "users/0/aclSets", [entry])) == {}


def test_offset_syncs_are_named_as_the_mirrors_kafka_names_them() -> None:
    terms = {"accept": True, "use": "CloudPakForIntegrationNonProduction"}
    old = {"type": "event-streams", "version": "11.0.0", "license": terms}
    stg = with_value(with_value(TARGET, "mirrors/0/offsetSyncsLocation", "source"), "mirrors/0/separator", "_")
    assert "mirrors[0].offsetSyncsLocation" in hinted(stg, granting(ALL, SYNCS))
    assert hinted({**stg, "platform": old}, granting(ALL, SYNCS)) == {}


def test_the_hint_about_offset_syncs_names_what_is_missing_and_not_what_is_set() -> None:
    stg = with_value(with_value(TARGET, "mirrors/0/offsetSyncsLocation", "source"), "mirrors/0/separator", "")
    entry: dict[str, Any] = {"set": "mirror-source", "topics": ["*"], "groups": ["*"]}

    def reported(**more: str) -> str | None:
        dev = with_value({**SOURCE, "users": [{"name": "reader"}]}, "users/0/aclSets", [{**entry, **more}])
        return hinted(stg, dev).get("mirrors[0].offsetSyncsLocation")

    first = "mirror mm2: user reader of stack dev may not write mm2-offset-syncses-tgtinternal, which is kept there. "
    assert reported() == f"{first}Give its aclSets entry mirror-source offsetSyncsFor: es-tgt and separator: ''."
    assert reported(offsetSyncsFor="es-tgt") == f"{first}Give its aclSets entry mirror-source separator: ''."
    assert reported(offsetSyncsFor="es-tgt", separator="") is None


AT_TARGET = {**TARGET, "mirrors": [{**TARGET["mirrors"][0], "active": "target", "state": "stopped"}]}
FAILBACK = {"set": "failback", "failbackOf": "mm2", "failbackFrom": "es-tgt", "topics": ["*"], "groups": ["*"]}


def test_rights_that_a_failback_lacks_are_pointed_out_while_the_target_is_active() -> None:
    reported = hinted(AT_TARGET, granting(ALL))["mirrors[0].active"]
    assert "user reader of stack dev may not write items, mm2-failback-configs, store.inventory" in reported
    assert "(failbackOf mm2, failbackFrom es-tgt)" in reported
    assert hinted(TARGET, granting(ALL)) == {}
    assert hinted(AT_TARGET, with_value(granting(ALL), "users/0/aclSets", [FAILBACK])) == {}


def test_a_failback_needs_the_separator_of_the_mirror_at_the_source() -> None:
    stg = with_value(AT_TARGET, "mirrors/0/separator", "_")
    entry = {**FAILBACK, "topics": ["items", "store.inventory"]}
    reported = hinted(stg, with_value(granting(ALL), "users/0/aclSets", [entry]))["mirrors[0].active"]
    assert reported == (
        "mirror mm2: user reader of stack dev may not write es-tgt_checkpoints_internal, "
        "mm2-offset-syncs_es-tgt_internal, so that a failback would fail. Give its aclSets entry of the set failback "
        "there separator: '_' and failbackFrom: es-tgt."
    )
    assert hinted(stg, with_value(granting(ALL), "users/0/aclSets", [{**entry, "separator": "_"}])) == {}


def test_a_failback_has_group_and_topics_of_its_own_at_the_source() -> None:
    stg = with_value(AT_TARGET, "mirrors/0/failback", "copying")
    assert problems(stg) == {}
    taken = {
        "name": "other",
        "source": {"stack": "far", "alias": "far", "user": "u"},
        "target": {"alias": "es-src", "user": "reader"},
        "topics": ["items"],
        "groupId": "mm2-failback",
        "replicationFactor": 1,
    }
    found = problems(stg, with_value(GOOD, "mirrors", [taken]))
    assert "group and storage topics must be its own on the target (got mm2-failback" in found["mirrors[0].failback"]


def test_sets_that_cannot_be_expanded_are_reported_in_their_own_file() -> None:
    dev = with_value({**SOURCE, "users": [{"name": "reader"}]}, "users/0/aclSets", [{"set": "consumer", "mirror": "x"}])
    assert hints(TARGET, "stg", {"dev": dev}) == ()


STG = """\
config:
  rt-inventory:cluster: {name: passive, namespace: passive, expose: {type: loadbalancer}}
  rt-inventory:users: [{name: writer}]
  rt-inventory:mirrors:
    - name: mm2
      source: {stack: dev, alias: es-src, user: reader}
      target: {alias: es-tgt, user: writer}
      topics: [items.eu]
"""
DEV = """\
config:
  rt-inventory:cluster: {name: active, namespace: active, brokers: 1, expose: {type: loadbalancer}}
  rt-inventory:users:
    - {name: reader, aclSets: [{set: mirror-source, topics: ["*"], groups: ["*"]}]}
  rt-inventory:topics:
    - {name: items.eu, partitions: 1, replicas: 1}
    - {name: items-eu, partitions: 1, replicas: 1}
"""


def folder(place: Path) -> Path:
    """A folder with a pair of stacks, one file that is none, and one that nobody can read."""
    (place / "Pulumi.yaml").write_text("name: demo\n")
    (place / "Pulumi.dev.yaml").write_text(DEV)
    (place / "Pulumi.stg.yaml").write_text(STG)
    (place / "Pulumi.broken.yaml").write_text("config: [")
    return place


def test_siblings_are_the_other_stack_files_that_can_be_read(tmp_path: Path) -> None:
    assert list(beside(folder(tmp_path), "stg")) == ["dev"]
    assert list(beside(tmp_path, None)) == ["dev", "stg"]
    assert [topic["name"] for topic in beside(tmp_path, "stg")["dev"]["topics"]] == ["items.eu", "items-eu"]


def test_a_hint_is_written_below_a_good_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder(tmp_path) / "Pulumi.stg.yaml"
    assert main(["check", str(path)]) == 0
    good, hint = capsys.readouterr().out.splitlines()
    assert good == f"{path}: good (1 user, 0 topics, 1 mirror)"
    assert hint.startswith(
        "  hint: rt-inventory:mirrors[0].topics[0]: mirror mm2: 'items.eu' matches items-eu, items.eu"
    )


def test_a_file_that_is_named_otherwise_has_no_siblings(tmp_path: Path) -> None:
    path = folder(tmp_path) / "proposal.yaml"
    path.write_text(STG.replace("dev", "nowhere"))
    assert check(path)[1] == {}


SECOND = {**TARGET["mirrors"][0], "name": "second"}


def test_a_topic_that_two_mirrors_copy_to_the_same_name_is_reported_at_the_later_one() -> None:
    found = problems(with_value(TARGET, "mirrors/+", {**SECOND, "topics": ["item.*"]}))
    assert list(found) == ["mirrors[1].topics"]
    assert (
        "must not be copied to the same name by two mirrors (got items, as mirror mm2 of stack stg)"
        in (found["mirrors[1].topics"])
    )
    excluded = {**SECOND, "topics": ["item.*"], "topicsExclude": ["items"]}
    assert "mirrors[1].topics" not in problems(with_value(TARGET, "mirrors/+", excluded), None)


def test_offset_syncs_of_two_targets_on_one_source_need_an_alias_each() -> None:
    kept = with_value(TARGET, "mirrors/0/offsetSyncsLocation", "source")
    found = problems(kept, prod=kept)
    assert (
        "must be its own where offset syncs lie on the source (got es-tgt, as mirror mm2 of stack prod)"
        in (found["mirrors[0].target.alias"])
    )
    assert "mirrors[0].target.alias" not in problems(kept, prod=with_value(kept, "mirrors/0/target/alias", "es-prod"))
    assert "mirrors[0].target.alias" not in problems(TARGET, prod=TARGET)


def test_reverses_of_two_stacks_into_one_cluster_need_workers_of_their_own() -> None:
    both = with_value(with_value(TARGET, "mirrors/0/naming", "prefixed"), "mirrors/0/reverse", {"topics": ["audit"]})
    found = problems(both, prod=both)
    assert (
        "(got mm2-reverse, mm2-reverse-configs, mm2-reverse-offsets, mm2-reverse-status, as mirror mm2-reverse"
        in (found["mirrors[0].reverse"])
    )
    assert "mirrors[0].reverse" not in problems(both, prod=with_value(both, "mirrors/0/name", "mm3"))
