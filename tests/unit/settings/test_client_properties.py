"""Texts that Java reads: a file of properties, and the word by which a client logs in."""

import pytest

from settings import users
from settings.model import Scalar
from settings.users import Authentication, sasl_jaas_config


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("a->b.topics", r"store\.inventory", "a->b.topics=store\\\\.inventory\n"),
        ("key", " two\tthree\n", "key=\\ two\\tthree\\n\n"),
        ("a:b=c d", True, "a\\:b\\=c\\ d=true\n"),
        ("#key", 1.5, "\\#key=1.5\n"),
        ("!key", "", "\\!key=\n"),
        ("key", "ä€𝄞", "key=\\u00E4\\u20AC\\uD834\\uDD1E\n"),
    ],
)
def test_properties_are_escaped_as_java_reads_them(key: str, value: Scalar, expected: str) -> None:
    assert users.property_line(key, value) == expected


def test_a_comment_stays_one_line() -> None:
    section = users.Section(comment=("one\ntwo=3",), values={})
    assert users.properties_text([section]) == "# one two=3\n"


@pytest.mark.parametrize(
    ("authentication", "module"),
    [
        ("scram-sha-512", "scram.ScramLoginModule"),
        ("scram-sha-256", "scram.ScramLoginModule"),
        ("plain", "plain.PlainLoginModule"),
    ],
)
def test_a_login_names_its_module_and_quotes_what_jaas_would_read_otherwise(
    authentication: Authentication, module: str
) -> None:
    assert sasl_jaas_config(authentication, 'o"brien\\', "p") == (
        f'org.apache.kafka.common.security.{module} required username="o\\"brien\\\\" password="p";'
    )
    assert sasl_jaas_config(authentication, "u", 'a"b\\').endswith('password="a\\"b\\\\";')
