"""All steps of the set-up."""

from . import crds, go, java, maven, plugins, python_env
from .place import Place
from .steps import Step


def plan(place: Place) -> list[Step]:
    """The steps, those that take longest first; a Java runtime is fetched only where the machine's will not do."""
    fetch_java = java.running_java(place) is None or java.generator_java(place) is None
    return [
        python_env.step(place),
        *go.steps(place),
        *maven.steps(place),
        *([java.fetch_step(place)] if fetch_java else []),
        *crds.steps(place),
        *plugins.steps(place),
    ]
