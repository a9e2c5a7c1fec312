"""The documents that the steps of a pipeline leave, as JSON files in one folder, and the Markdown that shows them.

The Markdown is for the comment of a pull request and the summary of a run. It names properties, rules and numbers,
never a secret; of values only what a rule's message or an error names, and the lines of manifests in a diff.

A file's name is made of what it is about: diff-STACK, preview-STACK, drift-STACK, verification-STACK, drill. A step
that fails leaves `{"error": ...}`, so that it is reported and not missed.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.files import replace_text
from contract.terminal import visible
from ops.errors import OpsError

FOLDER = Path("reports/pipeline")
DIFF, PREVIEW, DRIFT, VERIFICATION, DRILL = "diff", "preview", "drift", "verification", "drill"
KINDS = (DIFF, PREVIEW, DRIFT, VERIFICATION, DRILL)


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document: what it is about, the stack if it is about one, and what was found."""

    kind: str
    stack: str
    content: Mapping[str, Any]

    @property
    def error(self) -> str | None:
        """The reason why the step failed; None if it did not."""
        error = self.content.get("error")
        return str(error) if error else None


def file(folder: Path, kind: str, stack: str) -> Path:
    """Return the path of a stack's document; of a name with its organization the last part counts."""
    return folder / f"{kind}-{stack_name(stack)}.json"


def stack_name(stack: str) -> str:
    """Return the name of a stack without its organization and project."""
    return stack.rsplit("/", 1)[-1]


def write(folder: Path, kind: str, stack: str, content: Mapping[str, Any]) -> Path:
    """Write a document at once, for its owner alone, and return its path: rules and errors name values."""
    path = file(folder, kind, stack)
    replace_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n", new_mode=0o600)
    return path


def read(folder: Path) -> list[Document]:
    """Return all documents, in the order of their kinds and then of their stacks' names.

    One that cannot be read is an error of its own: a step that was killed must not pass for one that found nothing.
    """
    paths = [(kind, path) for kind in KINDS for path in sorted(folder.glob(f"{kind}*.json"))]
    return [
        Document(kind=kind, stack=path.stem.removeprefix(kind).removeprefix("-"), content=_content(path))
        for kind, path in paths
    ]


def of_pull_request(folder: Path, stacks: Sequence[str], *, previewed: bool) -> list[Document]:
    """Return the diffs and previews.

    A stack of these without a diff, or without a preview if there are `previewed` ones, is an error of its own.

    Raises:
        OpsError: there is neither a diff nor a preview.
    """
    found = [document for document in read(folder) if document.kind in (DIFF, PREVIEW)]
    known = {(document.kind, document.stack) for document in found}
    found += [
        Document(kind=kind, stack=stack, content={"error": f"Its job ended before the {kind}. See the run."})
        for kind in (DIFF, *([PREVIEW] if previewed else []))
        for stack in map(stack_name, stacks)
        if (kind, stack) not in known
    ]
    if not found:
        raise OpsError(f"folder {folder}: must have a diff (got none). Run `make diff STACK=...` first.")
    return sorted(found, key=lambda document: document.stack)


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {"error": f"{path.name} must be JSON ({error}). The step that writes it did not end."}
    return content if isinstance(content, dict) else {"error": f"{path.name} must be a JSON object."}


SHOWN_MAX = 50
_PATHS_MAX = 6
_LINES_MAX = 400
_NO_GATE = "not judged"
Content = Mapping[str, Any]


class Markdown(str):
    """Text that is Markdown already; everything else is shown as it is written."""

    __slots__ = ()


def report(documents: Sequence[Document]) -> str:
    """Return one section a kind of document; or one line if there is none."""
    sections = ((DIFF, diff), (PREVIEW, preview), (DRIFT, drift), (VERIFICATION, verification), (DRILL, drill))
    parts = [
        section(found) for kind, section in sections if (found := [each for each in documents if each.kind == kind])
    ]
    return "\n\n".join(parts) + "\n" if parts else "No step left a document.\n"


def diff(documents: Sequence[Document]) -> str:
    """Return what changes in the manifests of each stack and what the policy pack finds in them."""
    rows = [(each.stack, _counted(each), Markdown(_gate(each))) for each in documents]
    parts = ["## Diff", _table(("stack", "manifests", "policy gate"), rows)]
    for each in documents:
        if text := visible(str(each.content.get("diff") or "")):
            lines = text.splitlines()
            more = [f"and {len(lines) - _LINES_MAX} more lines"] if len(lines) > _LINES_MAX else []
            parts += [f"<details><summary>{_plain(each.stack)}: diff</summary>", _code(lines[:_LINES_MAX]), *more]
            parts += ["</details>"]
        parts += _judged(each)
        if reason := (each.content.get("base") or {}).get("error"):
            parts += [f"{_plain(each.stack)}: the base cannot be rendered, so nothing is compared:", _block(reason)]
    return "\n\n".join(parts)


def preview(documents: Sequence[Document]) -> str:
    """Return what each stack's update would change and what the policy pack finds in it."""
    rows = [(each.stack, _counted(each), Markdown(_gate(each))) for each in documents]
    parts = ["## Preview", _table(("stack", "changes", "policy gate"), rows)]
    for each in documents:
        parts += _details(each, _changes, "change", each.content.get("changes") or [])
        parts += _judged(each)
    return "\n\n".join(parts)


def _judged(each: Document) -> list[str]:
    return [
        *_details(each, _findings, "finding", each.content.get("findings") or []),
        *_details(each, _findings, "active exception", each.content.get("exceptions") or []),
        *_error(each),
    ]


def drift(documents: Sequence[Document]) -> str:
    """Return what differs between each stack's state and what is there."""
    rows = [(each.stack, Markdown(_drifted(each))) for each in documents]
    parts = ["## Drift", _table(("stack", "drift"), rows)]
    for each in documents:
        parts += _details(each, _changes, "drifted resource", each.content.get("changes") or [])
        parts += _error(each)
    return "\n\n".join(parts)


def verification(documents: Sequence[Document]) -> str:
    """Return the verdict on each mirror, and the checks that failed."""
    parts = ["## Verification"]
    for each in documents:
        mirrors: Sequence[Content] = each.content.get("mirrors") or []
        rows = [
            (each.stack, mirror.get("mirror"), _verdict(mirror), mirror.get("recordsCompared")) for mirror in mirrors
        ]
        if rows:
            parts.append(_table(("stack", "mirror", "verdict", "records compared"), rows))
        elif not each.error:
            parts.append(_plain(f"Stack {each.stack}: {each.content.get('said') or 'nothing to verify'}"))
        failed = [
            (mirror.get("mirror"), check.get("name"), check.get("expected"), check.get("observed"))
            for mirror in mirrors
            for check in mirror.get("checks") or []
            if check.get("ok") is False
        ]
        if failed:
            parts.append(_table(("mirror", "check that failed", "expected", "observed"), failed[:SHOWN_MAX]))
        parts += _error(each)
    return "\n\n".join(parts)


def drill(documents: Sequence[Document]) -> str:
    """Return what `ops failover` reports: what it warns of first, then its steps, then everything else by its name."""
    parts = ["## Failover drill"]
    for each in documents:
        rest = dict(each.content)
        warnings = rest.pop("warnings", None) or []
        steps = rest.pop("steps", None) or []
        parts += ["\n".join(f"- **Warning**: {_plain(text)}" for text in warnings)] if warnings else []
        rows = [(step.get("name"), step.get("words"), "yes" if step.get("done") else "no") for step in steps]
        parts += [_table(("step", "what", "done"), rows)] if rows else []
        parts += _error(each) if each.error else ["\n".join(_nested_list(rest))]
    return "\n\n".join(parts)


def cut(text: str, length: int, note: str) -> str:
    """Return the text, cut at the end of a line if it is longer than `length` with the note at its end."""
    if len(text) <= length:
        return text
    kept = text[: length - len(note) - 2]
    # A fold that stays open would swallow the note.
    opened = kept.count("<details>") - kept.count("</details>")
    closing = "\n\n</details>" * opened
    kept = kept[: max(0, len(kept) - len(closing))]
    return f"{kept[: kept.rfind(chr(10)) + 1].rstrip()}{closing}\n\n{note}"


def _nested_list(value: Any, indent: str = "") -> Iterator[str]:
    """Lines of a list: a mapping by its keys, a list by its entries, each below what it belongs to."""
    entries = value.items() if isinstance(value, Mapping) else ((None, each) for each in value)
    for key, each in entries:
        label = f"**{_plain(key)}**:" if key is not None else ""
        if isinstance(each, Mapping | list) and each:
            yield f"{indent}- {label or 'entry'}"
            yield from _nested_list(each, f"{indent}  ")
        else:
            shown = "none" if each is None or each in ({}, []) else _plain(each)
            yield f"{indent}- {label} {shown}" if label else f"{indent}- {shown}"


def _counted(document: Document) -> str:
    if document.error:
        return f"{document.kind} failed"
    if (document.content.get("base") or {}).get("error"):
        return "not compared"
    operations = [str(change.get("operation")) for change in document.content.get("changes") or []]
    counts = [f"{operations.count(name)} to {name}" for name in dict.fromkeys(operations)]
    return ", ".join(counts) or "none"


def _gate(document: Document) -> str:
    summary: Content = document.content.get("summary") or {}
    if document.error or not summary:
        return _NO_GATE
    counts = [f"{summary[level]} {level}" for level in ("mandatory", "advisory") if summary.get(level)]
    verdict = "passed" if summary.get("passed") else "**failed**"
    unseen = [] if summary.get("complete", True) else ["stopped before the rules over the whole stack"]
    return ": ".join([verdict, *([", ".join([*counts, *unseen])] if counts or unseen else [])])


def _drifted(document: Document) -> str:
    count = len(document.content.get("changes") or [])
    return _NO_GATE if document.error else f"**{count} drifted**" if count else "none"


def _verdict(mirror: Content) -> str:
    verdict = _plain(mirror.get("verdict"))
    return verdict if verdict == "pass" else Markdown(f"**{verdict}**")


def _changes(changes: Sequence[Content]) -> str:
    rows = [(each.get("operation"), f"{each.get('kind')} {each.get('name')}", _paths(each)) for each in changes]
    return _table(("operation", "resource", "properties"), rows)


def _paths(change: Content) -> str:
    paths = [str(path) for path in change.get("paths") or []]
    more = [f"and {len(paths) - _PATHS_MAX} more"] if len(paths) > _PATHS_MAX else []
    return ", ".join([*paths[:_PATHS_MAX], *more])


def _findings(findings: Sequence[Content]) -> str:
    rows = [(each.get("level"), each.get("severity"), each.get("rule"), each.get("message")) for each in findings]
    return _table(("level", "severity", "rule", "message"), rows)


def _details(
    document: Document, show: Callable[[Sequence[Content]], str], word: str, entries: Sequence[Content]
) -> list[str]:
    """A fold with the entries, the first ones if there are many."""
    if not entries:
        return []
    title = f"{document.stack}: {len(entries)} {word}{'' if len(entries) == 1 else 's'}"
    more = [f"and {len(entries) - SHOWN_MAX} more"] if len(entries) > SHOWN_MAX else []
    return [f"<details><summary>{_plain(title)}</summary>", show(entries[:SHOWN_MAX]), *more, "</details>"]


def _error(document: Document) -> list[str]:
    if not document.error:
        return []
    return [f"{_plain(document.stack) or 'Error'}:", _block(document.error)]


def _block(text: Any) -> str:
    return "\n".join(f"    {line}" for line in visible(str(text)).splitlines())


def _code(lines: Sequence[str]) -> str:
    """Lines of a diff in a fence that none of them can close."""
    fence = "`" * max(3, 1 + max(len(ticks) for line in lines for ticks in re.findall("`*", line)))
    return "\n".join([f"{fence}diff", *lines, fence])


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    titles = [*head]
    lines = [titles, ["---"] * len(titles), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, Markdown):
        return value
    return _plain("" if value is None else value).replace("|", "\\|").replace("\n", "<br>")


def _plain(value: Any) -> str:
    """Text that can be seen, and cannot become a tag, a mention, a link to an issue or a mark."""
    text = visible(str(value)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in ("\\", "`", "[", "]", "#", "_", "*", "~"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("@", "@&#8203;")
