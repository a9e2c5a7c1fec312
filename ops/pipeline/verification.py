"""Verifies every mirror that a stack declares, one after the other, and leaves one document about all of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ops import verify
from ops.errors import OpsError
from ops.pipeline.documents import short

Document = dict[str, Any]


def run(
    stack: str,
    outputs: Mapping[str, Any] | None,
    reports: Path,
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> Document:
    """Return `{stack, mirrors: [verdict], said}`; `outputs` are the stack's, None if it was never deployed.

    A mirror that cannot be judged does not keep the others from being judged: all such are told together, by OpsError.
    """
    requests: Mapping[str, Any] = (outputs or {}).get("verificationRequests") or {}
    if not requests:
        said = "declares no mirror" if outputs else "is not deployed yet"
        return {"stack": stack, "mirrors": [], "said": f"nothing to verify: stack {stack} {said}"}
    verdicts: list[Document] = []
    troubles: list[str] = []
    for mirror in sorted(requests):
        say(f"verify {mirror} of {stack}")
        try:
            planned = verify.plan(stack, outputs or {}, mirror)
            folder = reports / f"{short(stack)}-{mirror}"
            verdicts.append(verify.run(planned, folder, environment, say, index=reports).as_json())
        except OpsError as error:
            troubles.append(str(error))
    document: Document = {"stack": stack, "mirrors": verdicts}
    return document | ({"error": "\n".join(troubles)} if troubles else {})


def passed(document: Document) -> bool:
    """Whether every mirror's verdict is `pass`."""
    return "error" not in document and all(each["verdict"] == "pass" for each in document["mirrors"])
