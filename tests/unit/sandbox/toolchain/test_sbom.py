"""The list of a release's parts."""

import json
from pathlib import Path

from sandbox.toolchain import sbom
from tests.support.make_targets import make

ROOT = Path(__file__).parents[4]


def test_a_package_and_a_jar_have_their_names_versions_and_hashes(tmp_path: Path) -> None:
    one, two = "1" * 64, "2" * 64
    lock = f"# a note\nattrs==26.1.0 ; python_version < '4' \\\n    --hash=sha256:{one} \\\n    --hash=sha256:{two}\n"
    (tmp_path / "requirements.lock").write_text(lock, encoding="utf-8")
    (tmp_path / "images" / "x").mkdir(parents=True)
    jar = f"{one}  org/acme/shop/cart/1.2/cart-1.2.jar\n"
    (tmp_path / "images" / "x" / "jars.txt").write_text(jar, encoding="utf-8")
    package, cart = json.loads(sbom.document(tmp_path))["components"]
    assert (package["purl"], [each["content"] for each in package["hashes"]]) == ("pkg:pypi/attrs@26.1.0", [one, two])
    assert (cart["purl"], cart["group"]) == ("pkg:maven/org.acme.shop/cart@1.2", "org.acme.shop")


def test_every_locked_package_is_in_it() -> None:
    result = make("sbom", "SBOM=/dev/stdout")
    found = json.loads(result.stdout)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = [line for line in lines if line and line[0] not in " #"]
    packages = [each for each in found["components"] if each["purl"].startswith("pkg:pypi/")]
    assert len(packages) == len(locked)
    assert all(each["hashes"] for each in found["components"])
    assert len({each["bom-ref"] for each in found["components"]}) == len(found["components"])
