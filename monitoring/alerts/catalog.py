"""Every alert, by what it is about."""

from monitoring.alerts.certificates import CERTIFICATES
from monitoring.alerts.groups import GROUPS
from monitoring.alerts.kafka import KAFKA
from monitoring.alerts.lag import LAG
from monitoring.alerts.mirror import MIRROR
from monitoring.alerts.status import STATUS
from monitoring.alerts.tasks import TASKS
from monitoring.alerts.verification import VERIFICATION

ALERT_GROUPS = (MIRROR, LAG, GROUPS, TASKS, KAFKA, CERTIFICATES, VERIFICATION, STATUS)
ALERTS = tuple(alert for group in ALERT_GROUPS for alert in group.alerts)
