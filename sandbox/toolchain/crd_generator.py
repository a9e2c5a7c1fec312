"""Strimzi's CRD generator: a Java program that reads the classes of Strimzi's API and writes their definitions.

Owns its command line. Which releases and kinds are generated is said by `crds` and `api_versions`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from .commands import Commands

V1, V1BETA2 = "v1", "v1beta2"
OLDER = ("v1alpha1", "v1beta1")
MODEL = "io.strimzi.api.kafka.model"
# The same labels as on the definitions of Strimzi's own releases.
_LABELS = ("--label", "app:strimzi", "--label", "strimzi.io/crd-install:true")


def generate(
    commands: Commands,
    java: Path,
    class_path: str,
    files: Mapping[Path, str],
    versions: Sequence[str],
) -> None:
    """Write the definitions of `files` (path → class below Strimzi's model package) with these versions.

    The last version is the stored one. The names of all paths end either with .yaml or with .json, and so does what is
    written; each path must have a folder in it.
    """
    as_yaml = all(path.suffix == ".yaml" for path in files)
    commands.run(
        [
            java,
            # It runs for a few seconds: the second compiler would cost more than it gains.
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            class_path,
            "io.strimzi.crdgenerator.CrdGenerator",
            *_LABELS,
            *("--crd-api-version", "v1"),
            *("--api-versions", ",".join(versions)),
            *("--storage-version", versions[-1]),
            *("--target-kube", "1.16+"),
            *(["--yaml"] if as_yaml else []),
            *(f"{MODEL}.{model}={path}" for path, model in files.items()),
        ],
        cwd=next(iter(files)).parent,
    )
