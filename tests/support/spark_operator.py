"""The definitions of the Spark operator, served by the sandbox's API server; nothing runs that reads such resources."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .running_sandbox import Sandbox
from .waiting import at_most, wait_until

MODULE = "github.com/kubeflow/spark-operator/v2@v2.3.0"  # a Go module that holds its definitions


@contextmanager
def spark_definitions(sandbox: Sandbox, folder: Path) -> Iterator[None]:
    """Let the API server serve the kinds of the Spark operator; `folder` is an empty one."""
    command = ["go", "mod", "download", "-json", MODULE]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=at_most(300), check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    with definitions(sandbox, str(Path(json.loads(result.stdout)["Dir"]) / "config" / "crd" / "bases")):
        yield


@contextmanager
def definitions(sandbox: Sandbox, folder: str) -> Iterator[None]:
    """Let the API server serve the definitions of a folder."""
    sandbox.kubectl("apply", "--server-side", "-f", folder)
    # A definition that was created this moment has no conditions at all, which ends `kubectl wait` with an error.
    ready = ("wait", "--for=condition=Established", "--timeout=30s", "-f", folder)
    wait_until("the definitions are served", lambda: sandbox.kubectl(*ready, check=False).returncode == 0, 60)
    yield
    sandbox.kubectl("delete", "--timeout=100s", "-f", folder)
    shutil.rmtree(sandbox.kubectl_cache, ignore_errors=True)
