"""No message tells a secret, whatever field it stands in."""

import pytest
from pulumi_policy import ResourceValidationPolicy

from policies.rules import POLICIES
from policies.support.secret_values import redact_secrets
from tests.support import compliant_resources as kit

VALUE = "made-Up7"
SECRETS = [f"password={VALUE}", f'({{"api.key": "{VALUE}"', f"SASL_SSL://rt:{VALUE}@kafka.example.com:9093"]


def messages(sample: kit.Sample) -> list[str]:
    found: list[str] = []
    for policy in POLICIES:
        if isinstance(policy, ResourceValidationPolicy):
            found += kit.judge(policy, sample)
        else:
            found += kit.judge_stack(policy, [sample], protected=False)
    return found


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_the_wrong_field_of_a_mirror_is_not_reported(shape: str, secret: str) -> None:
    mirror = kit.mirror(shape).annotated(**{"exception.rt-inventory/topic-replication": secret})
    flow, source = kit.flow(mirror), kit.source(mirror)
    flow.update(topicsPattern=f"*{secret}", groupsExcludePattern=secret)
    flow["sourceConnector"]["config"].update(
        {
            "refresh.topics.interval.seconds": secret,
            "replication.factor": secret,
            "source.cluster.security.protocol": secret,
        }
    )
    source.update(bootstrapServers=secret, alias=secret)
    del source["tls"]
    found = messages(mirror)
    for reported in ("topicsPattern", "replication.factor", "interval", "security.protocol", "source", "annotation"):
        assert any(reported in message for message in found), reported
    assert [message for message in found if VALUE in message] == []


def test_a_redacted_text_still_shows_where_the_secrets_are() -> None:
    text = f"got password={VALUE} and https://rt:{VALUE}@example.com, but retention.ms=1"
    assert redact_secrets(text) == "got password=*** and https://rt:***@example.com, but retention.ms=1"
