"""Certificates that are renewed, versions that are rolled, and the share group of a nemesis."""

import ssl
from pathlib import Path
from typing import cast

import pytest

from benchmarks.certificates import CLIENTS, Certificates
from benchmarks.clusters import SOURCE, TARGET, WORKER, BenchmarkError, Clusters
from benchmarks.nemesis import maintenance
from benchmarks.nemesis.maintenance import NEXT, Maintenance
from benchmarks.nemesis.traffic import SHARE, NemesisTraffic
from benchmarks.nemesis.watchers import group_types, share_differences
from sandbox.pki import is_issued_by
from sandbox.toolchain import pins


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    made = Certificates(tmp_path, ["127.0.0.1"])
    for owner in (SOURCE, TARGET, WORKER, CLIENTS):
        made.renew(owner)
    return made


def test_a_renewed_certificate_has_another_key_and_the_earlier_one_stays_valid(certificates: Certificates) -> None:
    authority = certificates.trusted.read_text(encoding="utf-8")
    before, store = certificates.newest(SOURCE), certificates.keystore(SOURCE).read_text(encoding="utf-8")
    others = certificates.newest(WORKER)
    certificates.renew(SOURCE)
    after = certificates.keystore(SOURCE).read_text(encoding="utf-8")
    assert after.endswith(certificates.newest(SOURCE))
    assert not after.endswith(before)
    assert after.split("-----END PRIVATE KEY-----")[0] != store.split("-----END PRIVATE KEY-----")[0]
    assert is_issued_by(before, authority)
    assert is_issued_by(certificates.newest(SOURCE), authority)
    assert certificates.newest(WORKER) == others
    assert certificates.trusted.read_text(encoding="utf-8") == authority


def test_clients_find_a_certificate_and_its_key_in_files_of_a_new_name(certificates: Certificates) -> None:
    before = certificates.client()
    certificates.renew(CLIENTS)
    for config in (before, certificates.client()):
        context = ssl.create_default_context(cafile=config["ssl.ca.location"])
        context.load_cert_chain(config["ssl.certificate.location"], config["ssl.key.location"])
        assert Path(config["ssl.key.location"]).stat().st_mode & 0o777 == 0o600
    assert before["ssl.key.location"] != certificates.client()["ssl.key.location"]
    assert Path(certificates.client()["ssl.certificate.location"]).read_text("utf-8") == certificates.newest(CLIENTS)


def test_a_roll_goes_to_the_other_installed_version_and_back() -> None:
    assert {NEXT[NEXT[version]] for version in NEXT} == set(NEXT) == {pins.KAFKA, pins.KAFKA_BEFORE}
    assert all(version != other for version, other in NEXT.items())


class StartedProcesses:
    """Clusters of which it is known who runs, and that note what was started."""

    def __init__(self, *running: str) -> None:
        self.running, self.started = {*running}, list[tuple[str, str]]()
        self.processes = self

    def alive(self, name: str) -> bool:
        return name in self.running

    def start_broker(self, name: str, *, version: str) -> None:
        self.started.append((name, version))

    def start_worker(self, *, wait: bool, version: str) -> None:
        assert not wait
        self.started.append((WORKER, version))


def test_what_has_ended_by_itself_is_started_with_its_version_and_what_runs_is_left() -> None:
    clusters = StartedProcesses(SOURCE)
    keeper = Maintenance(cast("Clusters", clusters))
    keeper.versions[TARGET] = pins.KAFKA_BEFORE
    for name in (SOURCE, TARGET, WORKER):
        keeper.start_ended(name)
    assert clusters.started == [(TARGET, pins.KAFKA_BEFORE), (WORKER, pins.KAFKA)]


class ShownCertificates:
    """Clusters whose listeners show what they have read last, and read their keystore only if they are asked."""

    far = None

    def __init__(self, certificates: Certificates) -> None:
        self.ports = {SOURCE: 1, TARGET: 2}
        self.certificates, self.versions = certificates, dict.fromkeys((SOURCE, TARGET, WORKER), pins.KAFKA)
        self.shown = {self.ports[broker]: certificates.newest(broker) for broker in self.ports}

    def connect(self, *_: str) -> dict[str, str]:
        return {"version": self.versions[WORKER]}

    def broker_version(self, name: str) -> str:
        return self.versions[name]


def test_a_broker_that_shows_its_former_certificate_and_a_process_of_another_version_are_refused(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = ShownCertificates(certificates)
    monkeypatch.setattr(maintenance, "READ_WITHIN_S", 0.05)
    monkeypatch.setattr(maintenance, "ASK_EVERY_S", 0.01)
    monkeypatch.setattr(ssl, "get_server_certificate", lambda at, timeout: clusters.shown[at[1]])
    asked: list[str] = []
    monkeypatch.setattr(Maintenance, "_let_read", lambda _, broker, within_s: asked.append(broker))
    found = Maintenance(cast(Clusters, clusters))
    found.require_newest()
    assert asked == []
    found.renew(TARGET)
    with pytest.raises(BenchmarkError, match=rf"{TARGET}: must show its newest certificate at listener ssl"):
        found.require_newest()
    assert set(asked) == {TARGET}
    clusters.shown[clusters.ports[TARGET]] = certificates.newest(TARGET)
    found.require_newest()
    for name in clusters.versions:
        clusters.versions = {**dict.fromkeys(clusters.versions, pins.KAFKA), name: pins.KAFKA_BEFORE}
        with pytest.raises(BenchmarkError, match=rf"{name}: must run Kafka {pins.KAFKA} \(got {pins.KAFKA_BEFORE}\)"):
            found.require_newest()


def test_clients_connect_again_once_their_certificate_is_renewed() -> None:
    traffic = NemesisTraffic({"ssl.key.location": "first"})
    stays = traffic._stays(SHARE, 1)
    first = next(stays)
    assert first()
    traffic.renew({"ssl.key.location": "second"})
    assert not first()
    assert traffic.client == {"ssl.key.location": "second"}
    second = next(stays)
    assert second()
    assert not first()
    traffic.away.add(SHARE)
    assert not second()


def test_a_share_group_must_work_and_be_neither_translated_nor_on_the_target() -> None:
    source, others = {SHARE: "Share", "nemesis-eager": "Classic"}, {"nemesis-eager"}
    assert share_differences(7, source, {"nemesis-eager": "Classic"}, others) == []
    assert share_differences(0, {SHARE: "Classic"}, {SHARE: "Classic"}, {SHARE, *others}) == [
        f"{SHARE}: must be a share group at the source (got Classic)",
        f"{SHARE}: must be given records (got none)",
        f"{SHARE}: must not be on the target (got Classic)",
        f"{SHARE}: must have no checkpoint, where other groups have",
    ]
    assert len(share_differences(7, source, {}, set())) == 1, "a search that finds no group proves nothing"


def test_types_of_groups_are_read_from_the_tools_list() -> None:
    listed = (
        "GROUP                TYPE     PROTOCOL\nnemesis-share        Share    share\nsoak-audit Classic consumer\n"
    )
    assert group_types(listed) == {"nemesis-share": "Share", "soak-audit": "Classic"}
    assert group_types("") == {}


def test_the_share_group_fits_the_pattern_of_the_groups_that_the_mirror_carries() -> None:
    traffic = NemesisTraffic({})
    assert traffic.share_groups == (SHARE,)
    assert SHARE not in traffic.groups
    assert [one for one in traffic.group_patterns if SHARE.startswith(one.removesuffix(".*"))] == ["nemesis-.*"]


def test_members_of_a_group_that_begin_at_the_same_time_have_one_account_of_what_they_were_given() -> None:
    traffic = NemesisTraffic({})
    assert traffic.read.keys() == {*traffic.groups, SHARE}, "a member that makes its own may replace that of another"
    with traffic.member("nemesis-eager") as one, traffic.member("nemesis-eager") as other:
        assert one.read is other.read
