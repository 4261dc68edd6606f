"""What both trainings share: batches, the saved state, and the lock on a run's folder."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from toy_explainer import tiny_classifier
from toy_source import Tints
from whytube.errors import ModelError
from whytube.models.stored import load_tensors, save_tensors
from whytube.training import Recipe, fit_classifier, fit_explainer, loop
from whytube.training.loop import Loop, batch_indices

QUICK = Recipe(clips=28, batch_size=4, optimizer="adamw", lr=0.01)

HOLDER = """
import sys
from toy_explainer import tiny_classifier
from toy_source import Tints
from whytube.training import Recipe, fit_classifier

def wait(record):
    print("training", flush=True)
    sys.stdin.read()

recipe = Recipe(clips=8, batch_size=4)
fit_classifier(tiny_classifier(), Tints(), recipe, out_dir=sys.argv[1], report_every=1, progress=wait)
"""


def test_indices_in_rounds():
    taken = [i for step in range(5) for i in batch_indices(step, 4, count=10, seed=0)]
    assert sorted(taken[:10]) == sorted(taken[10:]) == list(range(10))
    assert taken[:10] != taken[10:]
    assert list(batch_indices(3, 4, count=None, seed=0)) == [12, 13, 14, 15]
    assert sorted(batch_indices(0, 5, count=2, seed=0))[1:4] != [0, 0, 0]


@pytest.fixture
def saved_at(monkeypatch):
    """List the steps after which a run is saved."""
    steps = []
    monkeypatch.setattr(Loop, "_save", lambda self, path: steps.append(self.step))
    return steps


def test_a_run_is_saved_every_so_many_records_and_at_its_end(tmp_path, saved_at):
    fit_classifier(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path, report_every=1, save_every=3)
    assert saved_at == [3, 6, 7]


def test_a_slow_run_is_saved_by_the_clock(tmp_path, saved_at, monkeypatch):
    now = 100.0
    monkeypatch.setattr(loop.time, "monotonic", lambda: now)

    def progress(record):
        nonlocal now
        now += loop.SAVE_SECONDS if record.step == 1 else 0

    settings = {"report_every": 1, "save_every": 1000, "progress": progress}
    fit_classifier(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path, **settings)
    assert saved_at == [2, 7], "late at step 2, then the clock starts again"


@pytest.mark.parametrize("kind", ["classifier", "explainer"])
def test_the_form_of_the_saved_state(tmp_path, kind):
    """Files of earlier versions must load, so names and header stay."""
    recipe = replace(QUICK, clips=8)
    if kind == "classifier":
        trained = tiny_classifier()
        history = fit_classifier(trained, Tints(), recipe, out_dir=tmp_path, pretrained="body")
        file, own = "run.safetensors", {"pretrained": "body"}
    else:
        explainer, history = fit_explainer(tiny_classifier(), Tints(), recipe, out_dir=tmp_path)
        trained, file, own = explainer.scores, "explainer_run.safetensors", {"objective": "ours"}
    tensors, header = load_tensors(tmp_path / file, kind="training run")
    weights = {name[6:]: value for name, value in tensors.items() if name.startswith("model.")}
    assert weights.keys() == trained.state_dict().keys()
    learnt = dict(trained.named_parameters())  # running statistics are estimated after the last state is saved
    assert all(torch.equal(weights[name], value) for name, value in learnt.items())
    assert {"optimizer.0.exp_avg", "optimizer.0.exp_avg_sq", "optimizer.0.step"} <= tensors.keys()
    assert header.keys() == {"step", "run", "history"}
    assert (header["step"], header["history"]) == (2, history.to_dict())
    told = {"lr": 0.01, "erase_area": [0.02, 0.25], "architecture": "c3d-resnet", "model's frames": 2}
    told |= {"classes": list(Tints.classes), "attributes": list(Tints.attribute_names)}
    assert header["run"].items() >= (told | own).items()
    assert len(header["run"]["data's fingerprint"]) == 16


def test_a_second_training_is_kept_out_of_the_folder(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command, pipe = [sys.executable, "-c", HOLDER, str(tmp_path / "run")], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as holder:
        try:
            assert holder.stdout.readline() == "training\n"
            message = f"another training is writing to {tmp_path / 'run'}; wait for it or choose another folder"
            for fit in (fit_classifier, fit_explainer):
                with pytest.raises(ModelError) as refusal:
                    fit(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path / "run")
                assert str(refusal.value) == message
            assert not list((tmp_path / "run").glob("*.safetensors")), "the second one wrote nothing"
        finally:
            holder.kill()
    fit_classifier(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path / "run")
    fit_explainer(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path / "run")


def test_the_folder_is_free_again_when_a_training_fails(tmp_path):
    for _ in range(2):
        with pytest.raises(ModelError, match="training diverged"):
            fit_explainer(tiny_classifier(), Tints(), replace(QUICK, lr=1e30, optimizer="sgd"), out_dir=tmp_path)


def test_a_run_from_before_a_field_of_recipes_goes_on(tmp_path):
    """It was one with the field's default; another value is another run."""
    fit_classifier(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path)
    path = tmp_path / "run.safetensors"
    tensors, header = load_tensors(path, kind=loop.KIND)
    del header["run"]["place_copies"]
    save_tensors(path, tensors, header, kind=loop.KIND)
    done = fit_classifier(tiny_classifier(), Tints(), QUICK, out_dir=tmp_path, resume=True)
    assert len(done.records) == len(header["history"]["records"])
    with pytest.raises(ModelError, match="its place_copies is 0, expected 4"):
        fit_classifier(tiny_classifier(), Tints(), replace(QUICK, place_copies=4), out_dir=tmp_path, resume=True)
