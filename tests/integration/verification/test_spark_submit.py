"""The job under `spark-submit`, on real brokers: on this machine's cores, and on a master with a worker of Spark's own.

What the configuration of a submission decides holds, and no secret leaves the process by a command line, a log, the
event log (which holds what the environment page shows) or the worker's folder.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest

from components.verification import pods
from components.verification.audit import application
from contract.check_names import CHECK_NAMES
from sandbox.demo import measurements
from sandbox.processes import free_ports
from settings.verification import Verification
from spark.comparison.spark_session import archive
from tests.support.producers import RaisingProducer
from tests.support.waiting import at_most, wait_until

from ...support.ops_commands import ops
from ...support.running_sandbox import Pair, Sandbox

ROOT = Path(__file__).parents[3]
SPARK_HOME = Path(pyspark.__file__).parent
ENTRY = ROOT / "spark" / "__main__.py"
TOPIC, RECORDS = "items", 300
RUN_S = at_most(900)
BUCKET_S = 10
QUICK = "-XX:TieredStopAtLevel=1"
# On Kubernetes Spark makes the secret itself; a master has it beforehand.
AUTHENTICATED = {"spark.authenticate": "true", "spark.authenticate.secret": "made-up"}


@dataclass(frozen=True)
class Submission:
    """One run: how it ended, its report, everything it wrote, and the command lines that were seen meanwhile."""

    code: int
    output: str
    report: dict[str, Any]
    events: str
    command_lines: set[str]


@dataclass(frozen=True)
class Submitter:
    """Submits the job with a request for one topic of the pair."""

    folder: Path
    request: Path
    secrets: dict[str, str]
    environment: dict[str, str]
    jars: str

    def submit(
        self, name: str, *options: str, entry: Path = ENTRY, job: Sequence[str] = (), report: str = "report.json"
    ) -> Submission:
        """Run `spark-submit` and look at every process below it while it runs; `job` are other arguments of the job."""
        found, events = self.folder / name / report, self.folder / name / "events"
        events.mkdir(parents=True)
        conf = {
            "spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false", "spark.ui.enabled": "false", "spark.driver.extraJavaOptions": QUICK,
        }  # fmt: skip
        words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        job = job or ["--request", str(self.request), "--report-dir", str(found.parent)]
        seen = set[str]()
        with (self.folder / name / "output").open("w+", encoding="utf-8") as output:
            command = [
                str(SPARK_HOME / "bin" / "spark-submit"),
                "--jars",
                self.jars,
                *options,
                *words,
                str(entry),
                *job,
            ]
            process = psutil.Popen(
                command, env=self.environment | self.secrets, cwd=self.folder, stdout=output, stderr=subprocess.STDOUT
            )
            end = time.monotonic() + RUN_S
            while process.poll() is None:
                seen |= command_lines(process)
                if time.monotonic() > end:
                    process.kill()
                time.sleep(0.5)
            output.seek(0)
            printed = output.read()
        return Submission(
            code=process.returncode,
            output=printed,
            report=json.loads(found.read_text()) if found.exists() else {},
            events="".join(path.read_text() for path in events.rglob("*") if path.is_file()),
            command_lines=seen,
        )


def command_lines(process: psutil.Process) -> set[str]:
    """Command lines of a process and of all that it started."""
    found = set[str]()
    for each in [process, *process.children(recursive=True)]:
        try:
            found.add(" ".join(each.cmdline()))
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def submitter(sandbox: Sandbox, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Submitter:
    """A request for one topic; the records are there, the groups of the pair are not its matter."""
    ops(sandbox, "produce", "-s", "dev", "-t", TOPIC, "-n", str(RECORDS))
    folder = tmp_path_factory.mktemp("spark-submit")
    request = pair.stg["verificationRequests"]["mm2"]
    request = {**request, "mirror": {**request["mirror"], "topics": [TOPIC], "groups": ["no-such-group"]}}
    allowed = [name for name in CHECK_NAMES if not name.startswith("records_")]
    request |= {"limits": {**request["limits"], "allow_unknown": allowed}}
    (folder / "request.json").write_text(json.dumps(request))
    names = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
    jars = [str(jar) for jar in sorted(sandbox.tools.spark_jars.glob("*.jar")) if jar.name.startswith(names)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RT_INVENTORY")},
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    secrets = pair.stg["verificationEnvironment"]["mm2"]
    return Submitter(folder, folder / "request.json", secrets, environment, ",".join(jars))


@pytest.fixture(scope="module")
def on_this_machine(submitter: Submitter) -> Submission:
    """The package comes as a zip beside an entry file that lies elsewhere, as a cluster's own driver would get it."""
    package = str(archive(submitter.folder))
    entry = Path(shutil.copy(ENTRY, submitter.folder / "entry.py"))
    return submitter.submit("local", "--master", "local[2]", "--py-files", package, entry=entry)


@pytest.fixture(scope="module")
def cluster(submitter: Submitter) -> Iterator[str]:
    """The address of a master with one worker."""
    (port,) = free_ports(1)
    address = f"spark://127.0.0.1:{port}"
    daemons = {
        "master.Master": ["--port", str(port), "--webui-port", "0"],
        "worker.Worker": ["-c", "2", "-m", "1g", "-d", str(submitter.folder / "work"), "--webui-port", "0", address],
    }
    with ExitStack() as stack:
        for name, words in daemons.items():
            log = stack.enter_context(daemon(submitter, name, words))
            word = "New state: ALIVE" if name.startswith("master") else "Successfully registered with master"
            wait_until(f"{name} is there", lambda log=log, word=word: word in log.read_text(), 180)
        yield address


@contextmanager
def daemon(submitter: Submitter, name: str, words: list[str]) -> Iterator[Path]:
    """Run a process of Spark's and yield its log."""
    log = submitter.folder / f"{name}.log"
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
    authenticated = " ".join(f"-D{key}={value}" for key, value in AUTHENTICATED.items())
    options = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": f"{QUICK} {authenticated}"}
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*command, *words], env=submitter.environment | options, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            yield log
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def on_a_cluster(submitter: Submitter, cluster: str) -> Submission:
    return submitter.submit("cluster", "--master", cluster, *on_executors(AUTHENTICATED), "--executor-memory", "512m")


def on_executors(conf: Mapping[str, str]) -> list[str]:
    """Options of a submission to a cluster."""
    given = {**conf, "spark.executor.extraJavaOptions": QUICK}
    return [word for key, value in given.items() for word in ("--conf", f"{key}={value}")]


@pytest.fixture(params=[pytest.param("on_this_machine", marks=pytest.mark.nightly), "on_a_cluster"])
def submission(request: pytest.FixtureRequest) -> Submission:
    """Both runs, one after the other; by day the one on a cluster, which does all that the other does."""
    found: Submission = request.getfixturevalue(request.param)
    return found


def test_the_verdict_is_that_of_the_data(submission: Submission) -> None:
    assert submission.code == 0, submission.output
    checks = {check["name"]: check["ok"] for check in submission.report["checks"]}
    assert (checks["records_complete"], checks["records_unique"]) == (True, True)
    assert submission.report["records_compared"] >= RECORDS


def test_no_secret_is_shown_anywhere(submission: Submission, submitter: Submitter) -> None:
    assert any("spark-submit" in line or "SparkSubmit" in line for line in submission.command_lines)
    assert "SparkListenerEnvironmentUpdate" in submission.events
    texts = [submission.output, submission.events, json.dumps(submission.report), *submission.command_lines]
    leaked = {name for name, value in submitter.secrets.items() for text in texts if value in text}
    assert not {name for name in leaked if not name.endswith("_CA")}


def test_executors_read_the_records_and_keep_no_secret(on_a_cluster: Submission, submitter: Submitter) -> None:
    (application,) = (submitter.folder / "work").glob("app-*")
    files = [path for path in application.rglob("*") if path.is_file()]
    assert any(path.name == "verification.zip" for path in files)
    passwords = [value.encode() for name, value in submitter.secrets.items() if not name.endswith("_CA")]
    assert not [path for path in files for password in passwords if password in path.read_bytes()]
    assert '"Executor ID":"0"' in on_a_cluster.events
    assert '"Executor ID":"driver"' not in "".join(
        line for line in on_a_cluster.events.splitlines() if '"Event":"SparkListenerTaskEnd"' in line
    )


@pytest.fixture
def written(pair: Pair) -> Iterator[list[float]]:
    """The times of records that a producer writes to the source until the test ends, in seconds since 1970."""
    times, ended, producer = list[float](), threading.Event(), RaisingProducer(measurements.client_config(pair.dev))

    def write() -> None:
        while not ended.wait(0.05):
            times.append(time.time())
            producer.produce(TOPIC, key=str(len(times)), value="audited", timestamp=int(times[-1] * 1000))
            producer.poll(0)

    thread = threading.Thread(target=write)
    thread.start()
    yield times
    ended.set()
    thread.join()
    producer.deliver()


def application_of_an_audit() -> dict[str, Any]:
    """The spec that a stack makes, with short times."""
    run = {"how": "spark-application", "image": "verification:1.0.0"}
    times = {"bucketSeconds": BUCKET_S, "withinSeconds": 30, "everySeconds": 5}
    verification = Verification.model_validate({"run": run, "audit": times})
    assert verification.audit is not None
    return application("mm2", verification.audit, verification, "fingerprint")


@pytest.mark.nightly
def test_two_executors_share_the_work_of_an_audits_application_and_do_not_see_its_state(
    submitter: Submitter, cluster: str, written: list[float]
) -> None:
    spec = application_of_an_audit()
    conf = {key: value for key, value in spec["sparkConf"].items() if not key.endswith("extraClassPath")}
    # The same path in two places: driver and executors have other working directories.
    places = {"/audit": "/proc/self/cwd/audit", f"{pods.REQUEST_FOLDER}/{pods.REQUEST_FILE}": str(submitter.request)}
    (port,) = free_ports(1)
    job = [word.replace(":9404", f":{port}") for word in spec["arguments"]]
    for place, here in places.items():
        job = [here + word.removeprefix(place) if word.startswith(place) else word for word in job]
    sizes = ["--executor-memory", "480m", "--executor-cores", "1"]

    found = submitter.submit(
        "audit",
        *("--master", cluster, *on_executors(conf | AUTHENTICATED), *sizes),
        job=[*job, "--for", "90"],
        report="mm2-audit/audit.json",
    )

    assert found.code == 0, found.output
    (topic,) = found.report["topics"]
    assert topic["buckets"].keys() <= {"complete", "open"}
    assert topic["buckets"]["complete"] >= 3, "of each partition"
    assert found.report["faults"] == []
    ended = [line for line in found.events.splitlines() if '"Event":"SparkListenerTaskEnd"' in line]
    assert {json.loads(line)["Task Info"]["Executor ID"] for line in ended} == {"0", "1"}
    kept = [path for path in submitter.folder.rglob("checkpoints") if path.is_dir()]
    assert kept == [submitter.folder / "audit" / "mm2-audit" / "state" / "checkpoints"]


def test_a_submission_without_the_connector_reports_what_is_missing(submitter: Submitter) -> None:
    process = subprocess.run(
        [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[1]", "--driver-java-options", QUICK,
         str(ENTRY), "--request", str(submitter.request), "--report-dir",
         str(submitter.folder / "none")],
        env=submitter.environment | submitter.secrets,
        cwd=submitter.folder,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )  # fmt: skip
    assert process.returncode == 2
    assert "spark-submit: must be given the Kafka connector" in process.stdout + process.stderr
    assert "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0" in process.stdout + process.stderr
