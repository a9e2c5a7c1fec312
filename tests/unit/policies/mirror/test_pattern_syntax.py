"""The rule on patterns that Java compiles."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.pattern_syntax import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

KEYS = ["topicsPattern", "topicsExcludePattern", "groupsPattern", "groupsExcludePattern"]


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-syntax", lambda mirror: kit.flow(mirror).update(groupsPattern="items("))


def message(key: str, got: str) -> str:
    return (
        f"mirror mm2: mirrors[0].{key} must be a list of Java's regular expressions (got {got}). "
        "MirrorMaker's connectors would fail."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("pattern", ["", ".*", "items,orders", r"mm2.*\.internal, __.*", "[a-z&&[^x]]+", "(?i)items"])
def test_patterns_that_java_compiles_pass(shape: str, key: str, pattern: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)[key] = pattern
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("*items", "* repeats nothing"),
        ("(items|orders", "a ( has no )"),
        ("(?P<n>items)", "Java does not know the group (?P<"),
        ("items,", "an entry of the list is empty"),
    ],
)
def test_a_pattern_that_java_refuses_is_reported(shape: str, key: str, pattern: str, reason: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)[key] = pattern
    assert kit.judge(POLICY, mirror) == [message(key, f"{pattern}: {reason}")]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\X", r"only Java defines what \X matches"),
        (r"a\b", r"\b means other things in Java 17 and Java 19"),
        (r"\p{IsLatin}+", r"only Java defines what \p{IsLatin} matches"),
        ("(?x)a b", "the flag x is not among i and s, the only ones that are known here"),
        ("(?:a|b)++", "++ repeats a group possessively, which Java does in a way of its own"),
        ("a{32768}", "names are not longer than 32767, so nothing can repeat more often"),
        ("[a&b]", r"a & that means itself within a set is written \&"),
        ("(?<=a|bc)d", "a look-behind has more than one width"),
        ("(items,orders)", "a comma cuts (items off, which is no expression by itself: a ( has no )"),
        ("(?i)items,orders", r"(?i)items has a flag or a \Q that counts for the entries behind it too"),
        (r"\Qitems,orders", r"\Qitems has a flag or a \Q that counts for the entries behind it too"),
    ],
)
def test_a_pattern_that_nobody_could_verify_is_reported(shape: str, key: str, pattern: str, reason: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)[key] = pattern
    assert kit.judge(POLICY, mirror) == [
        f"mirror mm2: mirrors[0].{key} must select what can be verified (got {pattern}: {reason}). "
        "Write it another way: nobody could find out what is missing."
    ]


def test_a_repetition_that_its_comma_cuts_is_reported() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["topicsPattern"] = "run-[0-9]{1,3}"
    reason = (
        r"a { begins a repetition such as {3}; one that means itself is written \{; "
        "MirrorMaker cuts the value at every comma, also within {1,2}"
    )
    assert kit.judge(POLICY, mirror) == [message("topicsPattern", f"run-[0-9]{{1,3}}: {reason}")]


def test_the_older_name_of_a_field_is_read_too() -> None:
    mirror = kit.mirror(kit.V1BETA2)
    kit.flow(mirror)["topicsBlacklistPattern"] = "*"
    assert kit.judge(POLICY, mirror) == [message("topicsExcludePattern", "*: * repeats nothing")]


def test_the_connectors_own_configuration_counts_where_the_field_is_not_set() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["sourceConnector"]["config"]["topics"] = "*"
    assert kit.judge(POLICY, mirror) == []
    del kit.flow(mirror)["topicsPattern"]
    assert kit.judge(POLICY, mirror) == [message("topicsPattern", "*: * repeats nothing")]


def test_another_type_is_ignored() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["topicsPattern"] = "*"
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror.props)) == []


def test_one_unknown_pattern_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror).update(topicsPattern=UNKNOWN_STRING_VALUE, groupsPattern="*")
    assert kit.judge(POLICY, mirror) == [message("groupsPattern", "*: * repeats nothing")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_pattern_of_several_lines_is_reported_on_one(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["topicsPattern"] = "items|\n(orders\n"
    (reported,) = kit.judge(POLICY, mirror)
    assert r"(got items|\n(orders\n: " in reported
