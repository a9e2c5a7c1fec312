r"""Patterns and names by chance, of everything that java.util.regex knows; half of them are spoilt afterwards."""

import random
from collections.abc import Callable

LETTERS = "aabbccABzx1290..--__"
ODD = [
    "\n",
    "\r\n",
    "é",
    "É",
    "K",
    "ß",
    "İ",
    "\u2028",
    "\x85",
    " ",
    "\t",
    "😀",
    "\x0b",
    "Ω",
    "٣",
    "\x00",
    "$",
    "&",
    "^",
]
PROPERTIES = [
    *("Lower", "Upper", "ASCII", "Alpha", "Digit", "Alnum", "Punct", "Graph", "Print", "Blank", "Cntrl", "XDigit"),
    *("Space", "L", "Lu", "IsL", "IsLl", "Nd", "P", "Pd", "S", "Zs", "IsAlphabetic", "IsLatin", "javaLowerCase", "no"),
]
SPECIAL = r"\[](){}^$|?*+.-&,:=!<>QEdwpPx0123iabcZz#"


class Patterns:
    """A sequence of patterns that a seed decides, each with names that it may match."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - tests, not secrets
        self.groups = 0
        self.names: list[str] = []

    def pattern(self) -> tuple[str, list[str]]:
        """Return a pattern with names: one that was made with it, such that are nearly it, and any others."""
        self.groups, self.names = 0, []
        text, sample = self.alternatives(3)
        if self.chance(0.35):
            text = self.spoilt(text)
        others = [self.name() for _ in range(8)]
        near = [
            sample,
            sample[:-1],
            sample + "a",
            sample.swapcase(),
            sample[1:] + sample[:1],
            sample + "\n",
            "",
            "a\nb",
        ]
        return text, [*near, *others]

    def name(self) -> str:
        length = self.random.randrange(7)
        return "".join(self.character() for _ in range(length))

    def character(self) -> str:
        return self.random.choice(ODD) if self.chance(0.08) else self.random.choice(LETTERS)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def spoilt(self, text: str) -> str:
        """Return the text with a character added, taken away, or put elsewhere."""
        at = self.random.randrange(len(text) + 1)
        kind = self.random.randrange(3)
        if kind == 0:
            return text[:at] + self.random.choice(SPECIAL) + text[at:]
        if kind == 1:
            return text[:at] + text[at + 1 :]
        return text[:at] + self.random.choice(SPECIAL) + text[at + 1 :]

    def alternatives(self, depth: int) -> tuple[str, str]:
        parts = [self.sequence(depth) for _ in range(self.random.choice([1, 1, 1, 2, 3]))]
        return "|".join(text for text, _ in parts), self.random.choice(parts)[1]

    def sequence(self, depth: int) -> tuple[str, str]:
        parts = [self.repeated(depth) for _ in range(self.random.choice([0, 1, 1, 2, 2, 3]))]
        return "".join(text for text, _ in parts), "".join(sample for _, sample in parts)

    def repeated(self, depth: int) -> tuple[str, str]:
        text, sample = self.atom(depth)
        if not self.chance(0.4):
            return text, sample
        counts = ["*", "+", "?", "{0}", "{1}", "{2}", "{1,}", "{0,2}", "{2,3}", "{1,1}"]
        count = self.random.choice(counts)
        times = self.random.choice([1, 2]) if count in ("*", "+", "{1,}", "{0,2}") else {"{0}": 0, "?": 1}.get(count, 2)
        times = 1 if count in ("{1}", "{1,1}") else times
        return text + count + self.random.choice(["", "", "", "?", "+"]), sample * times

    def atom(self, depth: int) -> tuple[str, str]:
        makers: list[Callable[[int], tuple[str, str]]] = [
            *[self.literal] * 5,
            *[self.char_class] * 6,
            *[self.escape] * 2,
            *[self.group] * (3 if depth else 0),
            self.quotation,
            self.anchor,
            self.dot,
            self.flags,
        ]
        if self.groups:
            makers.append(self.reference)
        return self.random.choice(makers)(depth)

    def literal(self, _: int) -> tuple[str, str]:
        character = self.character()
        if character in r"\[](){}^$|?*+." and not self.chance(0.2):
            return "\\" + character, character
        return character, character

    def dot(self, _: int) -> tuple[str, str]:
        return ".", self.character()

    def anchor(self, _: int) -> tuple[str, str]:
        return self.random.choice(["^", "$", r"\A", r"\z", r"\Z", r"\b", r"\B", r"\G"]), ""

    def flags(self, _: int) -> tuple[str, str]:
        return f"(?{self.random.choice(['i', 'i', 's', 'is', '-i', 'i-s', 'm', 'x', 'u', 'U', 'd', ''])})", ""

    def quotation(self, _: int) -> tuple[str, str]:
        inside = "".join(self.random.choice([*"ab1.*[|^-&", "\\", "]"]) for _ in range(self.random.randrange(4)))
        return f"\\Q{inside}" + ("" if self.chance(0.1) else "\\E"), inside

    def reference(self, _: int) -> tuple[str, str]:
        if self.names and self.chance(0.5):
            return rf"\k<{self.random.choice(self.names)}>", ""
        return f"\\{self.random.randint(1, self.groups)}", ""

    def group(self, depth: int) -> tuple[str, str]:
        kind = self.random.choice(
            ["(", "(", "(", "(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?s-i:", "<"]
        )
        capturing = kind in ("(", "<")
        name = f"n{self.groups}"
        text, sample = self.alternatives(depth - 1)
        self.groups += capturing
        if kind == "<":
            self.names.append(name)
            kind = f"(?<{name}>"
        return f"{kind}{text})", "" if kind[:3] in ("(?=", "(?!", "(?<") and not capturing else sample

    def escape(self, _: int) -> tuple[str, str]:
        simple = {
            r"\d": "1", r"\D": "a", r"\w": "b", r"\W": "-", r"\s": " ", r"\S": "a", r"\h": "\t", r"\H": "a",
            r"\v": "\n", r"\V": "a", r"\t": "\t", r"\n": "\n", r"\x61": "a", r"\x{62}": "b", r"\u0063": "c",
            r"\0141": "a",
            r"\061": "1", r"\07": "\x07", r"\cA": "\x01", r"\.": ".", r"\-": "-", r"\_": "_", r"\x{1F600}": "😀",
            r"\R": "\n", r"\X": "a", r"\e": "\x1b", r"\é": "é", r"\08": "8", r"\0400": " 0", r"\q": "q", r"\E": "",
        }  # fmt: skip
        if self.chance(0.4):
            return self.property()
        text = self.random.choice(list(simple))
        return text, simple[text]

    def property(self) -> tuple[str, str]:
        name = self.random.choice(PROPERTIES)
        letter = self.random.choice("ppP")
        short = len(name) == 1 and self.chance(0.5)
        return f"\\{letter}{name}" if short else f"\\{letter}{{{name}}}", self.character()

    def char_class(self, _: int) -> tuple[str, str]:
        return self.set(2), self.character()

    def set(self, depth: int) -> str:
        operands = [self.members(depth) for _ in range(self.random.choice([1, 1, 1, 2, 2, 3]))]
        return f"[{self.random.choice(['', '', '^'])}{'&&'.join(operands)}]"

    def members(self, depth: int) -> str:
        return "".join(self.member(depth) for _ in range(self.random.choice([1, 1, 2, 3])))

    def member(self, depth: int) -> str:
        kind = self.random.randrange(13)
        if kind < 4:
            return self.class_character()
        if kind < 7:
            low, high = sorted(self.random.choice("abcdexzABCZ0129") for _ in range(2))
            return f"{low}-{high}"
        if kind < 9 and depth:
            return self.set(depth - 1)
        if kind == 9:
            return self.escape(0)[0]
        if kind == 10:
            return self.random.choice(
                ["[:alpha:]", r"\Qa-]\E", r"\Q^\E", "&", "-", "^", "--a", r"\w-", r"\x61-c", "!--"]
            )
        if kind == 11:
            return self.random.choice([r"\d", r"\w", r"\s", r"\S", r"\W", r"\h"])
        return self.property()[0]

    def class_character(self) -> str:
        character = self.character()
        return "\\" + character if character in "[]^&-\\" else character
