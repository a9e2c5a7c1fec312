"""A mirror of which topics are failed over alone: what it leaves out, and what the verification gets."""

import pytest

from ...support.pulumi_engine import Engine, mirror, target, up

TOPICS = ["items", r"items\.eu", "stock"]
MOVED = {"topics": ["items.eu"], "groups": ["orders, all"]}


@pytest.mark.parametrize("naming", ["identity", "prefixed"])
def test_topics_and_groups_are_left_out_by_the_names_of_the_source(naming: str) -> None:
    engine = Engine()
    up(engine, target(mirrors=[mirror(topics=TOPICS, failedOver=MOVED, naming=naming)]))
    (found,) = engine.all("v1:KafkaMirrorMaker2").values()
    (only,) = found["spec"]["mirrors"]
    assert only["topicsPattern"] == r"items|items\.eu|stock"
    assert only["topicsExcludePattern"].split("|")[-1] == r"items\.eu"
    assert only["groupsExcludePattern"].split("|")[-1] == r"orders\x2c\x20all"


def test_the_verification_leaves_them_out_and_is_told_which() -> None:
    engine = Engine()
    starts = {"items.eu": {"offsets": {"0": 3}}, "stock": {"offsets": {"0": 3}}}
    settings = target(
        mirrors=[mirror(topics=TOPICS, failedOver=MOVED, countsFrom=starts)],
        verification={"when": "never", "canary": {"topic": "items.eu"}},
    )
    exports = up(engine, settings).exports
    asked = exports["verificationRequests"]["mm2"]["mirror"]
    assert asked["failed_over"] == ["items.eu"]
    assert asked["topics_exclude"][-1] == r"items\.eu"
    assert asked["groups_exclude"][-1] == r"orders\x2c\x20all"
    assert (asked["canary"], list(asked["counts_from"])) == (None, ["stock"])
    outputs = exports["mirrors"]["mm2"]
    assert outputs["failedOver"] == {"topics": ["items.eu"], "groups": ["orders, all"], "pending": []}
    assert outputs["active"] == "source"


def test_a_mirror_that_is_not_split_says_nothing_of_it() -> None:
    exports = up(Engine(), target()).exports
    assert "failedOver" not in exports["mirrors"]["mm2"]
    assert "failed_over" not in exports["verificationRequests"]["mm2"]["mirror"]
