"""Inventory events: repeatable with a seed, keyed, countable by their id."""

import itertools
import json
from hashlib import sha256
from pathlib import Path

import pytest

from ops.demo_client import PRODUCTS, Kind, events, keys_file, record_id


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert list(events(Kind.ITEMS, 50, seed=7)) == list(events(Kind.ITEMS, 50, seed=7))


def test_another_seed_gives_other_records_with_other_ids() -> None:
    first, second = ({event.record_id for event in events(Kind.ITEMS, 50, seed=seed)} for seed in (7, 8))
    assert not first & second


def test_runs_without_a_seed_never_share_an_id() -> None:
    assert not {e.record_id for e in events(Kind.ITEMS, 50)} & {e.record_id for e in events(Kind.ITEMS, 50)}


def test_an_event_has_the_fields_of_an_inventory_and_is_keyed_by_store_and_sku() -> None:
    event = next(events(Kind.ITEMS, 1, seed=1))
    body = json.loads(event.value)
    assert set(body) == {"id", "store", "sku", "quantity", "price", "type", "timestamp"}
    assert event.key.decode() == f"{body['store']}/{body['sku']}"


def test_the_id_is_found_again_in_the_value_and_strange_values_have_none() -> None:
    event = next(events(Kind.ITEMS, 1))
    assert record_id(event.value) == event.record_id
    assert [record_id(value) for value in (None, b"", b"no json", b"[1]", b'{"id": 4}')] == [None] * 5


def test_a_seed_means_the_same_records_as_ever() -> None:
    text = b"".join(event.key + event.value for event in events(Kind.ITEMS, 20, seed=7))
    assert sha256(text).hexdigest() == "0cbf78d67217518a472745693714f8f1a2d6227f969964084861e75f96ee5dc3"


@pytest.mark.parametrize("kind", list(Kind))
def test_events_of_every_kind_go_on_without_end_and_repeat_with_a_seed(kind: Kind) -> None:
    endless = list(itertools.islice(events(kind, None, seed=3), 50))
    assert endless == list(events(kind, 50, seed=3))
    assert len({event.record_id for event in endless}) == 50
    assert all(record_id(event.value) == event.record_id for event in endless)


def test_a_product_has_the_fields_and_types_of_the_tutorials_and_is_keyed_by_its_id() -> None:
    seen = set()
    for event in events(Kind.PRODUCTS, 200, seed=1):
        body = json.loads(event.value)
        assert list(body) == [
            "id", "product_id", "description", "target_temperature", "target_humidity_level", "content_type",
        ]  # fmt: skip
        assert event.key.decode() == body["product_id"]
        assert type(body["content_type"]) is int
        assert 0 < body["target_humidity_level"] < 1
        seen.add(tuple(body.values())[1:])
    assert seen == set(PRODUCTS)


def test_the_list_of_ids_is_its_owners_and_each_record_has_one_line(tmp_path: Path) -> None:
    path = tmp_path / "lists" / "ids.tsv"
    for ids in (["a-1", "b\tc\n::error::d\x1b[2J"], [None]):
        with keys_file(path) as each:
            for offset, one in enumerate(ids):
                each(0, offset, one)
        assert path.stat().st_mode & 0o777 == 0o600
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line.split("\t")[:2] for line in lines] == [["0", str(offset)] for offset in range(len(ids))]
        assert all(len(line.split("\t")) == 3 and "\x1b" not in line for line in lines)
