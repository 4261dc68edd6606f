"""An evaluation that was interrupted goes on, and ends with exactly the results of one that was not."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from toy_squares import WORDS, Adder, Knowing, Squares
from whytube.errors import ModelError
from whytube.evaluation import evaluate
from whytube.evaluation import state as states
from whytube.evaluation.methods import (
    MAKERS,
    Centre,
    MapMethod,
    RandomAttribute,
    RandomTube,
    RandomVerified,
    ShuffledAttributes,
    TrueBox,
)
from whytube.evaluation.state import State, Tally, method_fingerprint, state_path
from whytube.models.stored import load_tensors, save_tensors


class StopError(Exception):
    pass


def methods():
    table = Squares.table
    return [Centre(WORDS), TrueBox(), RandomTube(table, like=Knowing()), ShuffledAttributes(Knowing(), len(WORDS))]


def run(path=None, *, stop=None, **changes):
    """Evaluate seven clips, two at a time; stop after so many of them."""

    def progress(done, total):
        if done == stop:
            raise StopError

    settings = {"batch_size": 2, "fills": ("zero", "mean"), "clips": True, "state": path, "progress": progress}
    asked = changes.pop("methods", methods())
    return evaluate(asked, changes.pop("classifier", Adder()), changes.pop("source", Squares(7)), **settings | changes)


@pytest.mark.parametrize("stop", [2, 4, 6])
def test_it_goes_on_exactly_where_it_was(tmp_path, stop):
    path = tmp_path / "state.safetensors"
    with pytest.raises(StopError):
        run(path, stop=stop)
    source, asked = Squares(7), []
    plain = source.batch
    source.batch = lambda split, indices, device: (asked.extend(indices), plain(split, indices, device))[1]
    found = run(path, source=source, resume=True)
    assert asked == list(range(stop, 7)), "no clip is looked at again"
    assert found.to_dict() == run().to_dict()
    assert found.methods["centre"].clips[0]["index"] == 0


def test_it_goes_on_with_every_option(tmp_path):
    path, model, other = tmp_path / "state.safetensors", Adder(), Adder()
    torch.nn.init.constant_(other.scale, 0.5)
    asked = [MapMethod(model, MAKERS["grad-cam"], Squares.table), RandomVerified(model, Squares.table), *methods()]
    options = {"k": 2, "curves": True, "area": 0.05, "judge_with": other, "classifier": model, "methods": asked}
    with pytest.raises(StopError):
        run(path, stop=4, **options)
    whole = run(**options)
    assert run(path, resume=True, **options).to_dict() == whole.to_dict()
    assert whole.comparisons["grad-cam"]["random-verified"]["positive_drop"].p <= 1
    with pytest.raises(ModelError, match="its other network is"):
        run(path, resume=True, **options | {"judge_with": Adder()})
    with pytest.raises(ModelError, match="its area is"):
        run(path, resume=True, **options | {"area": 0.06})


def test_without_a_state_it_begins(tmp_path):
    assert run(tmp_path / "none.safetensors", resume=True).to_dict() == run().to_dict()


def test_an_interruption_inside_a_batch_leaves_whole_batches(tmp_path):
    path = tmp_path / "state.safetensors"

    class Failing(Centre):
        name = "failing"
        asked = 0

        def __call__(self, question, k):
            type(self).asked += 1
            if type(self).asked == 3:
                raise KeyboardInterrupt
            return super().__call__(question, k)

    asked = [Centre(WORDS), Failing(WORDS, name="failing")]
    with pytest.raises(KeyboardInterrupt):
        run(path, methods=asked)
    assert load_tensors(path, kind="evaluation")[1]["done"] == 4
    assert run(path, methods=asked, resume=True).to_dict() == run(methods=asked).to_dict()


def test_tallies_of_unequal_length_are_cut(tmp_path):
    path = tmp_path / "state.safetensors"
    same = {"clips": 4, "negatives": 1, "k": 1}
    kept = State({"a": Tally(), "b": Tally()}, same, range(4), path)
    figures = {"answered": torch.tensor([[[1.0]], [[float("nan")]]])}
    for tally in kept.tallies.values():
        tally.add(figures, [{"index": 0}, {"index": 1}])
    kept.add(torch.tensor([True, False]), torch.tensor([True, True]), 24.0)
    kept.tallies["a"].add(figures, [{"index": 2}, {"index": 3}])
    kept.save(now=True)
    back = State({"a": Tally(), "b": Tally()}, same, range(4), path)
    back.load()
    assert back.done == 2
    assert back.judging_clips == 24
    for tally in back.tallies.values():
        assert tally.records == [{"index": 0}, {"index": 1}]
        assert torch.equal(tally.whole()["answered"], figures["answered"].double()) is False, "NaN is not itself"
        assert tally.whole()["answered"].isnan().flatten().tolist() == [False, True]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"fills": ("zero",)}, "its fills is"),
        ({"negatives": 1}, "its negatives is 3, expected 1"),
        ({"batch_size": 4}, "its batch_size is 2, expected 4"),
        ({"source": Squares(6)}, "its clips is 7, expected 6"),
        ({"methods": [*methods()[:3], ShuffledAttributes(Knowing(), len(WORDS), seed=1)]}, "its methods is"),
        ({"methods": methods()[:3]}, "its methods is"),
    ],
)
def test_what_is_of_another_evaluation_is_refused(tmp_path, change, told):
    path = tmp_path / "state.safetensors"
    with pytest.raises(StopError):
        run(path, stop=4)
    with pytest.raises(ModelError, match=rf"cannot resume .*{told}"):
        run(path, resume=True, **change)
    other = Adder()
    torch.nn.init.constant_(other.scale, 2.0)
    with pytest.raises(ModelError, match="its classifier is"):
        run(path, resume=True, classifier=other)


def test_a_damaged_state_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    with pytest.raises(StopError):
        run(path, stop=4)
    whole = path.read_bytes()
    tensors, header = load_tensors(path, kind="evaluation")
    path.write_bytes(whole[:-40])
    with pytest.raises(ModelError, match="damaged, cut off"):
        run(path, resume=True)
    missing = {name: values for name, values in tensors.items() if name != "1.answered"}
    cut = {name: values[:2] for name, values in tensors.items()}
    for broken, says in (
        ((missing, header), "figures are missing"),
        ((cut, header), "not as many figures as clips"),
        ((tensors, header | {"records": []}), "it is damaged"),
        ((tensors, header | {"done": "many"}), "it is damaged"),
        (({"clips": tensors["clips"], "9.answered": tensors["clips"]}, header), "it is damaged"),
        ((tensors, header | {"run": 3}), "`run` must be an object"),
        ((tensors, header | {"records": [["x"]] * 4}), r"`records\[0\]\[0\]` must be an object"),
        ((tensors | {"0.answered": tensors["0.answered"].repeat(1, 2, 1)}, header), "not as many figures as clips"),
    ):
        save_tensors(path, *broken, kind="evaluation")
        with pytest.raises(ModelError, match=says):
            run(path, resume=True)


def test_it_is_written_by_the_clock(tmp_path, monkeypatch):
    written, now = [], 100.0
    monkeypatch.setattr(states.time, "monotonic", lambda: now)
    monkeypatch.setattr(states, "save_tensors", lambda path, tensors, header, kind: written.append(header["done"]))

    def progress(done, total):
        nonlocal now
        now += states.SAVE_SECONDS if done == 4 else 0

    run(tmp_path / "state.safetensors", batch_size=1, progress=progress)
    assert written == [1, 5]


def test_fingerprints_tell_weights_and_settings_apart():
    one = RandomAttribute(Knowing(), Squares.table)
    assert method_fingerprint(one) == method_fingerprint(RandomAttribute(Knowing(), Squares.table.clone()))
    other = Squares.table.clone()
    other[0, 0] = ~other[0, 0]
    changed = (replace(one, seed=1), replace(one, present=True), replace(one, table=other), Centre(WORDS))
    assert len({method_fingerprint(method) for method in (one, *changed)}) == 5


def command(folder, *words):
    out = folder / "results.json"
    words = ("--peers", "centre", "--count", "24", "--fills", "mean", "--device", "cpu", "--out", str(out), *words)
    return [sys.executable, "-m", "whytube", "evaluate", "--effort", "1", *words]


def test_the_command_goes_on_after_ctrl_c_and_keeps_what_it_has(tmp_path):
    out = tmp_path / "results.json"
    state = state_path(out)
    environment = os.environ | {"COLUMNS": "200"}
    piped = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(command(tmp_path), **piped) as going:
        limit = time.monotonic() + 120
        while not state.exists() and going.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
        going.send_signal(signal.SIGINT)
        _, said = going.communicate(timeout=120)
    assert said.endswith("interrupted; --resume goes on from the last saved state\n")
    assert state.exists()
    assert not out.exists()
    refused = subprocess.run(command(tmp_path), capture_output=True, text=True, env=environment)
    assert refused.returncode == 2
    assert "go on with --resume" in refused.stderr
    resumed = subprocess.run(command(tmp_path, "--resume"), capture_output=True, text=True, env=environment)
    assert resumed.returncode == 0, resumed.stderr
    assert not state.exists()
    (tmp_path / "whole").mkdir()
    whole = subprocess.run(command(tmp_path / "whole", "--json"), capture_output=True, text=True, env=environment)
    assert whole.returncode == 0, whole.stderr
    assert "evaluating: 24 clips of world, 3 negatives of each, 2 methods, regions masked with mean" in whole.stderr
    assert json.loads(out.read_text()) == json.loads(whole.stdout)
    assert [file.name for file in (tmp_path / "whole").iterdir()] == ["results.json"]


def test_resuming_needs_the_name_of_the_results(tmp_path):
    words = [sys.executable, "-m", "whytube", "evaluate", "--resume"]
    refused = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--resume needs --out" in refused.stderr
