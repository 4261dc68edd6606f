"""The direction of imports, and what `import whytube` may cost."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from whytube.data.world import World
from whytube.video import write_video

PACKAGE = Path(__file__).parent.parent / "src" / "whytube"

# Lower levels know nothing of higher ones; modules of one level know nothing of each other.
LEVELS = (
    ("errors",),
    ("checks",),
    ("documents",),
    ("files",),
    ("video", "tubes", "subpath", "versions"),
    ("classifiers",),
    ("explanation",),
    ("search",),
    ("explainer",),
    ("models", "given"),
    ("asking",),
    ("explaining",),
    ("data",),
    ("training",),
    ("evaluation",),
    ("report",),
    ("bulk", "web"),
    ("cli",),
)
# The one place where a heavy library may be imported, and always inside a function unless the place is itself lazy;
# triton has a place for each kernel.
ONLY_IN = {
    "av": "video/",
    "cv2": "video/opencv.py",
    "numba": "subpath/cpu.py",
    "scipy": "data/importers/mat.py",
    "filelock": "files.py",
    "ray": "bulk/run.py",
    "pyarrow": "bulk/",
    "duckdb": "bulk/query.py",
    "tensorboard": "training/history.py",
    "torch.utils.tensorboard": "training/history.py",
    "torch.distributed": "training/devices.py",
    "triton": ("subpath/cuda", "classifiers/cuda_layers.py"),
    "transformers": "classifiers/adapters.py",
    "torchvision": "classifiers/adapters.py",
    "supervision": "tubes/export.py",
    "typer": "cli/",
    "rich": "cli/",
    "jinja2": "report/html.py",
    "markupsafe": "report/html.py",
    "fastapi": "web/",
    "starlette": "web/",
    "uvicorn": "web/",
    "pydantic": "web/",
    "sqlite3": "web/store",
}
SUBPATH_MAY_IMPORT = {"torch", "numpy", "numba", "triton", "whytube"}


def level(module: str) -> int | None:
    return next((i for i, names in enumerate(LEVELS) if module in names), None)


def imports(path: Path) -> set[str]:
    """Every module that a file names in an import statement, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module in ("whytube", "torch"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = sorted(
    p for p in PACKAGE.rglob("*.py") if p.relative_to(PACKAGE).parts[0] not in ("__init__.py", "__main__.py")
)


def home(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    here = level(home(path))
    assert here is not None, f"{home(path)} has no level: add it to LEVELS"
    for module in imports(path):
        if module.startswith("whytube."):
            other = module.split(".")[1]
            there = level(other)
            if there is not None and other != home(path):
                assert there < here, f"{path.name} imports {module}, which stands beside or above it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_have_one_home(path):
    name = path.relative_to(PACKAGE).as_posix()
    for library, homes in ONLY_IN.items():
        if any(f"{module}.".startswith(f"{library}.") for module in imports(path)):
            assert name.startswith(homes), f"{name} imports {library}"


def test_the_layer_stands_alone():
    for path in (PACKAGE / "subpath").glob("*.py"):
        for module in imports(path):
            root, _, rest = module.partition(".")
            if root in sys.stdlib_module_names:
                continue
            assert root in SUBPATH_MAY_IMPORT
            assert root != "whytube" or rest.split(".")[0] in ("subpath", "checks", "errors", "")


def test_import_is_light():
    heavy = (
        "torch",
        "numpy",
        "av",
        "numba",
        "scipy",
        "filelock",
        "tensorboard",
        "triton",
        "typer",
        "rich",
        "matplotlib",
        "fastapi",
        "ray",
        "jinja2",
        "transformers",
    )
    script = (
        "import sys; before = set(sys.modules); import whytube; "
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "whytube" in loaded
    assert not set(heavy) & set(loaded)


def calls(*words):
    """Run trace_calls.py; return what it says on its last line."""
    script = Path(__file__).with_name("trace_calls.py")
    ran = subprocess.run([sys.executable, script, *map(str, words)], capture_output=True, text=True, check=True)
    return json.loads(ran.stderr.splitlines()[-1])


def test_an_answer_takes_few_hops(tmp_path):
    """From the command line to JSON: functions that are called from another file, and the files they stand in."""
    video = write_video(tmp_path / "dance.mp4", World(size=64).batch("test", [0]).clips[0], 8.0)
    found = calls("explain", "explain", video, "--json")
    assert "explaining.py: explain" in found["calls"]
    assert "subpath/cpu.py: search" in found["calls"], "down to the kernel"
    assert "search/anytime.py: search" in found["calls"]
    assert len(found["calls"]) <= 92, found["calls"]
    assert len(found["files"]) <= 31, found["files"]


def test_loading_takes_few_hops():
    found = calls("load", "demo")
    assert "models/stored.py: load_tensors" in found["calls"]
    assert len(found["calls"]) <= 13, found["calls"]
