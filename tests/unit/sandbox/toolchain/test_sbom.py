"""The list of a release's parts."""

import json
from pathlib import Path
from typing import Any

from sandbox.toolchain import maven, pins, sbom
from tests.support.make_targets import make

ROOT = Path(__file__).parents[4]


ONE, TWO = "1" * 64, "2" * 64


def components(project: Path) -> dict[str, dict[str, Any]]:
    """Name → part of a project with two packages, one of them in an image, a jar and the JMX exporter."""
    attrs = f"attrs==26.1.0 ; python_version < '4' \\\n    --hash=sha256:{ONE} \\\n    --hash=sha256:{TWO}\n"
    texts = {
        "requirements.lock": f"# a note\n{attrs}pytest==9.2.0 \\\n    --hash=sha256:{TWO}\n",
        "images/x/requirements.lock": attrs,
        "images/x/jars.txt": f"{ONE}  org/acme/shop/cart/1.2/cart-1.2.jar\n",
        "images/mirror/Dockerfile": f"ARG JMX_EXPORTER_VERSION=1.5\nARG JMX_EXPORTER_SHA256={TWO}\n",
    }
    for name, text in texts.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    return {each["name"]: each for each in json.loads(sbom.document(project))["components"]}


def test_a_package_and_a_jar_have_their_names_versions_and_hashes(tmp_path: Path) -> None:
    found = components(tmp_path)
    assert sorted(found) == ["attrs", "cart", "jmx_prometheus_javaagent", "pytest"]
    package, cart = found["attrs"], found["cart"]
    assert (package["purl"], [each["content"] for each in package["hashes"]]) == ("pkg:pypi/attrs@26.1.0", [ONE, TWO])
    assert (cart["purl"], cart["group"]) == ("pkg:maven/org.acme.shop/cart@1.2", "org.acme.shop")


def test_the_exporter_of_the_mirrors_image_is_a_jar_like_the_others(tmp_path: Path) -> None:
    exporter = components(tmp_path)["jmx_prometheus_javaagent"]
    assert exporter["purl"] == "pkg:maven/io.prometheus.jmx/jmx_prometheus_javaagent@1.5"
    assert [each["content"] for each in exporter["hashes"]] == [TWO]
    released = sbom.JMX_EXPORTER.format(version=pins.JMX_EXPORTER).split("/")
    assert ":".join([".".join(released[:-3]), *released[-3:-1]]) in maven.JMX_EXPORTER


def test_what_an_image_has_is_required_and_the_rest_is_optional(tmp_path: Path) -> None:
    scopes = {name: part["scope"] for name, part in components(tmp_path).items()}
    assert scopes.pop("pytest") == "optional"
    assert set(scopes.values()) == {"required"}


def test_every_locked_package_is_in_it() -> None:
    result = make("sbom", "SBOM=/dev/stdout")
    found = json.loads(result.stdout)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = [line for line in lines if line and line[0] not in " #"]
    packages = [each for each in found["components"] if each["purl"].startswith("pkg:pypi/")]
    assert len(packages) == len(locked)
    assert all(each["hashes"] for each in found["components"])
    assert {each["scope"] for each in packages} == {"required", "optional"}
    assert len({each["bom-ref"] for each in found["components"]}) == len(found["components"])
