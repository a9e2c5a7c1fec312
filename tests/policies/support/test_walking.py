"""Walking through the texts of a resource."""

from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from policies.rules.support.walking import Text, texts


def walked(value: object, *without: str) -> list[Text]:
    return [*texts(unknown_checking_proxy({"spec": value})["spec"], "spec", without=without)]


def test_every_text_has_its_place_and_keys() -> None:
    assert walked({"kafka": {"config": {"a.b": "x", "n": 1.0, "on": True}}}) == [
        Text("spec.kafka.config[a.b]", "a.b", "config", "x")
    ]


def test_entries_of_lists_are_known_by_their_name_alias_or_number() -> None:
    places = [text.place for text in walked([{"name": "n", "x": "1"}, {"alias": "a", "x": "2"}, "3"])]
    assert places == ["spec[n].name", "spec[n].x", "spec[a].alias", "spec[a].x", "spec[2]"]


def test_a_name_is_the_key_of_the_value_beside_it() -> None:
    assert walked({"env": [{"name": "PASSWORD", "value": "x"}]})[-1] == Text(
        "spec.env[PASSWORD].value", "PASSWORD", "env", "x"
    )


def test_keys_can_be_left_out() -> None:
    assert walked({"config": {"image": "x"}, "image": "y"}, "config") == [Text("spec.image", "image", "", "y")]


def test_unknown_texts_are_left_out() -> None:
    assert [text.value for text in walked({"a": UNKNOWN_STRING_VALUE, "b": [UNKNOWN_STRING_VALUE, "x"]})] == ["x"]
