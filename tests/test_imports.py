"""Who may import whom: each package may reach only the packages that its job needs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PULUMI = {"pulumi", "pulumi_kubernetes", "pulumi_random"}
CLIENTS = {"confluent_kafka", "httpx", "kubernetes", "tenacity", "typer", "rich", "yaml"}
ALLOWED = {
    "contract": {"httpx", "pydantic", "pydantic_core", "prometheus_client"},
    "kafka": {"contract", "confluent_kafka", "httpx", "kubernetes", "urllib3", "cryptography"},
    "settings": {"contract", "pydantic", "pydantic_core", "yaml"},
    "monitoring": {"settings", "yaml", "grafana_foundation_sdk"},
    "components": {"contract", "settings", "monitoring", "kubernetes", "urllib3", "yaml", *PULUMI},
    "examples": {"contract", "kafka", "settings", "components", "ops", "confluent_kafka", "typer", "yaml"},
    "policies": {"pulumi_policy"},
    "spark": {
        *("contract", "kafka", "pyspark", "py4j", "confluent_kafka", "httpx", "jinja2", "numpy", "pyarrow"),
        *("boto3", "botocore", "rich", "tenacity", "cryptography", "prometheus_client", "xxhash"),
    },
    "ops": {
        *("contract", "kafka", "settings", "monitoring", "boto3", "botocore", "urllib3", "prometheus_client"),
        *CLIENTS,
    },
    "sandbox": {"contract", "settings", "kopf", "cryptography", "psutil", "prometheus_client", "urllib3", *CLIENTS},
    "benchmarks": {"sandbox", "kafka", "ops", "cryptography", "psutil", "urllib3", *CLIENTS},
}
# From the bottom to the top. A package imports from the floors below its own.
FLOORS = (
    {"contract", "policies"},
    {"kafka", "settings"},
    {"monitoring"},
    {"components", "spark"},
    {"ops"},
    {"examples", "sandbox"},
    {"benchmarks"},
)
# What the image of the verification holds, and executors of a Spark cluster get.
JOB = ("contract", "kafka", "spark")
# The language host speaks the Pulumi engine's own protocol; everything else of the sandbox stays off the SDK.
LANGUAGE_HOST = ROOT / "sandbox" / "toolchain" / "language_host"
TOOLCHAIN = ROOT / "sandbox" / "toolchain"


def python_files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "venv" not in path.parts)


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> frozenset[str]:
    """Top-level names of all absolute imports of a file, standard library left out."""
    names: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return frozenset(names - sys.stdlib_module_names)


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_its_job_needs(package: str) -> None:
    allowed = ALLOWED[package] | {package}
    offences = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in python_files(ROOT / package)
        if LANGUAGE_HOST not in path.parents
        for name in imported(path) - allowed
    }
    assert not offences


def test_a_package_imports_only_from_floors_below_its_own() -> None:
    floor = {package: number for number, packages in enumerate(FLOORS) for package in packages}
    assert set(floor) == set(ALLOWED)
    offences = {
        f"{path.relative_to(ROOT)} imports {name}"
        for package in ALLOWED
        for path in python_files(ROOT / package)
        for name in imported(path) & set(floor) - {package}
        if floor[name] >= floor[package]
    }
    assert not offences


def test_only_what_draws_dashboards_needs_grafanas_library() -> None:
    needing = {path for path in python_files(ROOT / "monitoring") if "grafana_foundation_sdk" in imported(path)}
    assert needing
    assert {path.parent for path in needing} == {ROOT / "monitoring" / "dashboards"}


def test_the_commands_load_nothing_of_spark() -> None:
    loaded = "import sys, ops.cli; print(*{'pyspark', 'numpy', 'spark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_job_imports_all_that_it_may() -> None:
    # Its image installs what it may import, see tests/unit/components/test_verification_image.py.
    found = set[str]().union(*(imported(path) for package in JOB for path in python_files(ROOT / package)))
    assert found - {*JOB} == set[str]().union(*(ALLOWED[package] for package in JOB)) - {*JOB}


def test_the_toolchain_runs_on_a_bare_python() -> None:
    offences = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in [ROOT / "sandbox" / "__init__.py", *python_files(TOOLCHAIN)]
        if LANGUAGE_HOST not in path.parents
        for name in imported(path) - {"sandbox"}
    }
    assert not offences


def test_the_program_itself_only_joins_settings_and_components() -> None:
    assert imported(ROOT / "__main__.py") <= {"pulumi", "settings", "components"}


def test_only_the_program_reads_the_pulumi_configuration() -> None:
    readers = {
        str(path.relative_to(ROOT))
        for package in ALLOWED
        for path in python_files(ROOT / package)
        if "pulumi.Config(" in path.read_text(encoding="utf-8")
    }
    assert not readers


def environment_reads_at_import(path: Path) -> Iterator[int]:
    """Line numbers of `os.environ` and `os.getenv` that run when the module is imported."""

    def walk(node: ast.AST) -> Iterator[int]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if isinstance(child, ast.Attribute) and child.attr in {"environ", "getenv"}:
                yield child.lineno
            yield from walk(child)

    return walk(syntax(path))


def test_nothing_reads_the_environment_at_import() -> None:
    readers = {
        f"{path.relative_to(ROOT)}:{line}"
        for package in ALLOWED
        for path in python_files(ROOT / package)
        for line in environment_reads_at_import(path)
    }
    assert not readers


def test_every_file_keeps_to_one_purpose() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in (*ALLOWED, "tests")
        for path in python_files(ROOT / folder)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert not long
