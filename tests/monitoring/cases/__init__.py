"""What each alert does when: data for promtool."""

from tests.monitoring.cases.case import NAMED, SCOPE, Case, Fired, named
from tests.monitoring.cases.certificates import CERTIFICATE_CASES
from tests.monitoring.cases.groups import GROUP_CASES
from tests.monitoring.cases.healthy import HEALTHY
from tests.monitoring.cases.kafka import KAFKA_CASES
from tests.monitoring.cases.lag import LAG_CASES
from tests.monitoring.cases.mirror import MIRROR_CASES
from tests.monitoring.cases.status import STATUS_CASES
from tests.monitoring.cases.tasks import TASK_CASES
from tests.monitoring.cases.verification import VERIFICATION_CASES

CASES = (
    *(*MIRROR_CASES, *LAG_CASES, *GROUP_CASES, *TASK_CASES, *KAFKA_CASES, *CERTIFICATE_CASES),
    *(*VERIFICATION_CASES, *STATUS_CASES),
)

__all__ = ["CASES", "HEALTHY", "NAMED", "SCOPE", "Case", "Fired", "named"]
