"""The command `python -m ops new`: asks five questions and writes a pair of stacks.

Owns the questions, what is refused, and the commands that come next. Reaches no cluster and no backend.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contract.files import NewFile, replace_files
from ops.connection import PROJECT
from ops.console import AsJson, Debug, escape, guard, log, stderr
from ops.errors import OpsError
from ops.new import (
    DEFAULT_PLATFORM,
    DEFAULT_STACKS,
    EXPOSE_TYPES,
    NAMINGS,
    NEED_HOSTS,
    Answers,
    project,
    split,
)


@dataclass(frozen=True)
class Question:
    """One question: what is asked, and the answer that Enter and `--yes` give, if there is one."""

    option: str
    text: str
    default: str | None


def command(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder of the pair, for example pairs/orders; it may be new.")],
    stacks: Annotated[
        str | None, typer.Option("--stacks", help="1. The two stacks, the source (active) first: dev,stg.")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option("--platform", help="2. The operators and their release: strimzi-1.2.0, event-streams-11.0.0."),
    ] = None,
    expose: Annotated[
        str | None,
        typer.Option("--expose", help=f"3. How a site is reached from outside: {', '.join(EXPOSE_TYPES)}."),
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option("--contexts", help="4. The kubeconfig's context of each site, the source's first; one for both."),
    ] = None,
    topics: Annotated[
        str | None, typer.Option("--topics", help="5. The topics to mirror, by their names: orders,payments.")
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            help="STACK=NAME by which clients reach a site, once for each; must be given with nodeport, ingress.",
        ),
    ] = None,
    groups: Annotated[
        str, typer.Option("--groups", help="The consumer groups to synchronise, as regular expressions.")
    ] = ".*",
    naming: Annotated[
        str, typer.Option("--naming", help=f"What remote topics are called: {' or '.join(NAMINGS)}.")
    ] = NAMINGS[0],
    partitions: Annotated[int, typer.Option("--partitions", help="Partitions of each topic.")] = 3,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the pair. [default: the folder's]", show_default=False)
    ] = None,
    accept_license: Annotated[
        bool, typer.Option("--accept-license", help="IBM's license terms for Event Streams are accepted.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: the default where an option is not given.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write a new pair of stacks: the answers to five questions become stack files, policies and a pipeline.

    Example: [bold]python -m ops new pairs/orders[/bold]
    Example: [bold]python -m ops new pairs/orders --yes --stacks dev,stg --contexts east,west --topics orders[/bold]

    Nothing is deployed. The last lines are the commands that come next, in the order in which one types them. Exit 2,
    with everything that is wrong at once and nothing written, if the answers do not fit.
    """
    with guard(as_json, debug):
        given = {"stacks": stacks, "platform": platform, "expose": expose, "contexts": contexts, "topics": topics}
        asks = not yes and is_terminal()
        found = dict(_answered(given, asks=asks))
        hosts, unreadable = _hosts(host or [])
        if asks:
            hosts |= _ask_hosts(found, hosts)
            accept_license = accept_license or _ask_license(found)
        answers = Answers(
            name=name or folder.resolve().name,
            stacks=split(found["stacks"]),
            platform=found["platform"].strip(),
            expose=found["expose"].strip(),
            hosts=hosts,
            contexts=split(found["contexts"]),
            topics=split(found["topics"]),
            groups=split(groups),
            naming=naming,
            partitions=partitions,
            accepts_license=accept_license,
        )
        files = _checked(answers, folder, unreadable)
        _write(folder, files)
        following = next_commands(answers, folder, str(context.find_root().info_name))
        if as_json:
            written = [str(file) for file in files]
            sys.stdout.write(json.dumps({"name": answers.name, "files": written, "next": following}, indent=2) + "\n")
            return
        _report(files, following)


def is_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def questions(found: Mapping[str, str]) -> list[Question]:
    """Return the five questions; the default of the contexts is the stacks, which are asked first."""
    return [
        Question("stacks", "1/5 The two stacks, the source (active) first", DEFAULT_STACKS),
        Question("platform", "2/5 Operator, as strimzi-... or event-streams-...", DEFAULT_PLATFORM),
        Question("expose", f"3/5 Exposed by {', '.join(EXPOSE_TYPES)}", EXPOSE_TYPES[0]),
        Question(
            "contexts",
            "4/5 Kubeconfig contexts, the source first, or one",
            found.get("stacks", DEFAULT_STACKS),
        ),
        Question("topics", "5/5 Topics to mirror, joined by commas", None),
    ]


def next_commands(answers: Answers, folder: Path, program: str) -> list[str]:
    """Return what one types next, from the program's folder; `program` is this command line's own name."""
    place, programs = _shown(folder.resolve()), _programs()
    python, ops = f"{programs}python", f"{programs}{program}"
    files = " ".join(f"{place}/Pulumi.{stack}.yaml" for stack in answers.stacks)
    return [
        "pulumi login",
        *(f"pulumi -C {place} stack init {stack}" for stack in answers.stacks),
        f"{python} -m settings check {files}",
        f"pulumi -C {place} preview -s {answers.source}",
        f"{ops} policy -C {place} --stack {answers.source}",
        *(f"pulumi -C {place} up -s {stack}" for stack in answers.stacks),
        f"{ops} status -C {place} --stack {answers.target}",
    ]


def _answered(given: Mapping[str, str | None], *, asks: bool) -> Iterator[tuple[str, str]]:
    """Each answer by its option: the one given, else asked for, else the default; nothing where there is none."""
    found: dict[str, str] = {}
    for number in range(len(given)):
        question = questions(found)[number]
        answer = given[question.option]
        if answer is None:
            answer = _ask(question) if asks else question.default or ""
        found[question.option] = answer
        yield question.option, answer


def _ask(question: Question) -> str:
    return str(typer.prompt(question.text, default=question.default, err=True))


def _hosts(entries: list[str]) -> tuple[dict[str, str], list[str]]:
    """The hosts by stack, and what cannot be read."""
    pairs = [entry.partition("=") for entry in entries]
    wrong = [
        f"--host: must be STACK=NAME (got {entry!r}), for example dev=kafka.dev.example.com."
        for entry, (stack, _, name) in zip(entries, pairs, strict=True)
        if not stack or not name
    ]
    return {stack: name for stack, _, name in pairs if stack and name}, wrong


def _ask_hosts(found: Mapping[str, str], hosts: Mapping[str, str]) -> dict[str, str]:
    if found["expose"].strip() not in NEED_HOSTS:
        return {}
    missing = [stack for stack in split(found["stacks"]) if stack not in hosts]
    return {stack: _ask(Question("host", f"    Name by which clients reach {stack}", None)) for stack in missing}


def _ask_license(found: Mapping[str, str]) -> bool:
    if not found["platform"].startswith("event-streams"):
        return False
    return typer.confirm("    Have you read and accepted IBM's license terms for Event Streams?", err=True)


def _checked(answers: Answers, folder: Path, unreadable: list[str]) -> dict[Path, str]:
    """The files of the pair; raises OpsError with everything that is wrong."""
    wrong = [*unreadable, *answers.problems()]
    files = {} if wrong else project.contents(answers, folder)
    wrong += project.problems(answers, files) if files else []
    wrong += _in_the_way(folder, files)
    if wrong:
        count = f"{len(wrong)} thing{'s' * (len(wrong) > 1)}"
        lines = "".join(f"\n  {problem}" for problem in wrong)
        raise OpsError(f"pair {answers.name}: {count} must be corrected (nothing was written):{lines}")
    return files


def _in_the_way(folder: Path, files: Mapping[Path, str]) -> Iterator[str]:
    """What is there already and would be lost, or would be taken for a part of the pair."""
    if folder.exists() and not folder.is_dir():
        yield f"{folder}: must be a folder (got a file). Choose another one."
        return
    there = {*folder.glob("Pulumi*.y*ml"), *folder.glob("policy.*.json")}
    if there:
        names = ", ".join(sorted(file.name for file in there))
        yield f"{folder}: must have no stack of another pair (got {names}). Choose another folder, or move them away."
    for file in sorted({file for file in files if file.exists()} - there):
        yield f"{file}: must not exist yet. Give the pair another --name, or move it away."


def _write(folder: Path, files: Mapping[Path, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    replace_files([NewFile(path=file, parts=[text], mode=None) for file, text in files.items()])
    link, target = project.environment(folder)
    if not link.exists() and not link.is_symlink():
        link.symlink_to(target, target_is_directory=True)


def _report(files: Mapping[Path, str], following: list[str]) -> None:
    """Log the files that were written to stderr; the commands are the result."""
    for file in files:
        log(f"written: {_shown(file.resolve())}")
    if not any(file.parent.name == "workflows" for file in files):
        log(f"no pipeline: the folder is not inside {PROJECT}, which a pipeline checks out")
    stderr().print("\nnext:", highlight=False)
    Console(soft_wrap=True, highlight=False).print(escape("\n".join(following)))


def _shown(path: Path) -> str:
    """A path as one types it in the program's folder."""
    return path.relative_to(PROJECT).as_posix() if path.is_relative_to(PROJECT) else str(path)


def _programs() -> str:
    """Where the environment's programs are, as one types it before their names; nothing if it is not the project's."""
    folder = Path(sys.prefix) / "bin"
    return f"{folder.relative_to(PROJECT).as_posix()}/" if folder.is_relative_to(PROJECT) else ""


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("new")(command)
