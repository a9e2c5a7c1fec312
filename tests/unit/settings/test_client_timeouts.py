"""docs/client-timeouts.md is what its table says, and the table knows the clients' real defaults and the RTO."""

import ctypes
import os
import re
import subprocess
from pathlib import Path

import confluent_kafka
import pytest

from sandbox.toolchain.paths import cache_root
from settings import client_timeouts
from settings.client_timeouts import SETTINGS, Bound, Client, Setting
from tests.support.java_regex import QUICK
from tests.support.recovery_times import measured_rto_s

KAFKA = "4.3.1"
CLASSES = {Client.PRODUCER: "producer.ProducerConfig", Client.CONSUMER: "consumer.ConsumerConfig"}


def default(of: Setting, client: Client) -> str:
    """The default of one client: librdkafka's stands behind the others' where they differ."""
    java, _, other = of.default.partition("; librdkafka ")
    return other if other and client is Client.LIBRDKAFKA else java


def use(name: str, client: Client) -> int:
    return next(int(one.use) for one in SETTINGS if one.name == name and client in one.clients)


def test_the_page_is_fresh() -> None:
    reported = "docs/client-timeouts.md is not what the table says: run `venv/bin/python -m settings timeouts`"
    assert client_timeouts.PATH.read_text(encoding="utf-8") == client_timeouts.text(), reported


@pytest.mark.parametrize("setting", [one for one in SETTINGS if one.bound is Bound.OUTLASTS], ids=lambda one: one.name)
def test_what_must_outlast_a_failover_does(setting: Setting) -> None:
    assert int(setting.use) > measured_rto_s() * 1000


@pytest.mark.parametrize("setting", [one for one in SETTINGS if one.bound is Bound.WITHIN], ids=lambda one: one.name)
def test_several_attempts_fit_into_the_delivery_time_out(setting: Setting) -> None:
    assert 3 * int(setting.use) <= use("delivery.timeout.ms", Client.PRODUCER)
    assert 3 * int(setting.use) <= use("message.timeout.ms", Client.LIBRDKAFKA)


def test_an_application_that_waits_for_its_producer_stays_in_its_group() -> None:
    waits = use("max.block.ms", Client.PRODUCER) + use("delivery.timeout.ms", Client.PRODUCER)
    assert waits < use("max.poll.interval.ms", Client.CONSUMER)


def test_a_broker_allows_the_transaction_time_out() -> None:
    assert use("transaction.timeout.ms", Client.PRODUCER) <= 900_000, "transaction.max.timeout.ms"


def librdkafka(name: str) -> str | None:
    """The default of a property in the library that is installed, None if it does not know it."""
    (library,) = (Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs").glob("librdkafka*")
    loaded = ctypes.CDLL(str(library))
    for scope in ("conf", "topic_conf"):
        make, get = (getattr(loaded, f"rd_kafka_{scope}_{call}") for call in ("new", "get"))
        make.restype = ctypes.c_void_p
        text, size = ctypes.create_string_buffer(512), ctypes.c_size_t(512)
        if get(ctypes.c_void_p(make()), name.encode(), text, ctypes.byref(size)) == 0:
            return text.value.decode()
    return None


@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if Client.LIBRDKAFKA in one.clients], ids=lambda one: one.name
)
def test_librdkafka_knows_each_setting_by_this_default(setting: Setting) -> None:
    assert librdkafka(setting.name) == default(setting, Client.LIBRDKAFKA)


@pytest.mark.parametrize("client", CLASSES)
def test_kafkas_own_clients_know_each_setting_by_this_default(java: str, client: Client) -> None:
    folders = sorted((cache_root(os.environ) / "kafka").glob(f"{KAFKA}-*/libs"))
    if not folders:
        pytest.skip("needs Kafka's jars, which `make setup` fetches")
    command = [java, *QUICK, "-cp", f"{folders[-1]}/*", f"org.apache.kafka.clients.{CLASSES[client]}"]
    page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    found = dict(re.findall(r'<h4><a id="([^"]+)">.*?<th>Default:</th><td>([^<\s]*)', page, re.DOTALL))
    wanted = {one.name: default(one, client) for one in SETTINGS if client in one.clients}
    assert {name: found.get(name) for name in wanted} == wanted
