"""Makes text safe to print: takes out secrets, and escapes characters that a terminal or XML does not show as text.

Secrets:
- A secret of 8 or more characters is replaced everywhere, also as JSON, a URL, HTML or a Java string writes it, and
  whatever white space separates its parts. Of a secret of several lines, such as a key, each long line is replaced too.
- A secret of 4 to 7 characters is replaced where it is a word of its own: `pass` as a password must not cut `passed`.
- A secret of less than 4 characters is not replaced: it would be found everywhere, and the hidden text would reveal it.
- Keys, numbers and the job's own words (verdict, check names, kinds of findings) stay whatever the secret is.

Characters: control characters, surrogates, and what changes the direction of writing become `\\x1b`, `\\u202e`.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

LEAST, ANYWHERE, LINE = 4, 8, 16  # characters
HIDDEN = "[hidden]"
OWN_WORDS = {
    *("verdict", "name", "kind", "step", "where", "naming", "isolation", "allow_unknown", "allowed_unknown"),
    *("started_at", "finished_at"),
}
FOREIGN = "evidence"  # a check's own keys, with any text under them


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these secrets."""
    pattern = _pattern(secrets)
    return pattern.sub(HIDDEN, text) if pattern is not None else text


def cleaned(document: Mapping[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
    """Return a report's document without these secrets, of the same shape."""
    pattern = _pattern(secrets)
    return dict(document) if pattern is None else {key: _clean(document[key], key, pattern) for key in document}


def _clean(value: Any, key: str, pattern: re.Pattern[str], *, foreign: bool = False) -> Any:
    if isinstance(value, str):
        return value if key in OWN_WORDS and not foreign else pattern.sub(HIDDEN, value)
    foreign = foreign or key == FOREIGN
    if isinstance(value, Mapping):
        return {name: _clean(one, str(name), pattern, foreign=foreign) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(one, key, pattern, foreign=foreign) for one in value]
    return value


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    found = {form for secret in secrets for form in _forms(secret.strip())}
    ways = [_way(form) for form in sorted(found, key=len, reverse=True) if len(form) >= LEAST]
    return re.compile("|".join(ways)) if ways else None


def _forms(secret: str) -> Iterable[str]:
    if len(secret) < LEAST:
        return
    yield secret
    yield from (json.dumps(secret, ensure_ascii=pure)[1:-1] for pure in (True, False))
    yield from (quote(secret), quote(secret, safe=""), html.escape(secret), html.escape(secret, quote=False))
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= LINE and not line.startswith("-----"))


def _way(form: str) -> str:
    way = r"(?:\s|\\[nr])+".join(map(re.escape, form.split()))
    return way if len(form) >= ANYWHERE else rf"(?<![^\W_]){way}(?![^\W_])"


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
