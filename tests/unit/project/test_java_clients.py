"""The commands of docs/java-clients.md, run as they stand there: the stores that they make hold what clients need."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support import java_regex as java
from tests.support.certificates import certificate
from tests.support.page_commands import in_blocks
from tests.unit.spark.test_java_client import Made

PAGE = Path(__file__).parents[3] / "docs" / "java-clients.md"
JKS = bytes.fromhex("feedfeed")  # what a file of this format begins with
PASSWORD = "made-up-password"
PULUMI = """\
#!{python}
import json, sys
from pathlib import Path

words = sys.argv[1:]
assert words[:2] == ["stack", "output"] and "--show-secrets" in words and words[-2:] == ["-s", "dev"], words
value = json.loads(Path({outputs!r}).read_text())[words[2]]
print(json.dumps(value) if "--json" in words else value)
"""


@pytest.fixture(scope="module")
def keytool() -> str:
    """The JDK's `keytool`, as a command."""
    return f"{os.environ['JAVA_HOME']}/bin/keytool" if os.environ.get("JAVA_HOME") else "keytool"


@pytest.fixture(scope="module")
def made(keytool: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which every command of the page has run. The outputs have two authorities, as in a replacement."""
    folder = tmp_path_factory.mktemp("stores")
    tools = tmp_path_factory.mktemp("bin")
    user = Made(tools)
    authorities = "".join(certificate(f"cluster-ca-{number}", ends_in_days=10) for number in (1, 2))
    outputs = {
        "clusterCaCertificate": authorities,
        "userCredentials": {"inventory-app": {"certificate": user.pem, "privateKey": user.key()}},
    }
    known = tools / "outputs.json"
    known.write_text(json.dumps(outputs), encoding="utf-8")
    pulumi = tools / "pulumi"
    pulumi.write_text(PULUMI.format(python=sys.executable, outputs=str(known)), encoding="utf-8")
    pulumi.chmod(0o755)
    jdk = [str(Path(keytool).parent)] if os.sep in keytool else []
    path = os.pathsep.join([str(tools), *jdk, os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "STORE_PASSWORD": PASSWORD}
    # One shell, as somebody types them; each must succeed.
    script = "set -eu -o pipefail\n" + "\n".join(in_blocks(PAGE))
    result = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (folder / "expected.pem").write_text(user.pem, encoding="utf-8")
    return folder


def entries(keytool: str, folder: Path, store: str) -> str:
    kind = "JKS" if store.endswith(".jks") else "PKCS12"
    command = [
        keytool,
        "-J-Duser.language=en",
        *(f"-J{option}" for option in java.QUICK),
        "-list",
        "-rfc",
        "-keystore",
        store,
        "-storetype",
        kind,
    ]
    command += ["-storepass:env", "STORE_PASSWORD"]
    result = subprocess.run(
        command, cwd=folder, env={**os.environ, "STORE_PASSWORD": PASSWORD}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, shlex.join(command) + result.stdout
    return result.stdout


@pytest.mark.parametrize("store", ["truststore.p12", "truststore.jks"])
def test_a_trust_store_holds_every_authority_as_one_that_java_trusts(store: str, keytool: str, made: Path) -> None:
    listed = entries(keytool, made, store)
    assert listed.count("Entry type: trustedCertEntry") == 2
    given = re.findall(r"-----BEGIN.*?-----END CERTIFICATE-----", (made / "ca.crt").read_text("utf-8"), re.DOTALL)
    assert len(given) == 2
    assert all(_body(each) in _body(listed) for each in given)


@pytest.mark.parametrize("store", ["keystore.p12", "keystore.jks"])
def test_a_key_store_holds_the_users_key_with_its_certificate(store: str, keytool: str, made: Path) -> None:
    listed = entries(keytool, made, store)
    assert listed.count("Entry type: PrivateKeyEntry") == 1
    assert "Alias name: inventory-app" in listed
    assert _body((made / "expected.pem").read_text("utf-8")) in _body(listed)


def test_a_store_has_the_format_that_its_name_says(made: Path) -> None:
    """Programs that read nothing but JKS need it; Java itself opens a store of either format by both names."""
    is_jks = {path.name: path.read_bytes().startswith(JKS) for path in (*made.glob("*.jks"), *made.glob("*.p12"))}
    assert is_jks == {"truststore.jks": True, "keystore.jks": True, "truststore.p12": False, "keystore.p12": False}


def test_the_files_are_for_their_owner_alone(made: Path) -> None:
    private = [*made.glob("*.p12"), *made.glob("*.jks"), made / "user.key"]
    assert {oct(path.stat().st_mode & 0o077) for path in private} == {"0o0"}
    key = serialization.load_pem_private_key((made / "user.key").read_bytes(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)


def _body(text: str) -> str:
    """Certificates without line ends, which tools break differently."""
    return "".join(text.split())
