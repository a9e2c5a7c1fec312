"""How many workers a mirror has, by how far it is behind: bounds, target and pace of an autoscaler.

What scales it stands in components/scaling.py; what may be said here, in settings/rules/scaling.py.
"""

from typing import Annotated, Literal

from pydantic import Field

from settings.model import Count, Model
from settings.names import Label
from settings.verification import URL

METRIC = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$"
# Bounds of autoscaling/v2: HPAScalingPolicy.periodSeconds and HPAScalingRules.stabilizationWindowSeconds.
Cooldown = Annotated[int, Field(ge=1, le=1800)]
Stabilization = Annotated[int, Field(ge=0, le=3600)]
# One series a mirror: recorded of what `ops` measures or, without it, of what the workers' consumers know (see
# monitoring/alerts/recordings.py); only `ops` knows the age of what is not copied.
_METRICS = {"lag_records": "mirror:lag_records:sum", "lag_seconds": "rt_inventory_mirror_lag_seconds"}


class Scaling(Model):
    """`keda` makes a ScaledObject, `hpa` a HorizontalPodAutoscaler that reads an external metric by an adapter.

    One of `lagRecords` and `lagSeconds`. Workers are added at once and removed one by one, for each change stops tasks.
    The autoscaler sets their number: `replicas` is what a new mirror begins with. While a mirror is paused, stopped or
    in a failback it has no autoscaler and keeps its workers. `<name>-reverse` and `<name>-failback` are not scaled.
    """

    through: Literal["keda", "hpa"]
    min_replicas: Count = 1
    max_replicas: Count
    lag_records: Count | None = None
    lag_seconds: Count | None = None
    metric: Annotated[str, Field(pattern=METRIC)] | None = None
    prometheus: Annotated[str, Field(pattern=URL)] | None = None
    trigger_authentication: Label | None = None
    cooldown_seconds: Cooldown = 300
    stabilization_seconds: Stabilization = 600

    @property
    def series(self) -> str:
        """Name of the metric that tells how far the mirror is behind."""
        return self.metric or _METRICS["lag_records" if self.lag_records is not None else "lag_seconds"]
