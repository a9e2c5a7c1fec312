"""What samples show of records when somebody asked for it."""

from contract.verification_request import Mirror
from spark.comparison.findings import (
    SHOWN_MAX,
    Content,
    Finding,
    PartitionResult,
    Sample,
    sample_offsets,
    text_of,
    with_contents,
)

MIRROR = Mirror(name="mm2", source_alias="a", target_alias="b", topics=("items",), naming="prefixed")
CONTENT = Content("k", "v", (("h", None),), 5)


def results(*samples: Sample) -> list[PartitionResult]:
    finding = Finding("altered", "items", 1, len(samples), samples)
    return [PartitionResult("items", 1, 0, 10, 0, 10, findings=[finding])]


def test_text_stays_text_and_other_bytes_become_hexadecimal_digits() -> None:
    assert [text_of(None), text_of(b""), text_of("é".encode()), text_of(b"\xff\x00")] == [None, "", "é", "0xff00"]
    assert text_of(b"x" * 600) == "x" * SHOWN_MAX + "…"


def test_each_side_is_asked_for_its_own_topic_and_partition() -> None:
    found = results(Sample(3, 4, "d"), Sample(5, None, "d"), Sample(6, 7, "d", (), 1, 2))
    assert sample_offsets(found, MIRROR) == ({("items", 1): [3, 5, 6]}, {("a.items", 1): [4], ("a.items", 2): [7]})


def test_samples_carry_what_was_read_and_the_others_stay_as_they_were() -> None:
    found = results(Sample(3, 4, "d"), Sample(6, 7, "d", (), 1, 2))
    (result,) = with_contents(found, MIRROR, {("items", 1, 3): CONTENT}, {("a.items", 2, 7): CONTENT})
    first, second = (sample.document() for sample in result.findings[0].samples)
    assert first["source"] == {"key": "k", "value": "v", "headers": [["h", None]], "timestamp": 5}
    assert "target" not in first
    assert "source" not in second
    assert second["target"]["value"] == "v"
