"""Container images carry a tag that does not move, or a digest.

An image whose tag moves changes under the same declaration: after a restart, two brokers of one cluster may run
different versions, and a standby something else than what was tested. An image that is not set is the operator's own
and fits its release.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.policy_builder import Config, matches, resource_policy, unreadable
from policies.support.resources import ANY_KAFKA, CATALOG_SOURCE, WORKLOADS, Props, Text, flag, kind_of, name, texts

# Free-form configuration and labels: a key called `image` is no container image there.
_WITHOUT = ("config", "metadata")
# Connect's plugins and volumes that are mounted from an image name it as a reference.
_REFERENCE_IN = ("artifacts", "image")


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each image that is not pinned."""
    subject = f"{kind_of(type_)} {name(props)}"
    yield from unreadable(subject, config, "floatingTags")
    for image in texts(props.get("spec"), "spec", without=_WITHOUT):
        wanted = _wanted(image, config) if _is_image(image) else None
        if wanted:
            yield (
                f"{subject}: {image.place} must have {wanted} (got {image.value}). "
                "Otherwise a restart can bring another version than the one that was tested."
            )


def _is_image(text: Text) -> bool:
    if text.key == "reference":
        return text.above in _REFERENCE_IN
    return text.key == "image" or text.key.endswith("Image")


def _wanted(image: Text, config: Config) -> str | None:
    """What the image lacks."""
    reference = image.value.strip()
    if not reference or "@" in reference:
        return None
    # What a build of Connect pushes has no digest before the build.
    if flag(config["digests"], default=False) and image.above != "output":
        return "a digest"
    # A colon before the last slash belongs to the port of the registry.
    _, _, tag = reference.rpartition("/")[2].partition(":")
    return None if tag and not matches(config, "floatingTags", tag) else "a tag that does not move"


POLICY = resource_policy(
    name="pinned-images",
    description="Every container image has a digest or a tag that does not move.",
    types=ANY_KAFKA | WORKLOADS | CATALOG_SOURCE,
    violations=violations,
    options={
        "floatingTags": {
            "type": "array",
            "items": {"type": "string"},
            "default": ["latest", "latest-.*", "main", "master", "edge", "nightly", "stable"],
            "description": "tags that move (regular expressions of the whole tag, in any case)",
        },
        "digests": {
            "type": "boolean",
            "default": False,
            "description": "whether a tag is not enough and every image needs a digest",
        },
    },
    severity=Severity.MEDIUM,
    remediation_steps="Name a released tag or the digest of the image, or leave it out for the operator's own.",
)
