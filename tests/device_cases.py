"""Trainings that one process and several must end alike.

As a program: torchrun ... device_cases.py FOLDER DEVICE CASE ...
DEVICE may end in +join (a process alone forms a group, too) and +gloo (on a GPU, which several may then share).
"""

import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path
from unittest import mock

import torch

from toy_explainer import tiny_classifier
from toy_source import Tints
from toy_squares import Adder, Squares
from whytube.classifiers import I3D, C3DResNet
from whytube.models.stored import save_tensors
from whytube.training import Recipe, fit_classifier, fit_explainer
from whytube.training.devices import ALONE, together
from whytube.training.response import CLIPS, TUBES

KIND = "result of a test"
CHANGES = {"erase": 0.6, "flip": 0.5, "crop": 0.5, "span": 0.5, "light": 0.2}
# Seven clips: the shares of two processes are unequal.
QUICK = Recipe(clips=42, batch_size=7, lr=0.01, **CHANGES)


def tiny():
    torch.manual_seed(0)
    return C3DResNet(Tints.classes, width=1 / 16, frames=2, size=(16, 16), stem_stride=2, pools=(1, 2, 1, 2))


def fitted(ranks, folder, device, recipe=QUICK, model=None, source=None, **settings):
    model, settings = model or tiny(), {"report_every": 1, "validate": 9, "save_every": 2} | settings
    return model, fit_classifier(
        model, source or Tints(30), recipe, device=device, out_dir=folder, ranks=ranks, **settings
    )


def changed_clips(ranks, folder, device):
    """Also keep the state of step 4, in `half`."""

    def keep(record):
        if record.step == 4:
            (folder / "half").mkdir()
            shutil.copy(folder / "run.safetensors", folder / "half")

    return fitted(ranks, folder, device, progress=keep)


def mixed_and_kept(ranks, folder, device):
    return fitted(
        ranks, folder, device, replace(QUICK, mix=0.4, distinct=20, label_smoothing=0.1, optimizer="adamw", lr=0.001)
    )


def in_bfloat16(ranks, folder, device):
    """Of a GPU; elsewhere in float32."""
    return fitted(ranks, folder, device, replace(QUICK, precision="bfloat16", label_smoothing=0.1))


def with_dropout(ranks, folder, device):
    torch.manual_seed(0)
    model = I3D(Tints.classes, frames=2, size=(32, 32), dropout=0.5)
    recipe = replace(QUICK, clips=14, freeze="Mixed_5c", lr=0.1)
    return fitted(ranks, folder, device, recipe, model, Tints(14, size=32), validate=0)


def fitted_explainer(ranks, folder, device, objective, **changes):
    recipe = replace(Recipe(clips=35, batch_size=7, lr=0.01), **changes)
    given = {"device": device, "out_dir": folder, "report_every": 1, "ranks": ranks}
    explainer, history = fit_explainer(tiny_classifier(), Tints(30), recipe, objective=objective, **given)
    trained = torch.nn.ModuleList([explainer.scores])
    return trained if explainer.response is None else trained.append(explainer.response), history


def response(ranks, folder, device):
    return fitted_explainer(ranks, folder, device, "ours", masked_runs=3 * CLIPS * TUBES, optimizer="adamw")


def more_processes_than_clips(ranks, folder, device):
    """Of the response, whose batches are of a fixed size."""
    with mock.patch("whytube.training.response.CLIPS", 1):
        return fitted_explainer(ranks, folder, device, "ours", masked_runs=3 * TUBES)


def class_bias(ranks, folder, device):
    return fitted_explainer(ranks, folder, device, "paper")


def some_negatives(ranks, folder, device):
    """Drawn for the whole batch; clips come again, so that features are kept."""
    return fitted_explainer(ranks, folder, device, "paper", negatives=2, clips=84)


def both_terms(ranks, folder, device):
    return fitted_explainer(ranks, folder, device, "ours+class", optimizer="adamw")


class Boxed(Squares):
    def boxed(self, split):
        return range(self.number)


def places(ranks, folder, device):
    recipe = Recipe(clips=20, batch_size=5, lr=0.01, optimizer="adamw", place_steps=10)
    explainer, history = fit_explainer(
        Adder(), Boxed(24), recipe, device=device, out_dir=folder, report_every=1, ranks=ranks
    )
    assert explainer.fit is not None
    return explainer.scores, history


def resumed(ranks, folder, device):
    return fitted(ranks, folder, device, resume=True)


CASES = {
    case.__name__: case
    for case in (
        changed_clips,
        mixed_and_kept,
        in_bfloat16,
        with_dropout,
        response,
        more_processes_than_clips,
        class_bias,
        some_negatives,
        both_terms,
        places,
        resumed,
    )
}


def ended(case, ranks, folder, device):
    """Where a training ends: its weights, and the curve."""
    module, history = CASES[case](ranks, folder, device)
    rows = [[r["loss"], r["accuracy"], r["lr"], r["val_accuracy"] or 0.0] for r in map(asdict, history.records)]
    return {name: value.cpu().clone() for name, value in module.state_dict().items()} | {
        "curve": torch.tensor(rows, dtype=torch.float64)
    }


def alone(case, folder, device="cpu"):
    """Train in this process."""
    return ended(case, ALONE, folder, device)


def main():
    torch.set_num_threads(1)
    folder, device, *cases = sys.argv[1:]
    device, *how = device.split("+")
    with together(device, join="join" in how, backend="gloo" if "gloo" in how else None) as (ranks, where):
        assert ranks.talks
        for case in cases:
            found = ended(case, ranks, Path(folder) / case, where)
            save_tensors(Path(folder) / f"{case}-{ranks.rank}.safetensors", found, {}, kind=KIND)


if __name__ == "__main__":
    main()
