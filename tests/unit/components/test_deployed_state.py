"""What the state of a deployed stack refers to in this code: without it its preview, `up` and destroy would break."""

import base64
import re
from pathlib import Path

import dill
from pulumi.dynamic import dynamic

import components
from components.verification_run import VerificationProvider, VerificationRun

# Property `__provider` of every run in the state of a stack that is up.
PICKLED = "gASVOwAAAAAAAACMG2NvbXBvbmVudHMudmVyaWZpY2F0aW9uX3J1bpSMFFZlcmlmaWNhdGlvblByb3ZpZGVylJOUKYGULg=="
TYPE_TOKENS = {
    "rt-inventory:kafka:BreakGlass",
    "rt-inventory:kafka:Clients",
    "rt-inventory:kafka:Follower",
    "rt-inventory:kafka:KafkaCluster",
    "rt-inventory:kafka:KafkaTopics",
    "rt-inventory:kafka:KafkaUsers",
    "rt-inventory:kafka:MetricsRules",
    "rt-inventory:kafka:MirrorMaker2",
    "rt-inventory:kubernetes:CopiedSecrets",
    "rt-inventory:kubernetes:DemoClients",
    "rt-inventory:kubernetes:Monitoring",
    "rt-inventory:kubernetes:Namespaces",
    "rt-inventory:kubernetes:OperatorRelease",
    "rt-inventory:kubernetes:Scaling",
    "rt-inventory:olm:OperatorSubscription",
    "rt-inventory:pulumi:DeletionGuard",
    "rt-inventory:verification:AuditInCluster",
    "rt-inventory:verification:Verification",
    "rt-inventory:verification:VerificationInCluster",
}


def sources() -> str:
    """The code of all components."""
    return "\n".join(path.read_text(encoding="utf-8") for path in Path(str(components.__file__)).parent.rglob("*.py"))


def test_a_provider_of_a_deployed_stack_is_unpickled_as_pulumi_does_it() -> None:
    provider = dill.loads(base64.b64decode(PICKLED))  # noqa: S301  # the line of pulumi.dynamic.__main__
    assert type(provider) is VerificationProvider


def test_a_deployed_provider_shows_no_difference_in_a_preview() -> None:
    assert dynamic.serialize_provider(VerificationProvider()) == PICKLED


def test_there_is_no_other_dynamic_provider() -> None:
    found = re.findall(r"class (\w+)\(dynamic\.(?:ResourceProvider|Resource)\b", sources())
    assert found == [VerificationProvider.__name__, VerificationRun.__name__]


def test_the_run_keeps_its_type_token() -> None:
    assert VerificationRun._resource_type_name == "dynamic/verification:Run"


def test_components_keep_their_type_tokens() -> None:
    assert set(re.findall(r'__init__\(\s*"(rt-inventory:\w+:\w+)"', sources())) == TYPE_TOKENS
