"""What the two providers are built from: the Kubernetes provider without a part of it, the random provider's schema."""

import json
from pathlib import Path

import pulumi_random
import pytest

from sandbox.toolchain import ToolchainError
from sandbox.toolchain.go import PROVIDER_LEFT_OUT, PROVIDER_MAIN, PROVIDER_PACKAGE, copy_module
from sandbox.toolchain.paths import GO_MODULE

STAND_IN = (GO_MODULE / PROVIDER_MAIN / "_provider" / "unsupported.go").read_text(encoding="utf-8")


def module(folder: Path, names: tuple[str, ...]) -> Path:
    """A downloaded provider's module whose package has these files."""
    (folder / PROVIDER_PACKAGE).mkdir(parents=True)
    (folder / "go.mod").write_text("module provider\n", encoding="utf-8")
    for name in names:
        (folder / PROVIDER_PACKAGE / name).write_text(f"package provider // {name}\n", encoding="utf-8")
    for path in (folder / PROVIDER_PACKAGE, folder / "pkg", folder):
        path.chmod(0o555)  # as Go leaves it
    return folder


def test_the_copy_has_one_file_in_place_of_those_that_are_left_out(tmp_path: Path) -> None:
    source = module(tmp_path / "source", (*PROVIDER_LEFT_OUT, "provider.go", "provider_test.go"))
    copy_module(source, tmp_path / "copy", GO_MODULE / PROVIDER_MAIN)
    package = tmp_path / "copy" / PROVIDER_PACKAGE
    assert {file.name for file in package.iterdir()} == {"provider.go", "unsupported.go"}
    assert (package / "unsupported.go").read_text(encoding="utf-8") == STAND_IN
    assert {file.name for file in (source / PROVIDER_PACKAGE).iterdir()} >= set(PROVIDER_LEFT_OUT)


def test_a_module_of_another_shape_is_refused_with_what_to_adapt(tmp_path: Path) -> None:
    source = module(tmp_path / "source", PROVIDER_LEFT_OUT[1:])
    with pytest.raises(
        ToolchainError, match=rf"missing: {PROVIDER_LEFT_OUT[0]}.*Adapt PROVIDER_LEFT_OUT and _provider/unsupported.go"
    ):
        copy_module(source, tmp_path / "copy", GO_MODULE / PROVIDER_MAIN)


@pytest.mark.parametrize("what", ["Construct", "helmTemplate", "kustomizeDirectory", "helmReleases) Create"])
def test_what_is_left_out_fails_by_name(what: str) -> None:
    body = STAND_IN.split(what + "(", 1)[1].split("\n}\n", 1)[0]
    assert "unsupported(" in body


def test_the_random_schema_has_the_resources_of_the_pinned_package() -> None:
    schema = json.loads((GO_MODULE / "pulumi-resource-random" / "schema.json").read_text(encoding="utf-8"))
    registered = Path(pulumi_random.__file__).read_text(encoding="utf-8")
    assert len(schema["resources"]) == registered.count('"random:index/') > 5
    assert all(f'"{token}"' in registered for token in schema["resources"])
