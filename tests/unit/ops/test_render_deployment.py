"""A dedicated mirror as a Deployment: what is mounted, probed and named, and what is refused."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ops.cli import app
from ops.errors import OpsError
from ops.render import command as render
from ops.render.client_endpoints import FOLDER
from policies.rules import POLICIES
from tests.support import compliant_resources as kit
from tests.support.mirror_stack_files import PAIR, changed, mutual_tls, write
from tests.unit.ops.test_properties import down

IMAGE = "registry.example.com/kafka/mirror:1.0.0"


def deployed(case: dict[str, Any], folder: Path, **more: Any) -> tuple[dict[str, Any], dict[str, Any], render.Rendered]:
    chosen = {"image": IMAGE, "secret": None, "folder": FOLDER, "read_outputs": down, **more}
    found = render.as_deployment(write(case, folder), None, **chosen)
    config, deployment = yaml.safe_load_all(found.text)
    return config, deployment, found


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def test_the_config_map_has_the_properties_that_refer_to_mounted_files(tmp_path: Path) -> None:
    config, deployment, _ = deployed(PAIR, tmp_path)
    assert config["metadata"] == deployment["metadata"]
    assert (config["metadata"]["name"], config["metadata"]["namespace"]) == ("mm2-dedicated", "passive")
    properties = config["data"]["mm2.properties"]
    assert "es-src.ssl.truststore.certificates=${directory:/opt/mirror/secrets:source.ca.crt}\n" in properties
    mounts = {each["name"]: each["mountPath"] for each in container(deployment)["volumeMounts"]}
    assert mounts == {"config": "/opt/mirror/config", "tmp": "/tmp", "secrets": "/opt/mirror/secrets"}  # noqa: S108


@pytest.mark.parametrize(
    ("case", "keys"),
    [
        (PAIR, ["source.ca.crt", "source.password", "target.ca.crt", "target.password"]),
        (
            mutual_tls(),
            [f"{end}.{part}" for end in ("source", "target") for part in ("ca.crt", "user.crt", "user.key")],
        ),
    ],
)
def test_the_secret_is_mounted_with_every_key_and_the_notes_say_where_each_value_is(
    case: dict[str, Any], keys: list[str], tmp_path: Path
) -> None:
    _, deployment, found = deployed(case, tmp_path, secret="mirror-files")  # a name
    (volume,) = (each for each in deployment["spec"]["template"]["spec"]["volumes"] if each["name"] == "secrets")
    assert volume["secret"]["secretName"] == "mirror-files"  # a name
    assert [each["key"] for each in volume["secret"]["items"]] == keys
    assert "Secret mirror-files in namespace passive needs these keys, passwords without a line end:" in found.notes
    for key in keys:
        assert any(note.split()[0] == key and "output" in note for note in found.notes), key


def test_it_runs_with_a_read_only_root_and_is_probed(tmp_path: Path) -> None:
    resources = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    _, deployment, found = deployed(changed(PAIR, jvm={"xmx": "1g"}, resources=resources), tmp_path)
    mirror = container(deployment)
    environment = {each["name"]: each["value"] for each in mirror["env"]}
    assert environment == {"LOG_DIR": "/tmp/logs", "KAFKA_HEAP_OPTS": "-Xmx1g"}  # noqa: S108
    assert mirror["securityContext"]["readOnlyRootFilesystem"] is True
    probe = {"path": "/-/healthy", "port": "metrics"}
    assert all(mirror[f"{kind}Probe"]["httpGet"] == probe for kind in ("startup", "readiness", "liveness"))
    assert mirror["ports"] == [{"name": "metrics", "containerPort": 9404}]
    assert mirror["resources"] == resources
    assert not [note for note in found.notes if "resources" in note or "KAFKA_HEAP_OPTS" in note]


def test_several_workers_become_one_process_and_it_is_said(tmp_path: Path) -> None:
    config, deployment, found = deployed(changed(PAIR, replicas=3), tmp_path)
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
    assert "listeners=" not in config["data"]["mm2.properties"]
    assert "One process runs all tasks (replicas 3 is the operator's)." in found.notes


@pytest.mark.parametrize(
    "policy",
    [each for each in POLICIES if isinstance(each, kit.ResourceValidationPolicy)],
    ids=lambda each: str(each.name),
)
def test_no_policy_finds_anything(policy: kit.ResourceValidationPolicy, tmp_path: Path) -> None:
    config, deployment, _ = deployed(PAIR, tmp_path)
    samples = [
        kit.Sample("kubernetes:core/v1:ConfigMap", config),
        kit.Sample("kubernetes:apps/v1:Deployment", deployment),
    ]
    assert [message for sample in samples for message in kit.judge(policy, sample)] == []


def test_an_image_must_be_given(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match=r"--image must be given with --as deployment \(got nothing\)"):
        render.as_deployment(write(PAIR, tmp_path), None, None, None, folder=PurePosixPath(FOLDER), read_outputs=down)


@pytest.mark.parametrize(
    ("form", "option"), [("deployment", "--listener"), ("properties", "--image"), ("properties", "--secret")]
)
def test_an_option_of_the_other_form_is_refused(form: str, option: str, tmp_path: Path) -> None:
    file = write(PAIR, tmp_path)
    arguments = ["render", "--as", form, "--stack-file", str(file), option, "x"]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert option in result.stderr
