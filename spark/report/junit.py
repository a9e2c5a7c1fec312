"""The checks as a JUnit test suite."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

from spark.visible import visible


def as_junit(result: Mapping[str, Any]) -> str:
    """Return the checks as a JUnit test suite: a failed check is a failure, an unknown one is an error.

    A run that could not judge has an error of its own, named `verification`.
    """
    checks, error, mirror = result["checks"], result.get("error"), visible(result["mirror"])
    suite = ElementTree.Element(
        "testsuite",
        name=f"verification {mirror}",
        tests=str(len(checks) + (error is not None)),
        failures=str(sum(check["ok"] is False for check in checks)),
        errors=str(sum(check["ok"] is None for check in checks) + (error is not None)),
        time=str(result["seconds"]),
        timestamp=result["started_at"],
    )
    if error is not None:
        case = ElementTree.SubElement(suite, "testcase", classname=f"mirror.{mirror}", name="verification")
        ElementTree.SubElement(case, "error", message=visible(error))
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname=f"mirror.{mirror}", name=check["name"])
        if check["ok"] is not True:
            kind = "failure" if check["ok"] is False else "error"
            problem = ElementTree.SubElement(case, kind, message=visible(check["observed"]))
            problem.text = f"expected {visible(check['expected'])}\n{json.dumps(check['evidence'], indent=1)}"
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
