from typing import Any, cast

import pytest

from sandbox import pki
from sandbox.operator import NotReadyError, certificates
from sandbox.operator.certificates import CLIENTS_CA, CLUSTER_CA, RENEW, REPLACE, Authority
from sandbox.operator.kubernetes_api import Kubernetes
from tests.support.api_objects import MemoryKubernetes

KAFKA: dict[str, Any] = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {}}


@pytest.fixture
def secrets() -> MemoryKubernetes:
    return MemoryKubernetes()


def keep(secrets: MemoryKubernetes, kind: str = CLUSTER_CA, kafka: dict[str, Any] = KAFKA) -> Authority:
    return certificates.reconcile_authority(cast(Kubernetes, secrets), kafka, kind)


def forget(secrets: MemoryKubernetes) -> Authority | None:
    return certificates.forget_former_keys(cast(Kubernetes, secrets), KAFKA, CLUSTER_CA)


def leaf(authority: Authority) -> str:
    return pki.operator_certificate(authority.current, "c").certificate


def test_both_authorities_stand_in_secrets_with_strimzis_names_and_stay(secrets: MemoryKubernetes) -> None:
    first = {kind: keep(secrets, kind) for kind in (CLUSTER_CA, CLIENTS_CA)}
    assert set(secrets.secrets) == {"c-cluster-ca", "c-cluster-ca-cert", "c-clients-ca", "c-clients-ca-cert"}
    assert set(secrets.secrets["c-clients-ca"].values) == {"ca.key"}
    assert set(secrets.secrets["c-clients-ca-cert"].values) == {"ca.crt"}
    assert first == {kind: keep(secrets, kind) for kind in (CLUSTER_CA, CLIENTS_CA)}
    assert first[CLUSTER_CA] != first[CLIENTS_CA]


def test_a_renewed_authority_keeps_its_key_so_that_who_trusts_the_old_one_trusts_the_new(
    secrets: MemoryKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pki, "BACKDATED", 2 * pki.BACKDATED)
    old = keep(secrets)
    earlier = leaf(old)
    monkeypatch.undo()
    secrets.annotate("c-cluster-ca-cert", RENEW)
    new = keep(secrets)
    assert new.current.certificate != old.current.certificate
    assert new.current.key == old.current.key
    assert new.former == ()
    assert secrets.secrets["c-cluster-ca-cert"].annotations == {certificates.CERTIFICATE_GENERATION: "1"}
    assert old.signed(leaf(new))
    assert old.signed(earlier)
    assert not new.signed(earlier), "what was signed before is signed again"
    assert keep(secrets) == new


def test_a_replaced_key_leaves_the_old_certificate_trusted_until_it_is_forgotten(secrets: MemoryKubernetes) -> None:
    old = keep(secrets)
    secrets.annotate("c-cluster-ca", REPLACE)
    new = keep(secrets)
    assert new.current.key != old.current.key
    assert new.trusted == (new.current.certificate, old.current.certificate)
    assert not old.signed(leaf(new))
    assert new.signed(leaf(old))
    assert secrets.secrets["c-cluster-ca"].annotations == {certificates.KEY_GENERATION: "1"}
    names = {pki.common_name(certificate) for certificate in new.trusted}
    assert names == {"c-cluster-ca v0", "c-cluster-ca v1"}
    forgotten = forget(secrets)
    assert forgotten == keep(secrets) == Authority(new.current)
    assert set(secrets.secrets["c-cluster-ca-cert"].values) == {"ca.crt"}


def test_a_replacement_that_was_cut_short_between_its_two_secrets_is_finished(secrets: MemoryKubernetes) -> None:
    old = keep(secrets)
    secrets.write_secret(
        KAFKA, "c-cluster-ca", {"ca.key": pki.authority("x").key}, {}, {certificates.KEY_GENERATION: "1"}
    )
    new = keep(secrets)
    assert pki.belong_together(new.current)
    assert new.former == (old.current.certificate,)


def test_an_authority_that_the_user_brings_is_waited_for_and_never_made(secrets: MemoryKubernetes) -> None:
    kafka = KAFKA | {"spec": {"clusterCa": {"generateCertificateAuthority": False}}}
    with pytest.raises(NotReadyError, match="c-cluster-ca-cert") as refused:
        keep(secrets, kafka=kafka)
    assert refused.value.reason == "AuthorityNotFound"
    assert not secrets.secrets


def test_a_former_certificate_that_has_ended_is_dropped(secrets: MemoryKubernetes) -> None:
    ended = pki.authority("c-cluster-ca", validity_days=0)
    keep(secrets)
    stored = secrets.secrets["c-cluster-ca-cert"]
    stored.values["ca-2020-01-01T00-00-00Z.crt"] = ended.certificate
    assert keep(secrets).former == ()
