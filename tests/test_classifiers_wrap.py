"""Networks of other people as classifiers: what is found in them, and that they stay as they were."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from toy_networks import CLASSES, Frames, Tokens, conv_net, made_clip
from toy_source import Tints
from whytube import explain, wrap
from whytube.errors import ArgumentError, ModelError
from whytube.models import load_explainer, save_classifier, save_explainer
from whytube.search.grad_cam import contrastive_maps
from whytube.training.explainer import fit_explainer
from whytube.training.recipe import Recipe

SMALL = {"classes": CLASSES, "frames": 4, "size": (16, 24)}


def clips(model, batch=2):
    return torch.rand(batch, 3, model.frames, *model.size, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("network", "layers", "shapes"),
    [
        (conv_net(), ("0", "1"), ((8, 4, 13, 18), (12, 4, 7, 9))),
        (Frames(), ("conv",), ((6, 9, 12, 17),)),
        (Tokens(class_token=False, read="mean"), ("layers.1", "layers.2"), ((8, 4, 12, 17),) * 2),
        (Tokens(), ("layers.0", "layers.1"), ((8, 4, 12, 17),) * 2),
    ],
    ids=["convolutions", "frames", "tokens", "class token"],
)
def test_layers_are_found_at_odd_sizes_and_explained(network, layers, shapes):
    model = wrap(network, classes=CLASSES, frames=9, size=(50, 70)).eval()
    assert model.layers == layers
    assert model.map_shapes() == shapes
    shown = clips(model)
    features = model.features(shown)
    torch.testing.assert_close(features.logits, model(shown))
    explanation = explain(made_clip(model), model, k=3)
    assert 1 <= len(explanation.reasons) <= 3
    assert all(reason.attribute == "" and len(reason.evidence) == 3 for reason in explanation.reasons)


def test_maps_are_what_the_layer_gave_whatever_happens_to_it_later():
    network = nn.Sequential(nn.Conv3d(3, 4, 4, stride=4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(96, 3)).eval()
    model = wrap(network, classes=CLASSES, layers=["0"], frames=4, size=(16, 24), mean=(0.4, 0.5, 0.6), std=(0.2,) * 3)
    shown = clips(model)
    plain = (shown - torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1, 1)) / 0.2
    features = model.features(shown)
    torch.testing.assert_close(features.maps[0], network[0](plain))
    assert (features.maps[0] < 0).any()
    torch.testing.assert_close(features.logits, network(plain))


@pytest.mark.parametrize("class_token", [True, False])
def test_gradients_reach_the_maps(class_token):
    network = Tokens(class_token=class_token, read="mean").eval()
    model = wrap(network, **SMALL)
    shown = clips(model)
    logits, maps = model.features(shown)
    (slope,) = torch.autograd.grad(logits[:, 0].sum(), maps[-1])
    # The mean over N tokens and one fc layer: every cell has the class's weights over N as its slope.
    tokens = maps[-1][0, 0].numel() + class_token
    expected = network.head.weight[0].view(1, -1, 1, 1, 1) / tokens
    torch.testing.assert_close(slope, expected.expand_as(slope))


def test_a_block_whose_cells_are_not_read_is_left_for_an_earlier_one():
    model = wrap(Tokens(), **SMALL, layers=["layers.1", "layers.2"]).eval()
    shown = clips(model, 1)
    found = contrastive_maps(model, shown, torch.tensor([0]), torch.tensor([[1]]))
    earlier = wrap(model.model, **SMALL, layers=["layers.1"])
    assert torch.equal(found, contrastive_maps(earlier, shown, torch.tensor([0]), torch.tensor([[1]])))
    with pytest.raises(ModelError, match="no gradient of the logits reaches the classifier's maps"):
        contrastive_maps(wrap(model.model, **SMALL, layers=["layers.2"]), shown, torch.tensor([0]), torch.tensor([[1]]))


def test_layouts_can_be_said():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = nn.Conv3d(3, 5, 4, stride=4), nn.Linear(5, 3)
            self.norm = nn.LayerNorm(5)

        def forward(self, frames):
            return self.head(self.norm(self.conv(frames.transpose(1, 2)).permute(0, 2, 3, 4, 1)).mean((1, 2, 3)))

    model = wrap(Last(), **SMALL, input_layout="TCHW", feature_layout="THWC")
    assert model.layers == ("norm",)
    assert model.map_shapes() == ((5, 1, 4, 6),)
    doubled = wrap(Last(), **SMALL, preprocess=lambda x: (2 * x - 1).transpose(1, 2), layers=["conv"])
    assert doubled.map_shapes() == ((5, 1, 4, 6),)
    said_twice = wrap(doubled.model, **SMALL, preprocess=doubled.preprocess, input_layout="TCHW", layers=["conv"])
    torch.testing.assert_close(said_twice(clips(doubled)), doubled(clips(doubled)), msg="`preprocess` lays clips out")
    with_logits = wrap(Tokens(), **SMALL, logits=lambda output: output[0].flip(1))
    shown = clips(with_logits)
    torch.testing.assert_close(with_logits.eval()(shown).flip(1), wrap(with_logits.model, **SMALL)(shown))


def test_half_precision():
    model = wrap(conv_net().to(torch.bfloat16), **SMALL).eval()
    features = model.features(clips(model))
    assert {t.dtype for t in (features.logits, *features.maps)} == {torch.float32}
    assert explain(made_clip(model), model).reasons


class Trouble(nn.Module):
    """Stands in a network and does what it is told."""

    def __init__(self):
        super().__init__()
        self.does = "nothing"

    def forward(self, x):
        if self.does == "raise":
            raise RuntimeError("out of order")
        if self.does == "interrupt":
            raise KeyboardInterrupt
        if self.does == "shrink":
            return x[..., :-1]
        return (None,) if self.does == "nothing at all" else x


def state(network):
    """Everything that must be the same afterwards."""
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in network.modules()]
    modes = [m.training for m in network.modules()]
    grads = [(p.requires_grad, None if p.grad is None else p.grad.clone()) for p in network.parameters()]
    return hooks, modes, [g[0] for g in grads], [g[1] is None or float(g[1].sum()) for g in grads]


@pytest.mark.parametrize(
    ("does", "error"),
    [
        ("nothing", None),
        ("raise", RuntimeError),
        ("interrupt", KeyboardInterrupt),
        ("shrink", ModelError),
        ("nothing at all", ModelError),
    ],
)
def test_nothing_stays_behind(does, error):
    trouble, network = Trouble(), conv_net()
    network.insert(2, trouble)
    network[0][1].eval()
    network[4].requires_grad_(False)
    network[5].weight.grad = torch.ones_like(network[5].weight)
    model = wrap(network, **SMALL, layers=["0", "2"])
    before, weights = state(network), copy.deepcopy(network.state_dict())
    trouble.does = does
    for call in (lambda: explain(made_clip(model), model), lambda: model.features(clips(model))):
        if error is None:
            with torch.no_grad():
                explain(made_clip(model), model)
        else:
            with pytest.raises(error):
                call()
        assert state(network) == before
    assert all(torch.equal(value, weights[name]) for name, value in network.state_dict().items())


def test_wrapping_leaves_the_network_as_it_was_also_when_it_fails():
    network = conv_net()
    before = state(network)
    wrap(network, **SMALL)
    with pytest.raises(ArgumentError, match="the model cannot run on a clip of 1 frames of 1 x 1"):
        wrap(network, classes=CLASSES, frames=1, size=(1, 1))
    with pytest.raises(ModelError, match=r"logits of shape \(1, 2\), got shape \(1, 3\)"):
        wrap(network, classes=("a", "b"), frames=4, size=(16, 24))
    assert state(network) == before


def test_threads_do_not_see_each_others_features():
    network, start = conv_net().eval(), threading.Barrier(4)
    models = [wrap(network, **SMALL) for _ in range(2)] * 2
    shown = [torch.rand(1, 3, 4, 16, 24, generator=torch.Generator().manual_seed(i)) for i in range(4)]
    alone = [model.features(clip) for model, clip in zip(models, shown, strict=True)]

    def ask(i):
        start.wait()
        return [models[i].features(shown[i]) for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        for i, answers in enumerate(pool.map(ask, range(4))):
            for answer in answers:
                torch.testing.assert_close(answer.logits, alone[i].logits)
                for found, expected in zip(answer.maps, alone[i].maps, strict=True):
                    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": ["00"]}, "unknown layer '00'"),
        ({"layers": [nn.Identity()]}, "modules of the model or their names, got a Identity elsewhere"),
        ({"layers": []}, "`layers` must be at least one layer"),
        ({"layers": ["4"]}, r"layer '4' gave \(1, 3\) for one clip, which is no map"),
        ({"input_layout": "THWC"}, "`input_layout` must be one of 'CTHW', 'TCHW', got 'THWC'"),
        ({"feature_layout": "CHWT"}, "`feature_layout` must be one of"),
        ({"grid": (2, 4)}, r"`grid` must be \(T, H, W\) in cells"),
        ({"std": (1, 0, 1)}, "`std` must be three numbers"),
        ({"preprocess": torch.neg, "mean": (0.5,) * 3}, "either `preprocess` or `mean` and `std`"),
        ({"feature_layout": "(THW)C"}, "no layer of Sequential gives a map .* Outputs for one clip: .*4 \\(1, 3\\)"),
    ],
)
def test_what_cannot_be_wrapped(changes, message):
    with pytest.raises(ArgumentError, match=message):
        wrap(conv_net(), **SMALL | changes)


def test_a_size_may_be_one_number():
    model = wrap(conv_net(), classes=CLASSES, frames=4, size=32)
    assert model.size == (32, 32)
    with pytest.raises(ArgumentError, match=r"`size` must be \(height, width\), got 'large'"):
        wrap(conv_net(), classes=CLASSES, frames=4, size="large")
    with pytest.raises(ArgumentError, match=r"`size\[0\]` must be an integer of at least 1, got 0"):
        wrap(conv_net(), classes=CLASSES, frames=4, size=0)


def test_layers_that_run_twice_are_refused():
    shared = nn.ReLU()
    network = nn.Sequential(nn.Conv3d(3, 4, 4, 4), shared, nn.Conv3d(4, 4, 1), shared, nn.Flatten(), nn.Linear(96, 3))
    with pytest.raises(ArgumentError, match="layer '1' ran 2 times for one clip"):
        wrap(network, **SMALL, layers=[shared])
    assert wrap(network, **SMALL).layers == ("2",)


def test_a_wrapped_classifier_is_neither_wrapped_again_nor_saved(tmp_path):
    model = wrap(conv_net(), **SMALL)
    with pytest.raises(ArgumentError, match="no VideoClassifier yet, got WrappedClassifier"):
        wrap(model, **SMALL)
    with pytest.raises(ArgumentError, match=r"see whytube\.wrap, got a bare Sequential"):
        explain(made_clip(model), model.model)
    with pytest.raises(ModelError, match="cannot save a classifier of architecture 'wrapped'"):
        save_classifier(tmp_path / "c.safetensors", model, provenance={})
    assert not list(tmp_path.iterdir())


def test_words_are_learned_for_a_wrapped_network_and_kept(tmp_path):
    model = wrap(conv_net(), classes=Tints.classes, frames=2, size=(16, 16)).eval()
    recipe = Recipe(clips=24, batch_size=6, optimizer="adamw", lr=1e-2)
    explainer, _ = fit_explainer(model, Tints(24), recipe, out_dir=tmp_path)
    loaded = load_explainer(tmp_path / "explainer.safetensors", model)
    first, second = (explain(made_clip(model), e).to_dict() | {"timings": None} for e in (explainer, loaded))
    assert first == second
    others = {
        "other weights": wrap(conv_net(seed=1), classes=Tints.classes, frames=2, size=(16, 16)),
        "other layers": wrap(model.model, classes=Tints.classes, frames=2, size=(16, 16), layers=["0", "1.0"]),
    }
    for other in others.values():
        with pytest.raises(ModelError, match="it was trained for another classifier"):
            load_explainer(tmp_path / "explainer.safetensors", other)
    save_explainer(tmp_path / "again.safetensors", loaded, provenance={})
