"""All steps of the set-up."""

from . import (
    actionlint,
    api_versions,
    chromium,
    crds,
    go,
    image_parts,
    java,
    maven,
    plugins,
    prometheus,
    python_env,
    spark_classes,
)
from .place import Place
from .steps import Step


def plan(place: Place) -> list[Step]:
    """The steps in the order in which they are started when nothing holds them back."""
    return [
        python_env.step(place),
        *go.steps(place),
        *maven.steps(place),
        java.step(place),
        chromium.step(place),
        prometheus.step(place),
        spark_classes.step(place),
        image_parts.step(place),
        *crds.steps(place),
        api_versions.step(place),
        *plugins.steps(place),
        actionlint.step(place),
    ]
