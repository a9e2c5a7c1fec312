r"""Regular expressions as MirrorMaker reads them: Java's, held against a whole name.

Python's `re` stands in for Java: what only Java knows is translated where that is simple; what it cannot judge
matches everything as far as this project's rules are concerned, so that a good file is never refused for it.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

# Names of topics and groups are judged as ASCII: what the classes of Java mean among these characters.
_CLASSES = {
    "Lower": "a-z", "Ll": "a-z", "IsLowercase": "a-z", "Upper": "A-Z", "Lu": "A-Z", "IsUppercase": "A-Z",
    "Alpha": "a-zA-Z", "L": "a-zA-Z", "IsL": "a-zA-Z", "IsAlphabetic": "a-zA-Z", "Digit": "0-9", "N": "0-9",
    "Nd": "0-9", "IsDigit": "0-9", "Alnum": "a-zA-Z0-9", "Punct": "._-", "P": "._-", "IsPunctuation": "._-",
}  # fmt: skip
# Python reads these and Java does not, or differently.
_PYTHON_ONLY = {
    r"\(\?P[<=>]": "Java writes named groups as (?<name>...) and \\k<name>",
    r"\(\?<(?![=!]|[A-Za-z][A-Za-z0-9]*>)": "Java names groups by letters and digits",
    r"\(\?#": "Java has no such comments",
    r"\(\?\(": "Java has no conditions",
    r"\(\?[imsx-]*[aL]": "Java has no flags a and L",
    r"(?<!\\)(?:\\\\)*\{(?!\d+(?:,\d*)?\})": "Java reads '{' as a repetition: {3}, {3,} or {3,5}; escape it as \\{",
}
_PLAIN = re.compile(r"(?:[A-Za-z0-9_-]|\\?\.(?![*+?{]))+")
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\\[pP](?:\{(?P<long>\w+)\}|(?P<short>\w))"
    r"|(?P<java>\\[hHvVReXGc]|\(\?[a-zA-Z]*-[a-zA-Z]*\)|\\k<\w+>|\\z|\(\?<(?=\w))"
    r"|(?P<escape>\\.)"
    r"|(?P<class>\[\^?\]?|\])"
    r"|(?P<and>&&)",
    re.DOTALL,
)


def wrong(pattern: str) -> str | None:
    """Why Java would refuse the expression, or None."""
    bare = re.sub(r"\\[pPxN]\{[^}]*\}|\\Q.*?(?:\\E|$)", "", pattern)
    outside = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]", "[]", bare)
    for python_only, reason in _PYTHON_ONLY.items():
        if re.search(python_only, outside):
            return reason
    try:
        _translated(pattern)
    except re.error as error:
        return str(error)
    return None


def matches(pattern: str, name: str) -> bool:
    """Whether the expression matches the whole name; True where that cannot be told."""
    judge = _translated(pattern)
    return judge is None or judge.fullmatch(name) is not None


def copied(name: str, patterns: Iterable[str], exclude: Iterable[str] = ()) -> bool:
    """Whether a mirror with these lists copies the name."""
    return any(matches(each, name) for each in patterns) and not any(
        _translated(each) is not None and matches(each, name) for each in exclude
    )


def literal(pattern: str) -> str | None:
    r"""The name that a plain expression stands for (`items\.eu` and `items.eu` for items.eu), or None."""
    return pattern.replace("\\", "") if _PLAIN.fullmatch(pattern) else None


def has_bare_dot(pattern: str) -> bool:
    """Whether a plain expression holds a dot that is not escaped and so stands for any character."""
    return literal(pattern) is not None and re.search(r"(?<!\\)\.", pattern) is not None


def may_overlap(ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """Names and expressions that both lists may match: plain ones by name, two others if nothing tells them apart."""
    first, second = list(ours), list(theirs)
    found = []
    for one in first:
        for other in second:
            name, by = (literal(one), other) if literal(one) is not None else (literal(other), one)
            if name is not None:
                found += [name] if matches(by, name) else []
            elif one == other or ".*" in (one, other):
                found.append(one)
    return list(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def _translated(pattern: str) -> re.Pattern[str] | None:
    """Python's expression for Java's; None if only Java can judge it; raises re.error for one that neither reads."""
    depth, unsure = 0, False

    def token(found: re.Match[str]) -> str:
        nonlocal depth, unsure
        text, kind = found.group(), found.lastgroup
        if kind == "quoted":
            return re.escape(found["quoted"])
        if kind in ("long", "short"):
            characters = _CLASSES.get(found["long"] or found["short"])
            if characters is None or (depth and text[1] == "P"):
                unsure = True
                return "."
            return characters if depth else f"[{'^' if text[1] == 'P' else ''}{characters}]"
        if kind == "java":
            known = {"\\h": "[ \t]", "\\z": "\\Z", "(?<": "(?P<"}
            unsure = unsure or (text not in known and not text.startswith("\\k")) or (depth > 0)
            return f"(?P={text[3:-1]})" if text.startswith("\\k") else known.get(text, ".")
        if kind == "class":
            unsure = unsure or (text != "]" and depth > 0)
            depth += 0 if text == "]" and not depth else (-1 if text == "]" else 1)
        elif kind == "and":
            unsure = unsure or depth > 0
        return text

    python = _TOKEN.sub(token, pattern)
    flags = re.match(r"\(\?([imsxuUd]+)\)", python)
    if flags:
        python = f"(?{flags[1].replace('U', '').replace('d', '') or 'u'}:{python[flags.end() :]})"
    if unsure or re.search(r"(?<!\\)\(\?[imsxuUd]+\)", python):
        return None
    try:
        return re.compile(python)
    except re.error as error:
        if "look-behind" in str(error):  # Java knows some of a variable width
            return None
        raise
