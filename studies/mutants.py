"""Which small faults would the tests notice? Put them in one at a time, and run the tests of the module.

    nice -n 10 python studies/mutants.py [--seed 0] [--share 0.09] [--only search/] [--out runs/mutants.json] [--again]

A fault (see mutations.py) is in the sample where a hash of the seed and its name is small: the same lines give the same
sample, whatever changes around them. It is put into a copy of the package in a temporary folder. The tests of TESTS
run on it, the quickest file first, until one fails: the fault died. One that takes too long, or too much memory, has
died too. Faults that change nothing are listed in mutants.toml, each with the reason, and are not counted.

Python, torch, numba and pytest start once; every mutant runs in a fork of that process, which has not seen whytube.
A mutant of the numba kernel compiles into a cache of its own. `--again` takes from OUT what died before, and runs the
rest: for tests that were added since. The CUDA kernels and the tests in Triton's interpreter are left out: too slow.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a program, Python looks in studies/ alone

from studies.mutations import Mutant, mutants  # noqa: E402

EQUIVALENT = Path(__file__).with_suffix(".toml")
TESTS = {
    "explainer/explainer.py": "explainer",
    "explainer/fit.py": "explainer_fit explainer_places",
    "explainer/gradients.py": "explainer_gradients explainer_values",
    "explainer/objective.py": "explainer_places explainer_objective",
    "explainer/places.py": "explainer_places explainer",
    "explainer/scores.py": "explainer_forms explainer_scores explainer_places explainer_gradients",
    "explainer/values.py": "explainer_gradients explainer_values",
    "search/anytime.py": "search_anytime search_regions",
    "search/grad_cam.py": "search_grad_cam search_regions",
    "search/regions.py": "search_regions",
    "search/response.py": "search_response",
    "search/score.py": "search_score search_verify",
    "search/tracks.py": "search_tracks search_anytime",
    "search/verify.py": "search_verify search_anytime explainer evaluation_judge",
    "evaluation/metrics.py": "evaluation_metrics evaluation_judge",
    "evaluation/judge.py": "evaluation_judge evaluation_transfer",
    "subpath/layer.py": "subpath subpath_transforms subpath_operator",
    "subpath/operator.py": "subpath subpath_transforms subpath_operator",
    "subpath/cpu.py": "subpath",
    "subpath/reference.py": "subpath",
    "search/masked.py": "search_verify search_masked",
    "training/explainer.py": "training_explainer",
}
"""By module: tests/test_NAME.py that concern it."""
WARM = "torch numba numpy scipy hypothesis pytest _pytest.assertion.rewrite safetensors torch.utils.flop_counter"
MEMORY = 8 << 30
TRUSTED = 30.0
"""Seconds of CPU that a test file is thought to take where nobody looked; in TESTS the quickest comes first."""
PLUGINS = ("-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "-W", "ignore:Module already imported")
PYTEST = ("-x", "-q", *PLUGINS, "--hypothesis-profile=ci")
LEFT_OUT = ("-k", "not cuda", "-m", "not slow and not gpu")


class Copy:
    """A copy of the tree in a temporary folder, in which tests run in forks of this process."""

    def __init__(self, root: Path, folder: Path, warm: str) -> None:
        self.root, self.folder, self.package = root, folder, folder / "src" / "whytube"
        leave = shutil.ignore_patterns("__pycache__")
        for part in ("src", "tests"):
            shutil.copytree(root / part, folder / part, copy_function=_copy, ignore=leave)
        for path in root.iterdir():
            if path.name not in ("src", "tests", "runs", ".git") and not path.name.endswith("cache"):
                (folder / path.name).symlink_to(path)
        for name in warm.split():
            importlib.import_module(name)

    def run(self, tests: list[str], *, limit: float, fresh: bool = False, keep: bool = False) -> tuple[str, str]:
        """Run test files; return "passed", "failed" or "too long", and what was printed. limit: seconds of CPU.

        fresh: with an empty cache of numba's. keep: write what is compiled of Python.
        """
        printed = self.folder / "printed.txt"
        cache = Path(tempfile.mkdtemp(dir=self.folder)) if fresh else self.folder / "numba"
        pid = os.fork()
        if pid == 0:
            self._child(tests, int(limit) + 1, printed, cache, keep=keep)
        status = _wait(pid, 20 * limit)  # of the clock: the machine may have much else to do
        if fresh:
            shutil.rmtree(cache)
        text = printed.read_text(errors="replace")
        if os.WIFSIGNALED(status):
            return ("too long" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "failed"), text
        code = os.WEXITSTATUS(status)
        if code > 2:
            raise SystemExit(f"pytest ended with {code}:\n{text}")
        return ("passed" if code == 0 else "failed"), text

    def _child(self, tests: list[str], limit: int, printed: Path, cache: Path, *, keep: bool) -> None:
        import pytest

        code = 99
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            with printed.open("w") as out:
                for number in (1, 2):
                    os.dup2(out.fileno(), number)
            os.chdir(self.folder)
            source = str(self.folder / "src")
            own = {str(tree / part) for tree in (ROOT, self.root) for part in ("", "src", "studies")}
            sys.path[:] = [
                source,
                *(path for path in sys.path if path and path not in own),
            ]
            sys.dont_write_bytecode = not keep
            os.environ |= {"PYTHONPATH": source, "NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
            os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take longer to start than the tests
            os.environ |= {} if keep else {"PYTHONDONTWRITEBYTECODE": "1"}
            if "numba" in sys.modules:  # which has read the environment when it was imported
                sys.modules["numba"].config.CACHE_DIR = str(cache)
            code = int(pytest.main([*PYTEST, *LEFT_OUT, *(f"tests/test_{name}.py" for name in tests)]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def judge(self, mutant: Mutant, tests: list[str], limit: float) -> tuple[str, str]:
        """Run tests on a mutant; the copy is put back after."""
        path = self.package / mutant.file
        kept = path.rename(path.with_suffix(".kept"))  # with its time, by which caches know it
        path.write_text(mutant.source)
        try:
            return self.run(tests, limit=limit, fresh=mutant.file == "subpath/cpu.py")
        finally:
            kept.replace(path)


def _copy(source: str, target: str) -> None:
    """Copy a Python file with its time; link anything else (weights are large)."""
    if source.endswith(".py"):
        shutil.copy2(source, target)
    else:
        Path(target).symlink_to(source)


def _wait(pid: int, seconds: float) -> int:
    """Wait for a process; end it and all that it started after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status
            time.sleep(0.02)
            over = time.monotonic() > end
        except BaseException:  # the run is stopped: leave nothing behind
            _end(pid)
            raise
        if over:
            return _end(pid)


def _end(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def sample(seed: int, share: float, *, only: str = "", root: Path = ROOT) -> list[Mutant]:
    """Choose mutants of the modules in TESTS whose name begins with `only`."""
    chosen = []
    for file in TESTS:
        if file.startswith(only):
            for mutant in mutants(file, (root / "src" / "whytube" / file).read_text()):
                number = hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()[:8]
                if int.from_bytes(number) < share * 2**64:
                    chosen.append(mutant)
    return chosen


def equivalent() -> dict[str, str]:
    """Read the mutants that change nothing: their names, and why."""
    rows = tomllib.loads(EQUIVALENT.read_text())["mutant"] if EQUIVALENT.exists() else []
    return {f"{row['file']} | {row['where']} | {row['before']} -> {row['after']}": row["why"] for row in rows}


def table(rows: list[dict[str, Any]]) -> str:
    """Return counts by module, and the share that died of those that change something."""
    lines = [f"{'module':24s} {'mutants':>8s} {'equivalent':>10s} {'died':>6s} {'lived':>6s} {'died %':>7s}"]
    for file in [*dict.fromkeys(row["file"] for row in rows), "all"]:
        own = [row["end"] for row in rows if file in (row["file"], "all")]
        same, lived = own.count("equivalent"), own.count("lived")
        died = len(own) - same - lived
        share = f"{100 * died / max(1, died + lived):7.1f}"
        lines.append(f"{file:24s} {len(own):8d} {same:10d} {died:6d} {lived:6d} {share}")
    return "\n".join(lines)


def main() -> None:
    """Run, print every survivor and a table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=0.09, help="of all mutants")
    parser.add_argument("--only", default="", help="how the module's name begins, such as search/")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "mutants.json")
    parser.add_argument("--again", action="store_true", help="run those of OUT that lived, and new ones")
    parser.add_argument("--tree", type=Path, default=ROOT, help="whose src/whytube and tests are taken")
    parser.add_argument("--trust", action="store_true", help="the tests pass on the package as it is: do not look")
    parser.add_argument("--warm", default=WARM, help="modules that are imported once")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of what must be cleared away
    known = {row["name"]: row for row in json.loads(options.out.read_text())["mutants"]} if options.again else {}
    origin = _origin(options.seed) | {"share": options.share, "only": options.only}
    same, chosen = equivalent(), sample(options.seed, options.share, only=options.only, root=options.tree)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree, seconds = Copy(options.tree, Path(folder), options.warm), {}
        for number, mutant in enumerate(chosen):
            row = known.get(mutant.name)
            if mutant.name in same:
                row = _row(mutant, "equivalent", same[mutant.name])
            elif row is None or row["end"] in ("lived", "equivalent"):
                tests = TESTS[mutant.file].split()
                for name in tests:
                    if name not in seconds:
                        seconds[name] = TRUSTED if options.trust else _unharmed(tree, name)
                tests.sort(key=seconds.__getitem__)
                start = _cpu()
                end, text = tree.judge(mutant, tests, 20 + 2 * sum(seconds[name] for name in tests))
                row = _row(mutant, {"passed": "lived", "failed": "died"}.get(end, end), _failed(text))
                print(
                    f"{number + 1}/{len(chosen)} {row['end']} {_cpu() - start:.1f} s  {mutant.name}",
                    flush=True,
                )
            rows.append(row)
            known.pop(mutant.name, None)
            _write(options.out, origin, [*rows, *known.values()])  # a run that is stopped can go on
    _write(options.out, origin, rows)
    print("\n".join(f"lived: {row['name']}" for row in rows if row["end"] == "lived"))
    print(table(rows))


def _write(path: Path, origin: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps({"provenance": origin, "mutants": rows}, indent=1) + "\n")


def _row(mutant: Mutant, end: str, why: str) -> dict[str, Any]:
    return {"name": mutant.name, "file": mutant.file, "end": end, "why": why}


def _failed(text: str) -> str:
    """Return the line of pytest's summary that names the test."""
    return next((line.split(" - ")[0] for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))), "")


def _unharmed(tree: Copy, name: str) -> float:
    """Run a test file on the unharmed package, which must pass; return its seconds of CPU."""
    before = _cpu()
    end, text = tree.run([name], limit=600, keep=True)
    if end != "passed":
        raise SystemExit(f"tests/test_{name}.py must pass on the package as it is:\n{text}")
    return _cpu() - before


def _cpu() -> float:
    """Seconds of CPU that processes took which this one has started and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _origin(seed: int) -> dict[str, Any]:
    """Commit, device and versions, asked in another process: this one must not have seen whytube."""
    code = "import json, torch; from whytube.versions import provenance; "
    code += f"print(json.dumps(provenance(torch.device('cpu'), seed={seed})))"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "src", capture_output=True, text=True, check=True)
    return dict(json.loads(said.stdout))


if __name__ == "__main__":
    main()
