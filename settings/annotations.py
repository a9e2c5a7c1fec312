"""Annotations of custom resources: texts that this project hands on and does not read.

Exceptions of the policy pack are the usual ones: `exception.rt-inventory/<rule>: "until <day>: <reason>"`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator

from settings.model import frozen

EXCEPTION = "exception.rt-inventory/"
# Whose keys nobody else sets: they command an operator or a tool, or remember something for it.
RESERVED = {
    "pulumi.com": "Pulumi",
    "strimzi.io": "the operator",
    "eventstreams.ibm.com": "the operator",
    "kubectl.kubernetes.io": "kubectl",
    "rt-inventory": "this project",
}


def none() -> Mapping[str, str]:
    """Return no annotations; the default."""
    return MappingProxyType({})


Annotations = Annotated[Mapping[str, str], AfterValidator(frozen)]
