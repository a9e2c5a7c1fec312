from pathlib import Path
from typing import Any, cast

import pytest

from sandbox.operator import NotReadyError
from sandbox.operator.kubernetes_api import Kubernetes
from sandbox.operator.workers import MirrorSecrets
from tests.support.api_objects import MemoryKubernetes
from tests.unit.sandbox.operator.test_connectors import side, spec


def two_sources() -> dict[str, Any]:
    resource = spec()
    resource["mirrors"].append({"source": side("other", 3)})
    return resource


def stored() -> MemoryKubernetes:
    secrets = {f"{alias}-secret": {"password": f"{alias}-password"} for alias in ("src", "tgt", "other")}
    return MemoryKubernetes(**secrets, **{f"{alias}-ca": {"ca.crt": alias} for alias in ("src", "tgt", "other")})


def files(tmp_path: Path, kubernetes: MemoryKubernetes, resource: dict[str, Any]) -> MirrorSecrets:
    return MirrorSecrets(cast(Kubernetes, kubernetes), "ns", "mm2", resource, tmp_path)


def test_a_changed_secret_changes_the_fingerprint_of_its_own_side_and_of_no_other(tmp_path: Path) -> None:
    kubernetes, resource = stored(), two_sources()
    secrets = files(tmp_path, kubernetes, resource)
    sides = [resource["target"], *(mirror["source"] for mirror in resource["mirrors"])]

    def fingerprints() -> list[str]:
        secrets.write()
        return [secrets.fingerprint(cluster) for cluster in sides]

    before = fingerprints()
    kubernetes.secrets["src-secret"].values["password"] = "new"
    after = fingerprints()
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]
    kubernetes.secrets["other-ca"].values["ca.crt"] = "renewed"
    assert [old == new for old, new in zip(after, fingerprints(), strict=True)] == [True, True, False]


def test_several_trusted_certificates_are_joined_in_order_and_patterns_match_keys(tmp_path: Path) -> None:
    kubernetes, resource = stored(), spec()
    kubernetes.secrets["tgt-ca"].values.update({"ca-2.crt": "two", "ca.p12": "no certificate"})
    resource["target"]["tls"]["trustedCertificates"] = [
        {"secretName": "src-ca", "certificate": "ca.crt"},
        {"secretName": "tgt-ca", "pattern": "*.crt"},
    ]
    files(tmp_path, kubernetes, resource).write()
    (joined,) = tmp_path.glob("*-trusted-certs/tgt.crt")
    assert joined.read_text(encoding="utf-8") == "src\ntwo\ntgt\n"


def test_a_pattern_that_matches_nothing_is_refused_with_its_secret(tmp_path: Path) -> None:
    resource = spec()
    resource["target"]["tls"]["trustedCertificates"] = [{"secretName": "tgt-ca", "pattern": "tls*.crt"}]
    with pytest.raises(NotReadyError, match=r"Secret tgt-ca must have a key that matches tls\*\.crt"):
        files(tmp_path, stored(), resource).write()


def test_a_file_that_is_no_longer_referred_to_is_removed(tmp_path: Path) -> None:
    files(tmp_path, stored(), two_sources()).write()
    assert (tmp_path / "other-secret" / "password").exists()
    files(tmp_path, stored(), spec()).write()
    assert not (tmp_path / "other-secret" / "password").exists()
