import pytest
import torch
from torch.nn.functional import conv3d, max_pool3d

from subpath_kernels import DEVICE, HAS_TRITON
from whytube.classifiers.blocks import same_padding
from whytube.classifiers.i3d import I3D, POOLS
from whytube.classifiers.inference import (
    convolve,
    convolve_cells,
    convolve_relu,
    max_pool,
    pad,
    pool_along,
    pool_frames,
    space,
)

NONE = [(0, 0)] * 3
UNEQUAL = [(0, 1), (1, 0), (2, 3)]


def drawn(*shape, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


def test_pads_stand_at_their_sides():
    x = pad(torch.ones(1, 1, 4, 5, 6), same_padding((4, 5, 6), (3, 3, 1), (2, 2, 1)))
    assert x.shape == (1, 1, 5, 7, 6)
    assert x[0, 0, :, 3, 0].tolist() == [1, 1, 1, 1, 0]
    assert x[0, 0, 0, :, 0].tolist() == [0, 1, 1, 1, 1, 1, 0]
    assert pad(x, [(0, 0)] * 3) is x


@pytest.mark.parametrize("pads", [NONE, UNEQUAL])
@pytest.mark.parametrize("size", [(8, 10, 12), (9, 11, 7), (7, 8, 9)])
@pytest.mark.parametrize("stride", [(2, 2, 2), (1, 2, 2), (1, 1, 1)])
@pytest.mark.parametrize("kernel", [(7, 7, 7), (3, 4, 2)])
def test_cells_as_channels_are_the_strided_convolution(size, stride, kernel, pads):
    x, weight, bias = drawn(2, 3, *size), drawn(5, 3, *kernel), drawn(5)
    found = convolve_cells(x, weight, bias, stride, pads)
    torch.testing.assert_close(found, conv3d(pad(x, pads), weight, bias, stride))


@pytest.mark.parametrize("pads", [[(1, 1)] * 3, [(0, 1), (1, 0), (1, 1)], [(0, 0)] * 3])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
def test_a_convolution_without_gradients_is_the_same(pads, layout):
    conv = torch.nn.Conv3d(6, 4, 3, stride=(1, 2, 1), padding=7)
    x = drawn(1, 6, 5, 8, 7, dtype=torch.float32).contiguous(memory_format=layout)
    taped = convolve(x, conv, pads)
    with torch.no_grad():
        torch.testing.assert_close(convolve(x, conv, pads), taped)
    wanted = conv3d(pad(x, pads), conv.weight, conv.bias, conv.stride)
    torch.testing.assert_close(taped, wanted)
    with torch.no_grad():
        torch.testing.assert_close(convolve(x, conv, pads, bias=False), wanted - conv.bias[:, None, None, None])
        torch.testing.assert_close(convolve_relu(x, conv, pads), wanted.relu())
        wider = torch.zeros(1, 6, *wanted.shape[2:])
        convolve_relu(x, conv, pads, wider[:, 1:5])
        torch.testing.assert_close(wider[:, 1:5], wanted.relu())
        assert not wider[:, ::5].any(), "the channels beside it stay"


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
@pytest.mark.parametrize(
    ("kernel", "stride"),
    [((1, 3, 3), (1, 2, 2)), ((3, 3, 3), (2, 2, 2)), ((2, 2, 2), (2, 2, 2)), ((3, 3, 3), (1, 1, 1))],
)
def test_pooling_one_dimension_after_the_other_is_the_same(kernel, stride, layout):
    x = drawn(2, 8, 9, 11, 13).contiguous(memory_format=layout)
    wanted = max_pool3d(x, kernel, stride)
    with torch.no_grad():
        assert torch.equal(max_pool(x, kernel, stride, NONE), wanted)
        assert torch.equal(max_pool(x, kernel, stride, UNEQUAL), max_pool3d(pad(x, UNEQUAL), kernel, stride))
        frames = pool_frames(x, kernel[1:], stride[1:])
        assert torch.equal(pool_along(frames, kernel[:1], stride[:1]), wanted), "frames first, as on a GPU"
    assert torch.equal(max_pool(x, kernel, stride, NONE), wanted), "with a tape it is torch's own"


I3D_POOLINGS = sorted({*POOLS.values(), ((3, 3, 3), (1, 1, 1))})  # the last stands inside every Mixed


needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="needs a triton whose interpreter works with this numpy")
every_precision = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])


@needs_triton
@every_precision
@pytest.mark.parametrize("pads", [NONE, UNEQUAL])
@pytest.mark.parametrize(("kernel", "stride"), I3D_POOLINGS)
def test_the_kernel_pools_like_torch(kernel, stride, pads, dtype):
    """Without a GPU in Triton's interpreter. A slice of a map has strides of its own; NaN and -inf stay."""
    from whytube.classifiers import cuda_layers

    x = drawn(2, 70, 5, 6, 8).to(DEVICE, dtype).contiguous(memory_format=torch.channels_last_3d)
    x[0, 3, 2, 2, 2], x[1, :9] = torch.nan, -torch.inf
    for part in (x, x[:, 2:68, 1:, 1:, :-1]):
        found, wanted = cuda_layers.max_pool(part, kernel, stride, pads), max_pool3d(pad(part, pads), kernel, stride)
        torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)
        assert found.is_contiguous(memory_format=torch.channels_last_3d)


@needs_triton
@every_precision
@pytest.mark.parametrize("channels", [1, 24, 70])
def test_the_kernel_adds_a_bias_and_cuts_off_below_zero(channels, dtype):
    """In place, in a map of its own, or in some channels of a wider one, whose others stay."""
    from whytube.classifiers import cuda_layers

    x = drawn(2, channels, 3, 5, 4).to(DEVICE, dtype).contiguous(memory_format=torch.channels_last_3d)
    x[1, 0, 0, 0, 0] = torch.nan
    bias = drawn(channels).to(DEVICE, dtype)
    wanted = (x + bias[:, None, None, None]).relu()
    wider = torch.full((2, channels + 9, 3, 5, 4), -1.0, dtype=dtype, device=DEVICE)
    wider = wider.contiguous(memory_format=torch.channels_last_3d)
    for out in (torch.empty_like(wanted), wider[:, 4 : 4 + channels], x):
        found = cuda_layers.bias_relu(x, bias, out)
        assert found is out
        rounding = 1e-2 if dtype == torch.bfloat16 else 0  # the interpreter rounds it down
        torch.testing.assert_close(found, wanted, rtol=rounding, atol=0, equal_nan=True)
    assert (wider[:, :4] == -1).all()
    assert (wider[:, 4 + channels :] == -1).all()


@needs_triton
@pytest.mark.parametrize("size", [(3, 5, 1), (3, 1, 1), (1, 1, 1)])
def test_the_kernel_finds_the_cells_of_maps_of_one_cell_a_side(size):
    """Whose strides may be anything: of (4, 8, 1, 1, 1) torch says (8, 1, 1, 1, 1)."""
    from whytube.classifiers import cuda_layers

    x, bias = drawn(4, 8, *size).to(DEVICE), drawn(8).to(DEVICE)
    for given in (x.contiguous(memory_format=torch.channels_last_3d), x):
        if given.is_contiguous(memory_format=torch.channels_last_3d):
            wider = torch.zeros(4, 12, *size, dtype=x.dtype, device=DEVICE)
            wider = wider.contiguous(memory_format=torch.channels_last_3d)
            wanted = (x + bias[:, None, None, None]).relu()
            for out in (wider[:, 2:10], torch.empty_like(wanted, memory_format=torch.channels_last_3d), given.clone()):
                assert torch.equal(cuda_layers.bias_relu(given.clone(), bias, out), wanted)


@needs_triton
def test_i3d_with_its_kernels_is_i3d(monkeypatch):
    """Without a GPU in Triton's interpreter: places in the map, cells, pads. A hook on a branch is heard."""
    from whytube.classifiers import inference

    torch.manual_seed(0)
    network = I3D(["a", "b"], frames=4, size=(24, 32)).to(DEVICE).eval()
    fast, clips = network.for_inference(), torch.rand(1, 3, 4, 24, 32, device=DEVICE)
    with torch.no_grad():
        wanted = fast.features(clips)
        monkeypatch.setattr(inference, "_has_kernels", lambda _: True)
        for found, plain in zip(fast.features(clips).maps, wanted.maps, strict=True):
            torch.testing.assert_close(found, plain, rtol=1e-3, atol=1e-4)
        module = fast.stages["Mixed_5c"]
        module.branch_0.register_forward_hook(lambda *_: torch.full_like(wanted.maps[1][:, :384], 7.0))
        assert (fast.features(clips).maps[1][:, :384] == 7).all()


@needs_triton
@every_precision
@pytest.mark.parametrize("pads", [NONE, UNEQUAL])
@pytest.mark.parametrize(("cell", "step"), [((2, 2, 2), (2, 2, 2)), ((4, 2, 2), (2, 2, 2)), ((3, 1, 2), (1, 3, 1))])
def test_the_kernel_lays_cells_out_as_channels(cell, step, pads, dtype):
    from whytube.classifiers import cuda_layers

    x = drawn(2, 3, 5, 6, 8).to(DEVICE, dtype)
    padded = pad(x, pads)
    wanted = padded.unfold(2, cell[0], step[0]).unfold(3, cell[1], step[1]).unfold(4, cell[2], step[2])
    wanted = wanted.permute(0, 1, 5, 6, 7, 2, 3, 4).flatten(1, 4)
    for size in (wanted.shape[2:], wanted[..., 1:, 1:, 1:].shape[2:]):  # pixels at the end may be left out
        t, h, w = (slice(n) for n in size)
        for layout in (torch.contiguous_format, torch.channels_last_3d):
            found = cuda_layers.to_cells(x.contiguous(memory_format=layout), cell, step, tuple(size), pads)
            assert torch.equal(found, wanted[..., t, h, w])
            assert found.is_contiguous(memory_format=torch.channels_last_3d)


@needs_triton
def test_kernels_make_nothing_of_nothing():
    from whytube.classifiers import cuda_layers

    nothing = torch.zeros(0, 4, 3, 3, 3, device=DEVICE)
    assert cuda_layers.max_pool(nothing, (3, 3, 3), (1, 1, 1), NONE).shape == (0, 4, 1, 1, 1)
    assert cuda_layers.bias_relu(nothing, torch.zeros(4), nothing) is nothing
    assert cuda_layers.to_cells(nothing, (1, 1, 1), (1, 1, 1), (3, 3, 3), NONE).shape == (0, 4, 3, 3, 3)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
@pytest.mark.parametrize(("kernel", "stride"), I3D_POOLINGS)
def test_pooling_on_a_gpu_is_the_same(kernel, stride, layout, dtype):
    x = drawn(4, 192, 17, 38, 50).to("cuda", dtype).contiguous(memory_format=layout)
    with torch.no_grad():
        for pads in (NONE, UNEQUAL):
            assert torch.equal(max_pool(x, kernel, stride, pads), max_pool3d(pad(x, pads), kernel, stride))


@pytest.mark.gpu
@pytest.mark.parametrize("size", [(32, 48), (33, 50)])
def test_i3d_for_inference_on_a_gpu_is_i3d(size):
    """All kernels together, in float32 without TF32, against the network that is trained."""
    torch.manual_seed(0)
    network = I3D(["a", "b"], frames=9, size=size).cuda().eval()
    for norm in (module for module in network.modules() if isinstance(module, torch.nn.BatchNorm3d)):
        torch.nn.init.normal_(norm.bias, 0, 0.3)
    clips = torch.rand(3, 3, 9, *size, device="cuda")
    with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):
        fast, plain = network.for_inference().features(clips), network.features(clips)
    assert space(clips, [3])[0] is None, "with gradients nothing is fused"
    for found, wanted in zip((fast.logits, *fast.maps), (plain.logits, *plain.maps), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
