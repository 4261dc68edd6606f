"""Layers that look beyond a clip; what they do in several processes is in test_training_devices.py."""

import pytest
import torch
from torch.nn import functional

from whytube.training.across import _WholeBatch, whole_batch
from whytube.training.devices import ALONE, Ranks, Share, whole_share

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def test_one_process_runs_its_layers_as_they_are():
    assert not isinstance(whole_batch(ALONE, whole_share(4)), _WholeBatch)
    assert isinstance(whole_batch(Ranks(0, 2), Share(0, 2, 4)), _WholeBatch)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
def test_normalisation_is_that_of_torch(device, dtype, layout):
    """Values, gradients and running statistics, where one process has the whole batch."""
    generator = torch.Generator().manual_seed(0)
    x, wanted = (torch.randn(4, 5, 2, 3, 3, generator=generator).to(device, dtype) for _ in range(2))
    found = []
    for mode in (None, _WholeBatch(ALONE, whole_share(4))):
        norm = torch.nn.BatchNorm3d(5, momentum=0.3).to(device)
        torch.nn.init.uniform_(norm.weight, 0.5, 2.0, generator=torch.Generator(device).manual_seed(1))
        given = (3 * x + 1).contiguous(memory_format=layout).requires_grad_()
        if mode is None:
            out = norm(given)
        else:
            with mode:
                out = norm(given)
        (out * wanted).sum().backward()
        found.append((out, given.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var))
    tolerance = 1e-5 if dtype == torch.float32 else 0.1
    for ours, plain in zip(*reversed(found), strict=True):
        assert ours.dtype == plain.dtype
        torch.testing.assert_close(ours, plain, rtol=tolerance, atol=tolerance)


def test_normalisation_without_weights_or_running_statistics():
    x = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0))
    with _WholeBatch(ALONE, whole_share(4)):
        found = functional.batch_norm(x, None, None, training=True)
    torch.testing.assert_close(found, functional.batch_norm(x, None, None, training=True))


def test_a_trained_norm_is_left_alone_in_evaluation():
    norm = torch.nn.BatchNorm3d(2).eval()
    x = torch.randn(2, 2, 1, 2, 2)
    with _WholeBatch(ALONE, whole_share(2)):
        assert torch.equal(norm(x), x / (1 + norm.eps) ** 0.5)


def dropped(x, share=None, **settings):
    torch.manual_seed(3)
    if share is None:
        return functional.dropout(x, 0.5, **settings)
    with _WholeBatch(ALONE, share):
        return functional.dropout(x, 0.5, **settings)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("transposed", [False, True])
def test_dropout_is_drawn_for_the_whole_batch(device, transposed):
    x = 1 + torch.rand(6, 4, 5, device=device)
    x = x.transpose(1, 2).contiguous().transpose(1, 2) if transposed else x
    whole = dropped(x)
    assert 0 < (whole == 0).sum() < whole.numel()
    torch.testing.assert_close(dropped(x[:2], Share(0, 2, 6)), whole[:2])
    torch.testing.assert_close(dropped(x[2:], Share(2, 6, 6)), whole[2:])


def test_dropout_of_several_rows_for_each_clip():
    x = torch.ones(12, 50)
    assert torch.equal(dropped(x[4:8], Share(1, 2, 3)), dropped(x)[4:8])


def test_dropout_that_cannot_be_shared_or_is_off():
    x = torch.ones(5, 50)
    assert torch.equal(dropped(x, Share(0, 2, 4)), dropped(x)), "rows of no clip"
    assert torch.equal(dropped(x, Share(0, 5, 10), training=False), x)
