"""Text from clusters as a terminal and the log of a workflow may show it: names of groups and clients are anybody's."""

import re

_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
# Of GitHub's runner (ActionCommandManager and its extensions, 2.x).
_COMMANDS = (
    "add-mask|add-matcher|add-path|debug|echo|endgroup|error|group|internal-set-repo-path|notice|remove-matcher|"
    "save-state|set-env|set-output|stop-commands|warning"
)
# What the runner takes for a command, at the beginning of a line, which may be any place where a long one is broken,
# or, in the older form, anywhere.
_COMMAND = re.compile(rf"(?<!\S)::(?=[a-zA-Z])|::(?=(?:{_COMMANDS})(?![a-zA-Z-]))|##(?=\[)", re.IGNORECASE)


def visible(text: str, *, lines: bool = True) -> str:
    """Return a text with control and invisible characters escaped; `lines` keeps its line ends."""
    return _UNSEEN.sub(lambda found: found[0] if lines and found[0] == "\n" else _escape(found[0]), text)


def printable(text: str, *, lines: bool = True) -> str:
    """Return a visible text that gives the runner of a workflow no command, wherever its lines are broken."""
    return _COMMAND.sub(lambda found: _escape(found[0][0]) + found[0][1:], visible(text, lines=lines))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
