"""The images as a cluster runs them: what is in them, and the verification on real brokers under a user without a name.

The demo clients' image runs in test_demo_clients.py, the dedicated mirror's in test_dedicated_mirror.py.
"""

import json
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contract.check_names import CHECK_NAMES
from spark.comparison.comparer import ABOVE
from tests.support.waiting import at_most

from ...support.images import REGISTRY, USER, Image, Images, Mount
from ...support.ops_commands import ops
from ...support.running_sandbox import Pair, Sandbox

TOPIC, RECORDS = "items", 300
RUN_S = at_most(300)
REQUEST, REPORTS = "/etc/verification/request.json", "/reports"
OWN = ("opt/demo-clients", "opt/verification", "opt/mirror")


@dataclass(frozen=True)
class Run:
    """One run of the verification's image: its exit code, its output and its report."""

    code: int
    output: str
    report: dict[str, Any]


@pytest.fixture(params=["demo_clients", "mirror", "verification"])
def image(request: pytest.FixtureRequest, images: Images) -> Image:
    found: Image = getattr(images, request.param)
    return found


@pytest.fixture(params=[pytest.param("without Spark", marks=pytest.mark.nightly), "on Spark"])
def run(request: pytest.FixtureRequest, sandbox: Sandbox, pair: Pair, images: Images, tmp_path: Path) -> Run:
    """The image's own entry point with the pair's request for one topic; no kubeconfig, so the rest may be unknown."""
    ops(sandbox, "produce", "-s", "dev", "-t", TOPIC, "-n", str(RECORDS))
    asked = pair.stg["verificationRequests"]["mm2"]
    asked = {**asked, "mirror": {**asked["mirror"], "topics": [TOPIC], "groups": ["no-such-group"]}}
    allowed = [name for name in CHECK_NAMES if not name.startswith("records_")]
    file, reports = tmp_path / "request.json", tmp_path / "reports"
    file.write_text(json.dumps(asked | {"limits": {**asked["limits"], "allow_unknown": allowed}}))
    reports.mkdir()
    reports.chmod(0o777)
    mounts = [Mount("/tmp"), Mount(REQUEST, file), Mount(REPORTS, reports, writable=True)]  # noqa: S108  # its own
    above = {ABOVE: "0", "RT_INVENTORY_SPARK_CORES": "1"} if request.param == "on Spark" else {}
    ended = subprocess.run(
        images.verification.command("--request", REQUEST, "--report-dir", REPORTS, mounts=mounts),
        env=images.verification.environment(pair.stg["verificationEnvironment"]["mm2"] | above),
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    report = reports / "report.json"
    found = json.loads(report.read_text()) if report.exists() else {}
    return Run(ended.returncode, ended.stdout + ended.stderr, found)


def test_the_verification_judges_real_clusters_from_a_root_that_nobody_may_write(run: Run) -> None:
    assert run.code == 0, run.output
    checks = {check["name"]: check["ok"] for check in run.report["checks"]}
    assert (checks["records_complete"], checks["records_unique"]) == (True, True)
    assert run.report["records_compared"] >= RECORDS


def test_a_container_has_neither_a_name_nor_a_right_nor_a_place_to_write(images: Images) -> None:
    shown = (
        'id -u; id -g; grep -E "^(CapPrm|CapEff|NoNewPrivs)" /proc/self/status; touch /opt/x; echo $?; whoami; echo $?'
    )
    command = images.demo_clients.command("-c", shown, entrypoint=["sh"])
    result = subprocess.run(command, env={}, capture_output=True, text=True, timeout=at_most(60), check=True)
    none = "0" * 16
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [str(USER), "0", f"CapPrm: {none}", f"CapEff: {none}", "NoNewPrivs: 1", "1", "1"], result.stderr
    assert "Read-only file system" in result.stderr


def test_nobody_but_root_may_change_what_an_image_brings(image: Image) -> None:
    changeable = []
    for folder in (image.root / name for name in OWN):
        for path in [folder, *folder.rglob("*")] if folder.exists() else []:
            state = path.lstat()
            shared = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not path.is_symlink()
            if shared or state.st_uid:
                changeable.append(path)
    assert not changeable
    assert any((image.root / name).exists() for name in OWN)
    assert image.config["User"] not in ("", "0", "root")


def test_an_image_keeps_nothing_of_where_it_was_built(image: Image, images: Images) -> None:
    pip = image.root / "etc" / "pip.conf"
    assert not pip.exists() or not pip.read_text("utf-8")
    metadata = json.dumps([image.config, list(image.history)])
    assert images.address not in metadata
    assert REGISTRY not in metadata
    names = {path.name for name in OWN for path in (image.root / name).rglob("*")}
    assert not {".git", "venv", "Pulumi.dev.yaml", "fetch_jars.py"} & names
