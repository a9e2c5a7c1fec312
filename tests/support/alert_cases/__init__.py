"""What each alert does when: data for promtool."""

from tests.support.alert_cases.audit import AUDIT_CASES
from tests.support.alert_cases.case import NAMED, SCOPE, Case, Fired, named
from tests.support.alert_cases.certificates import CERTIFICATE_CASES
from tests.support.alert_cases.groups import GROUP_CASES
from tests.support.alert_cases.healthy import HEALTHY
from tests.support.alert_cases.kafka import KAFKA_CASES
from tests.support.alert_cases.lag import LAG_CASES
from tests.support.alert_cases.mirror import MIRROR_CASES
from tests.support.alert_cases.status import STATUS_CASES
from tests.support.alert_cases.tasks import TASK_CASES
from tests.support.alert_cases.verification import VERIFICATION_CASES

CASES = (
    *(*MIRROR_CASES, *LAG_CASES, *GROUP_CASES, *TASK_CASES, *KAFKA_CASES, *CERTIFICATE_CASES),
    *(*VERIFICATION_CASES, *AUDIT_CASES, *STATUS_CASES),
)

__all__ = ["CASES", "HEALTHY", "NAMED", "SCOPE", "Case", "Fired", "named"]
