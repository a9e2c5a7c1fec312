"""Why a pattern cannot be used. A message is the end of a sentence that begins with the pattern."""


class PatternError(ValueError):
    """The pattern cannot be used; the message says why."""


class InvalidPatternError(PatternError):
    """MirrorMaker refuses the pattern: Java does not compile it, or the list that holds it is not what it seems."""


class UntranslatableError(PatternError):
    """Java compiles the pattern, and Python has nothing that is known to match the same names."""
