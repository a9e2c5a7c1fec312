"""The source that Pulumi's Kubernetes provider is built from: its own module without Helm, Kustomize and components.

Those need the Go SDK of all Kubernetes types, whose compilation takes longer than that of the rest of the provider, and
no resource of this product uses them. What is left out fails with an error that names it. All other resources, and
`yaml.ConfigFile`, are the provider's own code.
"""

import json
import shutil
from pathlib import Path

from . import pins
from .errors import ToolchainError

MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"
MAIN = "pulumi-resource-kubernetes"
PACKAGE = Path("pkg/provider")
# Files of the package that need what is left out, and the file, beside the main package, that stands in for them.
LEFT_OUT = (
    "helm_release.go",
    "invoke_helm_template.go",
    "invoke_kustomize.go",
    "manifest_json.go",
    "provider_construct.go",
)
STAND_IN = Path("_provider/unsupported.go")


def copy_module(source: Path, target: Path, main: Path) -> None:
    """Copy the provider's module without what is left out; raises ToolchainError if it is another version's.

    Args:
        source: the downloaded module
        target: folder to make
        main: folder of the main package, with the file that stands in for what is left out
    """
    for file in sorted((source / "pkg").rglob("*")):
        if file.is_file() and not file.name.endswith("_test.go"):
            copied = target / file.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)  # not with the source's rights: Go's cache is read-only
            shutil.copyfile(file, copied)
    shutil.copyfile(source / "go.mod", target / "go.mod")
    package = target / PACKAGE
    missing = [name for name in LEFT_OUT if not (package / name).is_file()]
    if missing:
        raise ToolchainError(
            f"  {MODULE}: {PACKAGE} must have the files that are left out (missing: {', '.join(missing)}). "
            f"Adapt LEFT_OUT and {STAND_IN} to the new version."
        )
    for name in LEFT_OUT:
        (package / name).unlink()
    shutil.copyfile(main / STAND_IN, package / STAND_IN.name)


def copy_schema(source: Path, main: Path) -> None:
    """Put the schema, with its version, and the mapping out of the provider's module beside the main package."""
    published = source / "cmd" / MAIN
    schema = json.loads((published / "schema.json").read_text(encoding="utf-8"))
    schema["version"] = pins.PULUMI_KUBERNETES
    (main / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    shutil.copyfile(published / "terraform-mapping.json", main / "terraform-mapping.json")
