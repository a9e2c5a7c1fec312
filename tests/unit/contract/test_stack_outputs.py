"""The outputs of a stack: what is written is what is read, and an older stack gets one error with the remedy."""

from typing import Any

import pytest

from contract.stack_outputs import SECRET, ClusterOutputs, MirrorOutputs, OutputsError, StackOutputs

from ..components.test_program import Run, stg  # noqa: F401 - the fixture of a whole program


def test_the_program_exports_the_keys_of_the_model_in_its_order(stg: Run) -> None:  # noqa: F811 - the fixture
    assert list(stg.exports) == [str(field.alias) for field in StackOutputs.model_fields.values()]


def test_what_the_program_exports_is_read_unchanged(stg: Run) -> None:  # noqa: F811 - the fixture
    exported = stg.exports
    known = StackOutputs.read("stg", exported, "cluster", "mirrors")
    assert known.cluster.document() == exported["cluster"]
    assert {name: mirror.document() for name, mirror in known.mirrors.items()} == exported["mirrors"]
    assert list(known.mirrors["mm2"].document()) == list(exported["mirrors"]["mm2"])


def test_only_given_fields_are_written_and_null_is_one_of_them() -> None:
    written = MirrorOutputs(state="stopped", active=None).document()
    assert written == {"state": "stopped", "active": None}


def test_an_older_stack_has_the_defaults_of_what_it_lacks() -> None:
    known = StackOutputs.read("dev", {"cluster": None, "mirrors": {"mm2": {}}, "outputOfANewerRelease": 1})
    assert known.cluster == ClusterOutputs()
    assert (known.mirrors["mm2"].active, known.mirrors["mm2"].is_running) == ("source", True)


@pytest.mark.parametrize("key", ["userPasswords", "userCredentials", "verificationEnvironment"])
def test_a_secret_that_was_not_read_is_empty(key: str) -> None:
    known: dict[str, Any] = StackOutputs.read("dev", {key: SECRET}).model_dump(by_alias=True)
    assert known[key] == {}


def test_a_missing_output_is_one_error_with_the_remedy() -> None:
    with pytest.raises(OutputsError) as caught:
        StackOutputs.read("dev", {"topics": []}, "cluster")
    assert str(caught.value) == "stack dev: output cluster must exist (got topics). Run `pulumi up -s dev`."


def test_outputs_of_another_type_are_named_and_no_value_is_shown() -> None:
    with pytest.raises(OutputsError) as caught:
        StackOutputs.read("dev", {"userPasswords": ["made-up-password"], "cluster": {"name": 3}})
    assert str(caught.value) == (
        "stack dev: outputs must be those of this release (got other types of cluster.name, userPasswords). "
        "Run `pulumi up -s dev`."
    )
