"""Runs probes at the same time, all under one deadline. Has the probe of certificates, which two commands take."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaException

from contract.fields import VerificationError
from kafka import connectivity
from kafka.cluster import Cluster
from ops.errors import OpsError

BROKERS_MAX = 50
ANSWER_WITHIN_S = 3.0
FORESEEN = (VerificationError, KafkaException, OpsError, OSError)


@dataclass(frozen=True, kw_only=True)
class ProbeResults:
    """Results of probes by name; `problems` has the reason of each probe that failed or did not end in time."""

    found: Mapping[str, Any]
    problems: Mapping[str, str]


def run_probes(
    probes: Mapping[str, Callable[[], Any]], within_s: float, *, debug: bool = False, at_once: int | None = None
) -> ProbeResults:
    """Return the results of the probes that end within the time, in their order; a probe that hangs is left behind.

    Of an unforeseen error only the type is reported, for its message may contain a secret; with `debug` it is raised.
    With `at_once` no more than that number of probes run at the same time; all have `within_s` together.
    """
    found: dict[str, Any] = {}
    failed: dict[str, Exception] = {}
    slots = threading.Semaphore(at_once or len(probes))
    end = time.monotonic() + within_s

    def run(name: str, probe: Callable[[], Any]) -> None:
        try:
            with slots:
                if time.monotonic() < end:
                    found[name] = probe()
        except Exception as error:
            failed[name] = error

    threads = {name: threading.Thread(target=run, args=(name, probe), daemon=True) for name, probe in probes.items()}
    for thread in threads.values():
        thread.start()
    for thread in threads.values():
        thread.join(max(0.0, end - time.monotonic()))
    ended, raised = dict(found), dict(failed)  # what comes later is not taken
    done = {name: ended[name] for name in probes if name in ended}
    broken = {name: raised[name] for name in probes if name in raised}
    for error in broken.values():
        if debug and not isinstance(error, FORESEEN):
            raise error
    late = {name: f"no answer within {within_s:.0f} s" for name in probes if name not in done and name not in broken}
    return ProbeResults(found=done, problems={name: error_text(error) for name, error in broken.items()} | late)


def error_text(error: Exception) -> str:
    """Return what may be reported of an error: of an unforeseen one its type alone, its message may hold a secret."""
    if not isinstance(error, FORESEEN):
        return f"unforeseen {type(error).__name__} (--debug shows where)"
    first = error.args[0] if error.args else error
    return str(first.str()) if isinstance(error, KafkaException) and hasattr(first, "str") else str(error)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a certificate is for, and its last moment."""

    what: str
    ends: datetime


def certificates(config: Mapping[str, str], addresses: Iterable[str]) -> list[Certificate]:
    """Return the certificates of a client's configuration, and those that brokers show at `host:port`."""
    if "SSL" not in config.get("security.protocol", "").upper():
        return []
    wanted = sorted(set(addresses))[:BROKERS_MAX]
    with ThreadPoolExecutor(16) as pool:
        shown = [one for one in pool.map(connectivity.broker_certificate, wanted) if one is not None]
    return [Certificate(what=what, ends=ends) for what, ends in dict.fromkeys([*connectivity.trusted(config), *shown])]


def certificates_of(cluster: Cluster) -> list[Certificate]:
    """Return the certificates that the client has, and those that brokers show at the addresses that they advertise.

    If the cluster is unreachable, those that the client has, and what its bootstrap addresses show.
    """
    config = cluster.side.client_config
    addresses = set(servers(config.get("bootstrap.servers", "")))
    if "SSL" not in config.get("security.protocol", "").upper():
        return []
    try:
        cluster.connect(ANSWER_WITHIN_S)
        brokers = cluster.admin.list_topics(timeout=ANSWER_WITHIN_S).brokers
        addresses |= {f"{one.host}:{one.port}" for one in brokers.values()}
    except (VerificationError, KafkaException):
        pass  # what the client has is known all the same
    return certificates(config, addresses)


def servers(listed: str) -> frozenset[str]:
    """Return the addresses of a list of bootstrap servers."""
    return frozenset(one.strip() for one in listed.split(",") if one.strip())
