"""Text of a Java properties file, as java.util.Properties reads it from a stream, and a client's login in it.

Owns escaping, comments and the order of sections, and the JAAS entry of `sasl.jaas.config`. Does not know other keys.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from settings.model import Scalar
from settings.users import AnyAuthentication

_SHORT = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_ENDS_KEY = "=: "


@dataclass(frozen=True, kw_only=True)
class Section:
    """Properties that belong together, in order, below comment lines that say what they are."""

    comment: tuple[str, ...]
    values: Mapping[str, Scalar]


def text(sections: Iterable[Section]) -> str:
    """Return the file: sections divided by empty lines. A comment's own line ends become spaces."""
    return "\n".join(_section(section) for section in sections)


def line(key: str, value: Scalar) -> str:
    r"""Return one property. Properties.load(InputStream) reads ISO-8859-1, so other characters stand as \uXXXX."""
    return f"{_key(key)}={_value(value)}\n"


def _section(section: Section) -> str:
    comments = "".join(f"# {' '.join(words.split())}\n" for words in section.comment)
    return comments + "".join(line(key, value) for key, value in section.values.items())


def _key(key: str) -> str:
    escaped = "".join(f"\\{character}" if character in _ENDS_KEY else _escaped(character) for character in key)
    return f"\\{escaped}" if escaped.startswith(("#", "!")) else escaped


def _value(value: Scalar) -> str:
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    escaped = "".join(_escaped(character) for character in plain)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


_PACKAGE = "org.apache.kafka.common.security"


def sasl_jaas_config(authentication: AnyAuthentication, username: str, password: str) -> str:
    """Return the entry of a user with a password, or with a placeholder for one."""
    module = "plain.PlainLoginModule" if authentication == "plain" else "scram.ScramLoginModule"
    return f"{_PACKAGE}.{module} required username={_quoted(username)} password={_quoted(password)};"


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
