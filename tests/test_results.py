"""Files under results/ say which commit they are of, and the history has it or results/README.md says why not."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "results").glob("*.json"))
COMMIT = re.compile(r"[0-9a-f]{12}")


def commits(found):
    """Every commit that a file names, a study of several runs more than one."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "commit":
                yield from value if isinstance(value, list) else [value]
            else:
                yield from commits(value)
    elif isinstance(found, list):
        for value in found:
            yield from commits(value)


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_of_which_clean_commit_it_is(path):
    named = set(commits(json.loads(path.read_text(encoding="utf-8"))))
    assert named, "no commit"
    assert all(COMMIT.fullmatch(commit) for commit in named), named


def test_commits_are_in_the_history_or_told():
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("no whole history here")
    told = set(COMMIT.findall((ROOT / "results" / "README.md").read_text(encoding="utf-8")))
    named = {commit for path in FILES for commit in commits(json.loads(path.read_text(encoding="utf-8")))}
    missing = {commit for commit in named if git("merge-base", "--is-ancestor", commit, "HEAD").returncode}
    assert missing == told
