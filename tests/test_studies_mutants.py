import json
import subprocess
import sys
from pathlib import Path

from studies.mutants import equivalent, sample, table
from studies.mutations import mutants

STUDIES = Path(__file__).parent.parent / "studies"

MODULE = '''
"""Not + this."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    LENGTH = 1 + 1

def area(low: "a + b", high: int, *, margin: float = 0.5) -> float:
    assert low < high
    if not low <= high:
        raise ValueError(f"{1 + 1}")
    side = max(low, high) - min(high, low)
    side = side + margin
    return area(side, side, margin=margin) if side > 9 else sides[1:]
'''


TEST = """
from whytube.search.score import larger

def test_it():
    assert larger(1, 2) == 2
"""


def changes(text):
    return [(mutant.before, mutant.after) for mutant in mutants("a.py", text)]


def test_every_mutant_is_one_small_fault_that_compiles():
    found = mutants("a.py", MODULE)
    assert len({mutant.source for mutant in found}) == len(found) > 20
    for mutant in found:
        compile(mutant.source, "a.py", "exec")
        assert mutant.where == "area"
        assert mutant.after == "pass" or "1 + 1" not in mutant.before
        assert "assert" not in mutant.before
    assert [mutant.name for mutant in mutants("a.py", MODULE)] == [mutant.name for mutant in found]


def test_the_faults():
    found = changes(MODULE)
    side = "side = max(low, high) - min(high, low)"
    for change in (
        ("if not low <= high:", "if not low < high:"),
        ("if not low <= high:", "if not not low <= high:"),
        (side, "side = max(low, high) + min(high, low)"),
        (side, "side = max(low, high) - max(high, low)"),
        (side, "side = max(low, low) - min(high, low)"),
        ("side = side + margin", "pass"),
    ):
        assert change in found
    last = "return area(side, side, margin=margin) if side > 9 else sides[1:]"
    for part, other in (("> 9", ">= 9"), ("> 9", "> 10"), (", margin=margin", ""), ("[1:]", "[:]"), ("[1:]", "[2:]")):
        assert (last, last.replace(part, other)) in found
    assert ("x = where(a, b, c)", "x = where(a, c, b)") in changes("x = where(a, b, c)")
    assert changes("x = gather(a, 'rows')") == []
    assert changes("x = not a.any() or ~b") == [
        ("x = not a.any() or ~b", after)
        for after in (
            "x = not a.any() and ~b",
            "x = not not a.any() or ~b",
            "x = not a.all() or ~b",
            "x = not a.any() or ~~b",
        )
    ]


def test_a_larger_sample_holds_the_smaller_one():
    few, many, other = (
        {mutant.name for mutant in sample(seed, share, only="search/score")}
        for seed, share in ((0, 0.2), (0, 0.5), (1, 0.2))
    )
    assert 0 < len(few) < len(many)
    assert few < many
    assert few != other


def test_mutants_that_change_nothing_still_exist():
    """Those listed stand in the code as it is, each with a reason."""
    known = equivalent()
    assert all(len(why.split()) > 3 for why in known.values())
    files = {name.split(" | ")[0] for name in known}
    every = {mutant.name for file in files for mutant in sample(0, 1, only=file)}
    assert set(known) <= every


def test_the_program_says_what_died(tmp_path):
    for name, text in {
        "src/whytube/__init__.py": "",
        "src/whytube/search/__init__.py": "",
        "src/whytube/search/score.py": "def larger(a, b):\n    return a if a > b else b\n",
        "tests/test_search_score.py": TEST,
        "tests/test_search_verify.py": "def test_nothing():\n    assert True\n",
    }.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    out = tmp_path / "out.json"
    words = ["--tree", tmp_path / "tree", "--only", "search/score", "--share", "1", "--out", out, "--warm", "pytest"]
    subprocess.run([sys.executable, STUDIES / "mutants.py", *words], check=True, capture_output=True)
    said = json.loads(out.read_text())
    ends = {row["name"].split("-> ")[1]: row["end"] for row in said["mutants"]}
    assert ends["return a if a <= b else b"] == "died"
    assert ends["return a if a >= b else b"] == "lived"
    assert said["provenance"]["seed"] == 0
    died = [row["why"] for row in said["mutants"] if row["end"] == "died"]
    assert died == ["FAILED tests/test_search_score.py::test_it"] * len(died)
    assert table(said["mutants"]).splitlines()[-1].split()[0] == "all"
    assert (tmp_path / "tree/src/whytube/search/score.py").read_text().endswith("a if a > b else b\n")
