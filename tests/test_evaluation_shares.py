"""An evaluation whose clips are shared among processes ends as one process does."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from test_evaluation_state import StopError, command, run
from toy_squares import Squares
from whytube.errors import ArgumentError, ModelError
from whytube.evaluation.state import Share, missing_shares, shares_of, state_path


def shared(path, *shares, **changes):
    return [run(path, share=share, **changes) for share in shares]


def test_shares_together_are_the_whole(tmp_path):
    path = state_path(tmp_path / "results.json")
    parts = shared(path, Share(1, 3), Share(3, 3), Share(2, 3))
    assert [part.provenance["settings"]["share"] for part in parts] == ["1/3", "3/3", "2/3"]
    assert [[clip["index"] for clip in part.methods["centre"].clips] for part in parts] == [[0, 1, 6], [4, 5], [2, 3]]
    assert [file.name for file in shares_of(path)] == [
        f"results.json.share-{i}-of-3.part.safetensors" for i in (1, 2, 3)
    ]
    source = Squares(7)
    source.batch = None  # no clip is looked at again
    whole = run()
    assert run(path, source=source, resume=True).to_dict() == whole.to_dict()


def test_what_shares_left_is_judged(tmp_path):
    """Of three shares one ended early, and one never began; the run that puts them together is stopped, too."""
    path = state_path(tmp_path / "results.json")
    shared(path, Share(2, 3))
    with pytest.raises(StopError):
        run(path, share=Share(1, 3), stop=2)
    source, asked = Squares(7), []
    plain = source.batch
    source.batch = lambda split, indices, device: (asked.extend(indices), plain(split, indices, device))[1]
    with pytest.raises(StopError):
        run(path, source=source, resume=True, stop=6)  # 4 and 5 were left, and 6
    assert run(path, source=source, resume=True).to_dict() == run().to_dict()
    assert asked == [4, 5, 6]


def test_a_share_goes_on(tmp_path):
    path = state_path(tmp_path / "results.json")
    with pytest.raises(StopError):
        run(path, share=Share(1, 2), stop=2)
    found = run(path, share=Share(1, 2), resume=True)
    assert found.to_dict() == run(state_path(tmp_path / "other.json"), share=Share(1, 2)).to_dict()
    assert [clip["index"] for clip in found.methods["centre"].clips] == [0, 1, 4, 5]


def test_shares_of_another_run_are_refused(tmp_path, monkeypatch):
    path = state_path(tmp_path / "results.json")
    shared(path, Share(1, 2))
    with pytest.raises(ModelError, match="its negatives is 3, expected 1"):
        run(path, resume=True, negatives=1)
    shared(path, Share(1, 3))
    with pytest.raises(ModelError, match="holds shares of which some have the same clips"):
        run(path, resume=True)
    monkeypatch.setattr("whytube.evaluation.suite.provenance", lambda *_, **__: {"commit": "other", "device": "cpu"})
    with pytest.raises(ModelError, match=r"its commit is .*, expected 'other'"):
        run(path, resume=True)


def test_a_run_without_shares_and_shares_are_not_mixed(tmp_path):
    path = state_path(tmp_path / "results.json")
    with pytest.raises(StopError):
        run(path, stop=2)
    shared(path, Share(1, 2), Share(2, 2))
    with pytest.raises(ArgumentError, match="and shares of another run lie side by side: remove the one or the others"):
        run(path, resume=True)
    path.unlink()
    assert run(path, resume=True).to_dict() == run().to_dict()


def test_a_share_under_another_name_is_no_whole(tmp_path):
    path = state_path(tmp_path / "results.json")
    shared(path, Share(1, 2))
    shares_of(path)[0].rename(path)
    with pytest.raises(ModelError, match="it is of other clips"):
        run(path, resume=True)


@pytest.mark.parametrize(
    ("share", "told"),
    [
        ((0, 2), "`share` must be an integer from 1 to 2, got 0"),
        ((3, 2), "from 1 to 2, got 3"),
        ((1, 0), "at least 1"),
        ((5, 5), "one of at most 4, as there are 7 clips, 2 at a time, got 5/5"),
    ],
)
def test_a_share_that_cannot_be(tmp_path, share, told):
    with pytest.raises(ArgumentError, match=told):
        run(state_path(tmp_path / "results.json"), share=Share(*share))


def test_a_share_needs_a_place():
    with pytest.raises(ArgumentError, match="`share` must be a `state` to keep what was found in, got none"):
        run(share=Share(1, 2))


def test_the_command_shares_and_puts_together(tmp_path):
    environment = os.environ | {"COLUMNS": "200"}
    how = {"capture_output": True, "text": True, "env": environment}

    def ended(*words, folder=tmp_path):
        return subprocess.run(command(folder, *words, "--count", "7"), **how)

    for share in ("2/2", "1/2"):
        done = ended("--share", share)
        assert done.returncode == 0, done.stderr
        assert "once all 2 shares are, --resume instead of --share writes" in done.stderr
    again = ended("--share", "2/2")
    assert again.returncode == 2
    assert "go on with --resume" in again.stderr
    lost = ended()
    assert lost.returncode == 2, "shares are not thrown away"
    assert "go on with --resume" in lost.stderr
    whole = state_path(tmp_path / "results.json")
    whole.touch()
    mixed = ended("--share", "1/2", "--resume")
    assert mixed.returncode == 2
    assert "is of a run without shares: go on with --resume, or remove it" in mixed.stderr
    whole.unlink()
    assert ended("--share", "two").returncode == 2
    assert not (tmp_path / "results.json").exists()
    together = ended("--resume")
    assert together.returncode == 0, together.stderr
    assert "beginning anew" not in together.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]
    (tmp_path / "whole").mkdir()
    assert ended(folder=tmp_path / "whole").returncode == 0
    found, whole = (json.loads((folder / "results.json").read_text()) for folder in (tmp_path, tmp_path / "whole"))
    assert found == whole


def test_shares_without_a_file_are_told():
    def files(*names):
        return [Path(f"results.share-9.json.share-{name}.part.safetensors") for name in names]

    assert missing_shares(files("1-of-2", "2-of-2")) == []
    assert list(map(str, missing_shares(files("2-of-3")))) == ["1/3", "3/3"]
    assert missing_shares(files("1-of-1", "1-of-1 (copy)", "x-of-2")) == [], "files that somebody else named"


def test_a_damaged_share_is_refused(tmp_path):
    path = state_path(tmp_path / "results.json")
    shared(path, Share(1, 2), Share(2, 2))
    first, second = shares_of(path)
    shutil.copy(first, second)
    with pytest.raises(ModelError, match="some have the same clips"):
        run(path, resume=True)
    second.write_bytes(first.read_bytes()[:-100])
    with pytest.raises(ModelError, match="damaged, cut off"):
        run(path, resume=True)
