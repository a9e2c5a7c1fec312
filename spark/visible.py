r"""Text that others wrote, such as names of groups, where it is shown: what a terminal or XML would not take as text.

Control characters, halves of characters, and what changes the direction of writing are shown as `\x1b`, `\u202e`.
"""

import re
from collections.abc import Mapping
from typing import Any

_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def visible(text: str, *, lines: bool = True) -> str:
    """Return a text in characters that can be seen; `lines` keeps its line ends."""
    return _UNSEEN.sub(lambda found: found[0] if lines and found[0] == "\n" else _escape(found[0]), text)


def visible_document(value: Any) -> Any:
    """Return a document of the same shape with all its texts visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible_document(key): visible_document(item) for key, item in value.items()}
    return [visible_document(item) for item in value] if isinstance(value, list | tuple) else value


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
