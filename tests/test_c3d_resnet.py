import pytest
import torch
from torch import nn
from torch.nn import functional

from whytube.classifiers import C3DResNet
from whytube.classifiers.c3d_resnet import POOLINGS
from whytube.errors import ArgumentError
from whytube.models import build_classifier

CLASSES = [f"class {i}" for i in range(5)]


def tiny(**changes):
    return C3DResNet(CLASSES, **({"width": 1 / 16, "frames": 4, "size": (32, 32)} | changes))


def test_paper_preset_has_nine_convolutions_one_fc_layer_and_two_scales():
    model = build_classifier("c3d-resnet", CLASSES)
    convolutions = [m for m in model.modules() if isinstance(m, nn.Conv3d)]
    assert [m.kernel_size for m in convolutions] == [(3, 3, 3)] * 9
    assert sum(isinstance(m, nn.Linear) for m in model.modules()) == 1
    narrow = build_classifier("c3d-resnet", CLASSES, width=1 / 16)
    (fine, coarse), wide = narrow.map_shapes(), [m.out_channels for m in convolutions]
    assert (16 * fine[0], *fine[1:]) == (256, 16, 14, 14)
    assert (16 * coarse[0], *coarse[1:]) == (512, 16, 7, 7)
    assert (wide[6], wide[8]) == (256, 512)


def test_every_convolution_is_normalised():
    model = tiny()
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm3d)]
    convolutions = [m for m in model.modules() if isinstance(m, nn.Conv3d)]
    assert [m.num_features for m in norms] == [m.out_channels for m in convolutions]
    assert all(m.bias is None for m in convolutions), "the norm has one"


def test_the_maps_are_convolutions_seven_and_nine():
    model, seen = tiny().eval(), []
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm3d)]
    handles = [m.register_forward_hook(lambda m, _, out: seen.append(out)) for m in norms]
    blocks = [m.register_forward_hook(lambda m, given, out: seen.append((given[0], out))) for m in model.blocks]
    maps = model.features(torch.rand(1, 3, 4, 32, 32)).maps
    for handle in (*handles, *blocks):
        handle.remove()
    convolved = [one for one in seen if isinstance(one, torch.Tensor)]
    through = [one for one in seen if isinstance(one, tuple)]
    assert len(convolved) == 9
    for found, place, (given, out) in zip(maps, (6, 8), through[2:], strict=True):
        padded = functional.pad(given, (0, 0) * 3 + (0, convolved[place].shape[1] - given.shape[1]))
        torch.testing.assert_close(found, torch.relu(convolved[place] + padded))
        assert torch.equal(found, out)
    assert convolved[7].shape == convolved[8].shape != convolved[6].shape, "eight and nine share a grid"


def test_time_is_kept_and_maps_are_never_negative():
    model = tiny()
    logits, (fine, coarse) = model.features(torch.rand(2, 3, 4, 32, 32))
    assert logits.shape == (2, 5)
    assert fine.shape == (2, 16, 4, 4, 4)
    assert coarse.shape == (2, 32, 4, 2, 2)
    assert fine.min() >= 0
    assert coarse.min() >= 0


def test_logits_are_the_head_of_the_pooled_last_map():
    model = tiny().eval()
    logits, (_, coarse) = model.features(torch.rand(2, 3, 4, 32, 32))
    torch.testing.assert_close(logits, model.head(coarse.mean((2, 3, 4))))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_fc_layers_have_relu_between_them(layers):
    head = tiny(fc_layers=layers).head
    kinds = [type(part) for part in head]
    assert kinds == [nn.Linear, nn.ReLU] * (layers - 1) + [nn.Linear]
    assert head[-1].out_features == 5


def test_a_shortcut_pads_channels_with_zeros():
    block = tiny().blocks[1].eval()
    nn.init.zeros_(block.norm2.weight)
    x = torch.rand(1, 4, 2, 5, 5)
    y = block(x)
    assert torch.equal(y[:, :4], x)
    assert y[:, 4:].abs().max() == 0
    assert y.shape[1] == 8


@pytest.mark.parametrize("pooling", POOLINGS)
def test_poolings(pooling):
    x = torch.zeros(1, 2, 4, 3, 3)
    x[0, 1, 2, 1, 1] = 9.0
    assert POOLINGS[pooling](x)[0].tolist() == [0.0, {"mean": 0.25, "max": 9 / 4}[pooling]]
    assert tiny(pooling=pooling).settings["pooling"] == pooling


def test_strides_and_pools_decide_the_grid():
    assert [shape[2:] for shape in tiny(stem_stride=2, pools=(1, 2, 1, 2)).map_shapes()] == [(8, 8), (4, 4)]
    assert [shape[2:] for shape in tiny(size=(32, 48)).map_shapes()] == [(4, 6), (2, 3)]


def test_settings_build_the_same_network():
    model = tiny(fc_layers=2, stem_stride=2, pools=(1, 2, 1, 2)).eval()
    twin = C3DResNet(CLASSES, **model.settings).eval()
    twin.load_state_dict(model.state_dict())
    clips = torch.rand(1, 3, 4, 32, 32)
    assert torch.equal(twin(clips), model(clips))
    assert twin.settings == model.settings


def test_gradient_reaches_every_weight():
    model = tiny()
    model(torch.rand(2, 3, 4, 32, 32)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_empty_batch_in_evaluation():
    assert tiny().eval()(torch.rand(0, 3, 4, 32, 32)).shape == (0, 5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0.001}, "`width` must be at least"),
        ({"fc_layers": 4}, "`fc_layers` must be an integer from 1 to 3, got 4"),
        ({"pooling": "sum"}, "`pooling` must be one of 'mean', 'max', got 'sum'"),
        ({"pools": (2, 2)}, "`pools` must be four sides"),
        ({"size": (32,)}, r"`size` must be \(height, width\)"),
        ({"frames": 0}, "`frames` must be an integer of at least 1"),
    ],
)
def test_wrong_settings(changes, message):
    with pytest.raises(ArgumentError, match=message):
        tiny(**changes)


def test_inference_answers_the_same():
    model = build_classifier("c3d-resnet-small", ["a", "b", "c"], size=(32, 32), frames=4).eval()
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, torch.nn.BatchNorm3d)):
            norm.running_mean.normal_(std=0.1)
            norm.running_var.uniform_(0.5, 2.0)
        clips = torch.rand(2, 3, 4, 32, 32)
        plain, fast = model.features(clips), model.for_inference().features(clips)
    torch.testing.assert_close(fast.logits, plain.logits, rtol=1e-4, atol=1e-5)
    for a, b in zip(fast.maps, plain.maps, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert any(isinstance(m, torch.nn.BatchNorm3d) for m in model.modules())
