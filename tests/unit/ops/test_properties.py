"""The properties of a dedicated mirror: whole files by case, where addresses come from, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ops.cli import app
from ops.errors import OpsError
from ops.render import command as render
from ops.render.client_endpoints import Kind, Outputs, Secrets
from tests.support.mirror_stack_files import CASES, PAIR, changed, write

EXPECTED = Path(__file__).parent / "expected"
ENV, FILES = Secrets(kind=Kind.ENV), Secrets(kind=Kind.DIRECTORY)
CASE_SECRETS = {"prefixed-mutual-tls": FILES}
EXTERNAL: dict[str, Any] = {
    "name": "elsewhere",
    "cluster": {"bootstrapServers": ["kafka.elsewhere.example:9093"], "certificateAuthority": {"file": "ca.pem"}},
    "authentication": "scram-sha-256",
    "username": 'o"brien\\',
    "secret": {"name": "elsewhere-login"},
}
UP: Outputs = {
    "cluster": {
        "name": "active",
        "bootstrapServers": "127.0.0.1:4711",
        "securityProtocol": "SSL",
        "caSecret": {"name": "active-cluster-ca-cert", "key": "ca.crt"},
    },
    "users": {"reader": {"secretName": "reader-files", "authentication": "tls", "username": "reader"}},
}


def down(stack: str, project: Path) -> Outputs:
    raise OpsError(f"stack {stack}: must exist in the backend.")


def rendered(case: dict[str, Any], folder: Path, secrets: Secrets = ENV, **more: Any) -> render.Rendered:
    return render.render(write(case, folder), None, secrets, **{"read_outputs": down, **more})


@pytest.mark.parametrize("name", sorted(CASES))
def test_each_case_is_written_as_expected(name: str, tmp_path: Path) -> None:
    expected = (EXPECTED / f"{name}.properties").read_text(encoding="ascii")
    assert rendered(CASES[name], tmp_path, CASE_SECRETS.get(name, ENV)).text == expected


def test_no_expected_file_is_without_its_case() -> None:
    assert {path.stem for path in EXPECTED.glob("*.properties")} == set(CASES)


def test_every_reference_in_the_file_is_named_for_the_people_with_its_origin(tmp_path: Path) -> None:
    found = rendered(PAIR, tmp_path)
    for variable, origin in {
        "MM2_SOURCE_CA": "stack dev, output clusterCaCertificate",
        "MM2_SOURCE_PASSWORD": "stack dev, output userCredentials, reader.password (Secret reader)",
        "MM2_TARGET_CA": "stack stg, output clusterCaCertificate",
        "MM2_TARGET_PASSWORD": "stack stg, output userCredentials, writer.password (Secret writer)",
    }.items():
        assert f"${{env:{variable}}}" in found.text
        assert any(variable in note and origin in note for note in found.notes)


def test_a_running_stack_says_where_it_is_and_how_its_users_log_in(tmp_path: Path) -> None:
    found = rendered(PAIR, tmp_path, read_outputs=lambda stack, project: UP if stack == "dev" else {})
    assert "es-src.bootstrap.servers=127.0.0.1:4711\n" in found.text
    assert "es-src.security.protocol=SSL\n" in found.text
    assert "es-src.ssl.keystore.key=${env:MM2_SOURCE_KEY}\n" in found.text
    assert "es-src.sasl" not in found.text
    assert any("Secret reader-files" in note for note in found.notes)


def test_a_source_that_is_up_needs_no_stack_file(tmp_path: Path) -> None:
    found = rendered({"stg": PAIR["stg"]}, tmp_path, read_outputs=lambda stack, project: UP if stack == "dev" else {})
    assert "es-src.ssl.truststore.certificates=${env:MM2_SOURCE_CA}\n" in found.text


def test_an_external_source_brings_its_own_login_and_authority(tmp_path: Path) -> None:
    case = changed(PAIR, source={"alias": "es-src", "external": EXTERNAL})
    found = rendered({"stg": case["stg"]}, tmp_path)
    assert "es-src.sasl.mechanism=SCRAM-SHA-256\n" in found.text
    # JAAS escapes the name inside its quotes, the file escapes JAAS' backslashes
    assert r"""username="o\\"brien\\\\" password="${env:MM2_SOURCE_PASSWORD}";""" in found.text
    assert any("MM2_SOURCE_CA" in note and "file ca.pem" in note for note in found.notes)
    assert any("Secret elsewhere-login, key password, in namespace passive" in note for note in found.notes)


def test_without_tls_there_is_nothing_of_it(tmp_path: Path) -> None:
    external = {**EXTERNAL, "cluster": {"bootstrapServers": ["kafka.elsewhere.example:9092"], "tls": False}}
    found = rendered({"stg": changed(PAIR, source={"alias": "es-src", "external": external})["stg"]}, tmp_path)
    assert "es-src.security.protocol=SASL_PLAINTEXT\n" in found.text
    assert "es-src.ssl" not in found.text


def test_a_source_that_lets_everybody_in_has_no_login(tmp_path: Path) -> None:
    cluster = {"bootstrapServers": ["kafka.elsewhere.example:9092"], "tls": False}
    external = {"name": "elsewhere", "cluster": cluster, "authentication": "none"}
    found = rendered({"stg": changed(PAIR, source={"alias": "es-src", "external": external})["stg"]}, tmp_path)
    assert "es-src.security.protocol=PLAINTEXT\n" in found.text
    assert "es-src.sasl" not in found.text
    assert "es-src.ssl" not in found.text


def test_a_setting_of_the_clients_wins_over_what_is_usual(tmp_path: Path) -> None:
    case = changed(PAIR, sourceConfig={"ssl.endpoint.identification.algorithm": ""})
    text = rendered(case, tmp_path).text
    assert "es-src.ssl.endpoint.identification.algorithm=\n" in text
    assert "es-tgt.ssl.endpoint.identification.algorithm=https\n" in text


@pytest.mark.parametrize(
    ("mirror", "listener", "expected"),
    [
        ({}, None, None),
        ({"exactlyOnce": True}, None, "http://127.0.0.1:8083"),
        ({"replicas": 2}, None, "http://:8083"),
        ({"replicas": 2}, "https://mirror-1.example:8443", "https://mirror-1.example:8443"),
    ],
)
def test_the_internal_rest_interface_stays_off_unless_something_needs_it(
    mirror: dict[str, Any], listener: str | None, expected: str | None, tmp_path: Path
) -> None:
    text = rendered(changed(PAIR, **mirror), tmp_path, rest=listener).text
    assert ("dedicated.mode.enable.internal.rest=true" in text) == (expected is not None)
    assert expected is None or f"listeners={expected}\n" in text


@pytest.mark.parametrize(
    ("mirror", "words"),
    [
        ({"version": "3.4.1"}, "mirror mm2: --secrets must be directory with Kafka 3.4.1 (got env)"),
        (
            {"sourceConnectorConfig": {"admin.timeout.ms": 1}, "checkpointConnectorConfig": {"admin.timeout.ms": 2}},
            "mirror mm2: admin.timeout.ms must have one value in a dedicated mirror (got 1 and 2)",
        ),
    ],
)
def test_what_the_dedicated_mode_cannot_do_is_refused(mirror: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(OpsError) as refused:
        rendered(changed(PAIR, **mirror), tmp_path)
    assert words in str(refused.value)


def test_exactly_once_is_refused_where_the_dedicated_mode_does_not_have_it(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match=r"exactlyOnce must be false for a dedicated mirror of Kafka 3\.4\.1"):
        rendered(changed(PAIR, version="3.4.1", exactlyOnce=True), tmp_path, FILES)


def test_a_reference_to_a_provider_is_no_secret(tmp_path: Path) -> None:
    case = changed(PAIR, producer={"interceptor.password": "${env:MM2_INTERCEPTOR}"})
    assert "es-tgt.producer.interceptor.password=${env:MM2_INTERCEPTOR}\n" in rendered(case, tmp_path).text


def test_a_source_that_is_neither_up_nor_described_is_named(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match=r"mirror mm2: source\.stack must be up, or have its stack file beside") as error:
        rendered({"stg": PAIR["stg"]}, tmp_path)
    assert "Pulumi.dev.yaml" in str(error.value)


def test_a_user_that_the_source_does_not_have_is_named(tmp_path: Path) -> None:
    case = changed(PAIR, source={"stack": "dev", "alias": "es-src", "user": "nobody"})
    with pytest.raises(OpsError, match=r"mirror mm2: source\.user must be one of stack dev's users \(got nobody"):
        rendered(case, tmp_path)


def test_an_address_that_only_the_running_cluster_knows_is_asked_for(tmp_path: Path) -> None:
    case = changed(PAIR)
    case["dev"]["cluster"]["listeners"] = [{"name": "outside", "port": 9094, "type": "loadbalancer"}]
    with pytest.raises(OpsError, match=r"cluster active: host of listener outside must be given, or stack dev be up"):
        rendered(case, tmp_path)


def test_an_address_inside_kubernetes_is_reported_and_one_outside_is_not(tmp_path: Path) -> None:
    notes = "\n".join(rendered(CASES["prefixed-mutual-tls"], tmp_path, FILES).notes)
    assert "es-src: active-kafka-bootstrap.active.svc:9093 is reached from inside Kubernetes only" in notes
    assert "es-tgt: kafka.target.example" not in notes


def test_what_only_an_operator_does_is_reported(tmp_path: Path) -> None:
    case = changed(PAIR, state="paused", jvm={"xms": "1g", "xmx": "2g"})
    notes = "\n".join(rendered(case, tmp_path).notes)
    assert "Heap: KAFKA_HEAP_OPTS='-Xms1g -Xmx2g'." in notes
    assert "Not in the file, because only the operator does it: state." in notes


def test_the_command_writes_the_file_and_asks_the_stacks_for_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Path, bool]] = []

    def outputs(stack: str, environment: object, project: Path, *, secrets: bool) -> Outputs:
        asked.append((stack, project, secrets))
        return UP if stack == "dev" else {}

    monkeypatch.setattr(render, "stack_outputs", outputs)
    out = tmp_path / "mm2.properties"
    arguments = ["render", "--as", "properties", "--stack-file", str(write(PAIR, tmp_path)), "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "es-src.bootstrap.servers=127.0.0.1:4711\n" in out.read_text(encoding="ascii")
    assert "MM2_SOURCE_KEY" in result.stderr
    assert not result.stdout
    assert asked == [("stg", tmp_path, False), ("dev", tmp_path, False)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mirror", "other"], "--mirror must be one of its mirrors (got other, allowed mm2)"),
        (["--stack", "stg"], "--stack and --stack-file must not be given together"),
    ],
)
def test_a_mistake_is_one_message_and_exit_2(arguments: list[str], words: str, tmp_path: Path) -> None:
    file = str(write(PAIR, tmp_path))
    result = CliRunner().invoke(app, ["render", "--as", "properties", "--stack-file", file, *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_a_stack_without_mirrors_is_the_wrong_one(tmp_path: Path) -> None:
    write(PAIR, tmp_path)
    file = str(tmp_path / "Pulumi.dev.yaml")
    result = CliRunner().invoke(app, ["render", "--as", "properties", "--stack-file", file])
    assert result.exit_code == 2
    assert "mirrors must have an entry" in result.stderr


def test_a_malformed_stack_file_is_reported_with_all_its_problems(tmp_path: Path) -> None:
    file = write(changed(PAIR, topics=None, naming="other"), tmp_path)
    result = CliRunner().invoke(app, ["render", "--as", "properties", "--stack-file", str(file)])
    assert result.exit_code == 2
    assert "rt-inventory:mirrors[0].topics" in result.stderr
    assert "rt-inventory:mirrors[0].naming" in result.stderr
