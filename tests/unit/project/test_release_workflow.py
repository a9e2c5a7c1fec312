"""What a release pushes, and what its images are built from."""

import re

import pytest

from .test_workflows import FOLDER, ROOT, action, jobs, read

IMAGES = sorted(file.parent.name for file in ROOT.glob("images/*/Dockerfile"))


def build_arguments(image: str) -> list[str]:
    (given,) = [
        step["with"]["build-args"]
        for step in jobs(FOLDER / "release.yml")["images"]["steps"]
        if step.get("id") == image
    ]
    lines: list[str] = given.splitlines()
    return lines


def test_a_release_pushes_every_image_with_its_digest_its_parts_and_a_statement_where_it_comes_from() -> None:
    workflow = read(FOLDER / "release.yml")
    assert workflow[True] == {"push": {"tags": ["v*.*.*"]}}  # YAML 1.1 reads the key `on` so
    (job,) = workflow["jobs"].values()
    built = {step["id"]: step["with"] for step in job["steps"] if action(step) == "docker/build-push-action"}
    attested = [step["with"] for step in job["steps"] if action(step) == "actions/attest-build-provenance"]
    assert [step["with"]["path"] for step in job["steps"] if action(step) == "actions/upload-artifact"] == [
        "reports/sbom.cdx.json"
    ]
    assert sorted(built) == sorted(job["outputs"]) == IMAGES == ["demo-clients", "follower", "mirror", "verification"]
    for image, given in built.items():
        digest, name = f"${{{{ steps.{image}.outputs.digest }}}}", f"${{{{ env.IMAGES }}}}/{image}"
        assert job["outputs"][image] == digest
        assert (given["push"], given["sbom"], given["provenance"]) == (True, True, "mode=max")
        assert (given["file"], given["context"]) == (f"images/{image}/Dockerfile", ".")
        assert given["tags"] == f"{name}:${{{{ github.ref_name }}}}"
        assert {"subject-name": name, "subject-digest": digest, "push-to-registry": True} in attested


@pytest.mark.parametrize("image", IMAGES)
def test_a_release_gives_every_build_argument_that_has_no_default(image: str) -> None:
    lines = (ROOT / "images" / image / "Dockerfile").read_text(encoding="utf-8").splitlines()
    needed = {line.removeprefix("ARG ") for line in lines if re.fullmatch(r"ARG \w+", line)}
    assert {line.partition("=")[0] for line in build_arguments(image)} >= needed


@pytest.mark.parametrize("image", IMAGES)
def test_a_release_may_name_every_base_image_and_leaves_the_others_as_they_are(image: str) -> None:
    text = (ROOT / "images" / image / "Dockerfile").read_text(encoding="utf-8")
    bases = {"JAVA_IMAGE": "JAVA", "BASE_IMAGE": "KAFKA" if image == "mirror" else "PYTHON"}
    optional = {
        f"${{{{ vars.BASE_{bases[name]}_IMAGE && format('{name}={{0}}', vars.BASE_{bases[name]}_IMAGE) || '' }}}}"
        for name in re.findall(r"^ARG (\w+_IMAGE)=", text, re.MULTILINE)
    }
    assert {line for line in build_arguments(image) if "_IMAGE" in line} == optional != set()


def test_every_image_takes_its_bases_from_the_registry_that_is_given() -> None:
    for image in IMAGES:
        text = (ROOT / "images" / image / "Dockerfile").read_text(encoding="utf-8")
        assert re.findall(r"^ARG \w+_IMAGE=(?!\$\{REGISTRY\}/)", text, re.MULTILINE) == []
