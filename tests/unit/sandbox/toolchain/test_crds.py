"""Definitions without their texts."""

import yaml

from sandbox.toolchain.crds import without_descriptions

WRITTEN = """\
---
kind: CustomResourceDefinition
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: |-
          A text of several lines,

            some of them deeper.
        properties:
          description:
            description: |
              The text of a field that is called like a text.
            type: string
          matchType:
            description: A text that is
              folded.
            enum:
            - '!='
            - =
            type: string
          plain:
            type: string
            description: "last"
        type: object
    served: true
"""


def test_texts_go_and_fields_that_are_called_like_one_stay() -> None:
    found = without_descriptions(WRITTEN)
    schema = yaml.safe_load(found.replace("- =", '- "="'))["spec"]["versions"][0]
    assert schema["served"]
    assert schema["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "matchType": {"enum": ["!=", "="], "type": "string"},
            "plain": {"type": "string"},
        },
    }


def test_what_has_no_texts_stays_as_it_is() -> None:
    bare = without_descriptions(WRITTEN)
    assert without_descriptions(bare) == bare
