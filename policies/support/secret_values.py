"""Which keys have secrets, what refers to one instead of being one, and where a text contains secrets."""

import re
from bisect import bisect_left
from collections.abc import Iterator

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Words that follow the name of a value and change nothing of it: `client.secret.value`, `password.txt`.
_FILLERS = {"value", "text", "txt", "plain", "plaintext", "literal"}
# How the key of a secret ends. One that goes on is about a secret (`tokenEndpointUri`, `secretName`).
_HOLDS = re.compile(
    r"""
    (?: (?:password|passwd|passphrase|passcode)s?
      | (?<!\S)(?:store|key)?pass
      | \S[ ]pwd
      | token
      | secret
      | (?:api|secret|secret\ access|shared\ access|private|master|encryption|signing|hmac|account|keystore)\ ?key
      | auth\ user\ ?info
      | client\ assertion
    )\Z
    """,
    re.VERBOSE,
)
# `pullSecret` and its like name a Secret of Kubernetes; tokens of paging mark where a list goes on.
_HOLDS_NONE = re.compile(
    r"\b(?:push|pull|existing|tls|password|credentials?|keystore|truststore|ca|cert|certificate|image|jmx) secret\Z"
    r"|\b(?:next|page|paging|continuation|input|output) token\Z"
)
_REFERENCE = re.compile(
    r"""
    .*(?:\$\{|\$\(|\{\{|%\().* | `.*      # placeholders of config providers, Kubernetes, templates and shells
    | (?-i:\$(?:[A-Z_][A-Z0-9_]*|[0-9@*]))  # a variable of a shell, a group of an expression
    | (?:vault|file|env|ref\+\w+|op|ssm|secretref|arn):.*
    | (?:file://)?(?:/[\w.@-]+){2,}/?     # a path
    | <[^<>]*> | \*+ | \{[a-z_].*        # a gap to fill in, a value made unreadable
    | str(?:ing)? | true | false | yes | no | on | off | none | null | enabled | disabled | required | optional
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:\s|\\[nr])*(?:[A-Za-z0-9+/=]{16}|Proc-Type)")
_LOGIN_IN_URL = re.compile(r"\b[a-z][a-z0-9+._-]{0,19}://[^\s/:@\"']*:(?P<value>[^\s/@\"']+)@", re.IGNORECASE)
_KEY = r"(?P<key>[A-Za-z][\w.-]{0,199})"
_QUOTED = r"""\\"(?P<escaped>[^"\\\n]*)\\" | "(?P<double>(?:[^"\\\n]|\\.)*)" | '(?P<single>[^'\n]*)'"""
_VALUES = ("escaped", "double", "single", "bare")
# `key=value` anywhere: JAAS, properties, variables of a shell, arguments, options of a JVM, queries of URLs.
_EQUALS = re.compile(
    rf"""(?<![\w.])(?:(?<=-)D(?=[a-z]))?{_KEY}(?:["'])?[ \t]*(?<![!<>=~])=(?![=~>])[ \t]*
    (?:{_QUOTED} | (?P<bare>[^\s"',;&\\]++)(?!["']))""",
    re.VERBOSE,
)
# `key: value` at the begin of a line, as in YAML, and `"key": "value"` anywhere, as in JSON.
_COLON_LINE = re.compile(
    rf"""^[ \t]*(?:-[ \t]+)?(["']?){_KEY}\1[ \t]*:[ \t]+
    (?:{_QUOTED} | (?P<bare>[^\s"'\\]\S*))[ \t]*,?(?:[ \t]\#.*)?$""",
    re.VERBOSE | re.MULTILINE,
)
_COLON_QUOTED = re.compile(rf"""(?P<q>\\?["']){_KEY}(?P=q)[ \t]*:[ \t]*(?:{_QUOTED})""", re.VERBOSE)
_COMMENT = re.compile(r"\s*(?:#|!|//)")
_NAME_OF_SECRET = re.compile(r"\s*(?:-\s+)?[\"']?secretName[\"']?\s*:")
# How far before a key the labels of its metric may begin.
_LABELS = 1000
_IN_LABELS_OF_A_METRIC = re.compile(r"\w\{[^{}]*$")
# An expression of a programming language, or the begin of a block, of a nested value or of a gap to fill in.
_CODE = re.compile(r"[(\[{<|>&*].*|[A-Za-z_][\w.]*[(\[].*", re.DOTALL)
_CODE_FILE = re.compile(r".*\.(?:py|js|ts|java|scala|go|rb|groovy|kts?|lua)")
_CLOSING = ")]},"
# How JAAS of a broker declares its users: `user_alice="..."`.
_USER_OF_JAAS = re.compile(r"user_\w+")


def holds_secret(key: str) -> bool:
    """Whether a value under this key is a secret, by the words at the key's end."""
    words = [word.lower() for word in _WORD.findall(key)]
    while len(words) > 1 and words[-1] in _FILLERS:
        words.pop()
    joined = " ".join(words)
    return bool(_HOLDS.search(joined)) and not _HOLDS_NONE.search(joined)


def is_literal(key: str, value: str) -> bool:
    """Whether the value is the secret itself: no reference, path, switch or gap, and no number but as a password."""
    value = value.strip()
    if not value or _REFERENCE.fullmatch(value):
        return False
    return not _NUMBER.fullmatch(value) or "pass" in key.lower()


def secrets_within(text: str, file: str = "") -> Iterator[tuple[int, str]]:
    """Line and name of every secret inside a text, such as a file of properties, JAAS, YAML, JSON or a script.

    In a file of a programming language a value without quotes is a variable or a number.
    """
    is_code = _CODE_FILE.fullmatch(file) is not None
    found = {(match.start(), "private key") for match in _PRIVATE_KEY.finditer(text)}
    found |= {(match.start(), "password of a URL") for match in _logins(text)}
    found |= {
        (match.start("key"), match["key"])
        for match in _assignments(text)
        if not (is_code and match.groupdict().get("bare"))
    }
    breaks = [match.start() for match in re.finditer("\n", text)]
    yield from sorted({(bisect_left(breaks, start) + 1, what) for start, what in found})


def redact_secrets(text: str) -> str:
    """The text with three stars in place of every secret that a key or a URL in it shows."""
    spans = [match.span("value") for match in _logins(text)]
    for match in _assignments(text):
        spans += [match.span(group) for group in _VALUES if match.groupdict().get(group)]
    redacted, at = "", 0
    for start, end in sorted(spans):
        if start >= at:
            redacted += f"{text[at:start]}***"
        at = max(at, end)
    return redacted + text[at:]


def _logins(text: str) -> Iterator[re.Match[str]]:
    return (match for match in _LOGIN_IN_URL.finditer(text) if is_literal("password", match["value"]))


def _assignments(text: str) -> Iterator[re.Match[str]]:
    for pattern in (_EQUALS, _COLON_LINE, _COLON_QUOTED):
        yield from (match for match in pattern.finditer(text) if _assigns(match, text))


def _assigns(match: re.Match[str], text: str) -> bool:
    key = match["key"]
    if not holds_secret(key) and not (_USER_OF_JAAS.fullmatch(key) and "LoginModule" in text):
        return False
    at = match.start("key")
    begin = text.rfind("\n", 0, at) + 1
    # Not the whole line: a file may be a single one, with thousands of keys.
    if _COMMENT.match(text, begin, at) or _IN_LABELS_OF_A_METRIC.search(text, max(begin, at - _LABELS), at):
        return False
    # Beside the name of a Secret is the key within it, as in `passwordSecret`.
    above = text[text.rfind("\n", 0, max(begin - 1, 0)) + 1 : begin]
    end = text.find("\n", match.end()) + 1
    if _NAME_OF_SECRET.match(above) or (end and _NAME_OF_SECRET.match(text, end)):
        return False
    groups = match.groupdict()
    bare = groups.get("bare")
    if bare is None:
        return any(is_literal(key, groups[quoted]) for quoted in ("escaped", "double", "single") if groups[quoted])
    names_a_variable = f".{bare.rstrip(_CLOSING)}".endswith(f".{key}")
    return not names_a_variable and not _CODE.fullmatch(bare) and is_literal(key, bare)
