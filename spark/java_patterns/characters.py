r"""The characters of a pattern without its quotations: those between \Q and \E stand for themselves."""

import re


class Characters:
    r"""Reads a pattern from left to right. `open_quotation`: a \Q has no \E, so that all behind it is quoted."""

    def __init__(self, pattern: str) -> None:
        self.open_quotation = False
        self._text: list[str] = []
        self._plain: list[str] = []  # of the same length, a NUL where a character is quoted
        at = 0
        while at < len(pattern):
            if pattern.startswith(r"\Q", at):
                end = pattern.find(r"\E", at + 2)
                self.open_quotation = end < 0
                end = len(pattern) if end < 0 else end
                self._text += pattern[at + 2 : end]
                self._plain += "\0" * (end - at - 2)
                at = end + 2
            else:
                step = 2 if pattern[at] == "\\" else 1  # a backslash that is escaped begins no quotation
                self._text += pattern[at : at + step]
                self._plain += pattern[at : at + step]
                at += step
        self._syntax = "".join(self._plain)
        self._at = 0

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self._at >= len(self._text)

    def next_is(self, *characters: str) -> bool:
        """Whether one of these comes next and is not quoted."""
        return not self.over and self._syntax[self._at] in characters

    def take(self, text: str) -> bool:
        """Whether this came next, not quoted; it is read then."""
        if not self._syntax.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def ahead(self, count: int) -> str:
        """Return the next characters, quoted or not."""
        return "".join(self._text[self._at : self._at + count])

    def follows(self, *texts: str) -> bool:
        """Whether one of these, not quoted, stands behind the next character."""
        return self._syntax.startswith(texts, self._at + 1)

    def escape(self) -> str:
        """Return the backslash that comes next with its character, if that is not quoted."""
        return self._syntax[self._at : self._at + 2].rstrip("\0")

    def skip(self, count: int) -> None:
        """Read so many characters."""
        self._at += count

    def read(self) -> str:
        """Return the next character, quoted or not, and read it; nothing at the end."""
        found = self.ahead(1)
        self._at += len(found)
        return found

    def match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        """Return what the expression matches here of characters that are not quoted, and read it."""
        found = expression.match(self._syntax, self._at)
        if found is not None:
            self._at = found.end()
        return found
