"""Inventory events: repeatable with a seed, keyed, countable by their id."""

import json

from ops.events import inventory_events, record_id


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert list(inventory_events(50, seed=7)) == list(inventory_events(50, seed=7))


def test_another_seed_gives_other_records_with_other_ids() -> None:
    first, second = ({event.record_id for event in inventory_events(50, seed=seed)} for seed in (7, 8))
    assert not first & second


def test_runs_without_a_seed_never_share_an_id() -> None:
    assert not {e.record_id for e in inventory_events(50)} & {e.record_id for e in inventory_events(50)}


def test_an_event_has_the_fields_of_an_inventory_and_is_keyed_by_store_and_sku() -> None:
    event = next(inventory_events(1, seed=1))
    body = json.loads(event.value)
    assert set(body) == {"id", "store", "sku", "quantity", "price", "type", "timestamp"}
    assert event.key.decode() == f"{body['store']}/{body['sku']}"


def test_the_id_is_found_again_in_the_value_and_strange_values_have_none() -> None:
    event = next(inventory_events(1))
    assert record_id(event.value) == event.record_id
    assert [record_id(value) for value in (None, b"", b"no json", b"[1]", b'{"id": 4}')] == [None] * 5
