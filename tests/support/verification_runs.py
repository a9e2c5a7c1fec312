"""The verification job run on a request, as a test asks for it."""

import json
import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.state import PROJECT

from .preloaded_commands import run_module
from .waiting import at_most

JOB_WITHIN_S = at_most(600)


@dataclass
class JobBench:
    """Two clusters and a request between them."""

    request: dict[str, Any]
    environment: dict[str, str]
    folder: Path

    def client(self, side: str) -> dict[str, Any]:
        """Client configuration of one side with its secrets."""
        config = self.request[side]["client_config"]
        return {
            name: self.environment[value["env"]] if isinstance(value, dict) else value for name, value in config.items()
        }

    def run_job(
        self, request: Mapping[str, Any], options: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """Return the process that ran the job, and its report, empty if it left none."""
        run = self.folder / uuid.uuid4().hex
        run.mkdir()
        path, report = run / "request.json", run / "report"
        path.write_text(json.dumps(request))
        words = ["--request", str(path), "--report-dir", str(report), *options]
        variables = {**os.environ, **self.environment, **environment}
        result = run_module("spark", words, PROJECT, variables, JOB_WITHIN_S)
        document = report / "report.json"
        return result, json.loads(document.read_text()) if document.exists() else {}
