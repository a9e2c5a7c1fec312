"""Two brokers that refuse, with topics and users for it, and the verification job run on them."""

import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from sandbox.pki import KeyPair
from sandbox.toolchain import Tools

from . import guarded_brokers as guarded
from . import raw_commits, records
from .guarded_brokers import Guarded
from .preloaded_commands import run_module
from .producers import RaisingProducer
from .waiting import at_most

ROOT = Path(__file__).parent.parent.parent
RIGHTS = ("DESCRIBE", "READ", "DESCRIBE_CONFIGS")
TOO_LONG = "t" * 246  # with `src.` in front it is longer than Kafka allows
EVIL = "evil\x1b[2J\x07group"  # clears a terminal that is shown it
CUT = b"cut\0short"  # the client library ends it at the NUL
FORGED = b"evil\r\n::error::all is lost"  # a command to who runs a workflow and reads its log
LONGEST = b"evil" + b"g" * (2**15 - 1 - len("evil"))  # as Kafka's protocol allows it
OFFSETS = "connect-offsets"
EVERYTHING = [*(("topic", "*", right) for right in RIGHTS), ("group", "*", "DESCRIBE")]


@dataclass
class Site:
    """The brokers with their topics, a user for each lack of rights, and the passwords."""

    brokers: Guarded
    folder: Path
    passwords: dict[str, str] = field(default_factory=dict)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def request(
        self, *, source: dict[str, Any] | None = None, target: dict[str, Any] | None = None, **mirror: Any
    ) -> Any:
        """Return a request whose sides are a user with all rights, unless given."""
        good = self.brokers.login("reader")
        asked = {"topics": ["empty"], "groups": ["no-such-.*"], "naming": "prefixed"} | mirror
        return {
            "source": {"alias": "src", "client_config": good if source is None else source},
            "target": {"alias": "tgt", "client_config": good if target is None else target},
            "mirror": asked,
            "limits": {"mirror_wait_seconds": 3},
        }

    def login(self, user: str, listener: str = "LOGIN") -> dict[str, Any]:
        """Return the client configuration of one of the users."""
        return self.brokers.login(user, listener) | {"sasl.password": {"env": _variable(user)}}

    def mutual(self, pair: KeyPair | None) -> dict[str, Any]:
        """Return the configuration of a client with a certificate; its key lies in a file."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.brokers.bootstrap("MUTUAL"),
            "security.protocol": "SSL",
            "ssl.ca.pem": self.brokers.authority.certificate,
        }
        if pair is not None:
            key = self.folder / f"client-{next(self.numbers)}.key"
            key.write_text(pair.key)
            config |= {"ssl.certificate.pem": pair.certificate, "ssl.key.pem": {"file": str(key)}}
        return config

    def start(self, request: Any, **environment: str) -> tuple[subprocess.Popen[str], Path]:
        """Start the job on a request; returns the process and the folder of its report."""
        arguments, report, variables = self._prepared(request, environment)
        process = subprocess.Popen(
            [sys.executable, "-m", "spark", *arguments],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return process, report

    def verify(self, request: Any) -> "Ended":
        """Run the job to its end."""
        began = time.monotonic()
        arguments, report, variables = self._prepared(request, {})
        result = run_module("spark", arguments, ROOT, variables, at_most(240))
        return self.ended(result.returncode, result.stdout, result.stderr, report, time.monotonic() - began)

    def _prepared(self, request: Any, environment: Mapping[str, str]) -> tuple[list[str], Path, dict[str, str]]:
        """Write a request; returns the job's arguments, the folder of its report, and its variables."""
        number = next(self.numbers)
        path, report = self.folder / f"request-{number}.json", self.folder / f"report-{number}"
        path.write_text(json.dumps(request))
        variables = {
            **os.environ,
            **{_variable(user): password for user, password in self.passwords.items()},
            **self.brokers.tools.spark_environment,
            "PASSWORD": self.passwords["reader"],
            **environment,
        }
        return ["--request", str(path), "--report-dir", str(report)], report, variables

    def ended(self, code: int, out: str, errors: str, report: Path, seconds: float) -> "Ended":
        """Return the output of a run, which must hold no secret."""
        files = {path.name: path.read_text() for path in report.iterdir()}
        for secret in self.passwords.values():
            assert not any(secret in text for text in (out, errors, *files.values()))
        assert "Traceback" not in errors
        assert not set(out + errors) & set("\x1b\x07")
        assert not [line for line in (out + errors).splitlines() if line.lstrip().startswith("::")]
        ElementTree.fromstring(files["junit.xml"])  # noqa: S314 - made here
        document = json.loads(files["report.json"])
        assert document["exit_code"] == code
        assert {"report.html", "junit.xml"} <= set(files)
        return Ended(code, out, [line for line in errors.splitlines() if not line.startswith("[")], document, seconds)


@dataclass(frozen=True)
class Ended:
    """Exit code, standard output, what stood on standard error besides progress, and report.json."""

    code: int
    out: str
    errors: list[str]
    report: dict[str, Any]
    seconds: float


def _variable(user: str) -> str:
    return "PASSWORD_" + user.upper().replace("-", "_")


@contextmanager
def prepared(tools: Tools, folder: Path) -> Iterator[Site]:
    """Both brokers, topics `near` on the first, `far` on the second, `empty` without records, and a group `orders`."""
    with guarded.running(tools) as brokers:
        made = Site(brokers, folder)
        made.passwords["reader"] = brokers.user("reader", EVERYTHING)
        for right in RIGHTS:
            others = [("topic", "empty", one) for one in RIGHTS if one != right]
            if right == "DESCRIBE":  # who may read may describe
                others = [("topic", "empty", "DESCRIBE_CONFIGS")]
            user = f"no-{right.lower()}".replace("_", "-")
            made.passwords[user] = brokers.user(user, [*others, ("topic", "src.empty", "DESCRIBE")])
        topics = [("topic", "*", right) for right in RIGHTS]
        made.passwords["no-group"] = brokers.user("no-group", [*topics, ("cluster", "kafka-cluster", "DESCRIBE")])
        made.passwords["no-cluster"] = brokers.user("no-cluster", topics)
        made.passwords["one-group"] = brokers.user("one-group", [*topics, ("group", "orders", "DESCRIBE")])
        brokers.topic("empty", [[1]])
        brokers.topic("src.empty", [[1]])
        brokers.topic(TOO_LONG, [[1]], 5)
        for topic, node, held in (("near", 1, 20), ("far", 2, 20_000)):
            brokers.topic(topic, [[node]], held)
            brokers.topic(f"src.{topic}", [[node]], held)
        for group in ("orders", EVIL):
            consumer = Consumer({"bootstrap.servers": brokers.bootstrap("OPEN"), "group.id": group, "log_level": 0})
            records.commit(consumer, [TopicPartition("near", 0, 5)])
            consumer.close()
        for name in (CUT, FORGED, LONGEST):
            raw_commits.commit(brokers.bootstrap("OPEN"), name, "near", 0, 5)
        _hide(made)
        yield made


def _hide(site: Site) -> None:
    """Topics `veiled`, which only the mirror's offsets name, and `covered`, which has a remote topic.

    The user `half-blind` may describe neither of them. `gone` has a remote topic and is no more at the source.
    """
    for name in ("veiled", "covered", "src.covered", "src.gone", "mear", OFFSETS):
        site.brokers.topic(name, [[1]])
    shown = [("topic", name, right) for name in ("near", "mear", "gone") for right in RIGHTS]
    site.passwords["half-blind"] = site.brokers.user("half-blind", [*shown, ("group", "*", "DESCRIBE")])
    producer = RaisingProducer({"bootstrap.servers": site.brokers.bootstrap("OPEN"), "log_level": 0})
    for name, offset in (("near", 19), ("veiled", 4)):
        key = ["src->tgt.MirrorSourceConnector", {"cluster": "src", "partition": 0, "topic": name}]
        producer.produce(OFFSETS, key=json.dumps(key), value=json.dumps({"offset": offset}))
    producer.deliver()
