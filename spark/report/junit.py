"""The checks as a JUnit test suite."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any


def as_junit(result: Mapping[str, Any]) -> str:
    """Return the checks as a JUnit test suite: a failed check is a failure, an unknown one is an error."""
    checks = result["checks"]
    suite = ElementTree.Element(
        "testsuite",
        name=f"verification {result['mirror']}",
        tests=str(len(checks)),
        failures=str(sum(check["ok"] is False for check in checks)),
        errors=str(sum(check["ok"] is None for check in checks)),
        time=str(result["seconds"]),
        timestamp=result["started_at"],
    )
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname=f"mirror.{result['mirror']}", name=check["name"])
        if check["ok"] is not True:
            kind = "failure" if check["ok"] is False else "error"
            problem = ElementTree.SubElement(case, kind, message=check["observed"])
            problem.text = f"expected {check['expected']}\n{json.dumps(check['evidence'], indent=1)}"
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
