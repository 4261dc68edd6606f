import pytest
import torch
from torch.nn.functional import conv3d, max_pool3d

from subpath_kernels import DEVICE, HAS_TRITON
from whytube.classifiers.blocks import same_padding
from whytube.classifiers.i3d import POOLS
from whytube.classifiers.inference import convolve, convolve_cells, max_pool, pad, pool_along, pool_frames


def drawn(*shape, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


def test_pads_stand_at_their_sides():
    x = pad(torch.ones(1, 1, 4, 5, 6), same_padding((4, 5, 6), (3, 3, 1), (2, 2, 1)))
    assert x.shape == (1, 1, 5, 7, 6)
    assert x[0, 0, :, 3, 0].tolist() == [1, 1, 1, 1, 0]
    assert x[0, 0, 0, :, 0].tolist() == [0, 1, 1, 1, 1, 1, 0]
    assert pad(x, [(0, 0)] * 3) is x


@pytest.mark.parametrize("size", [(8, 10, 12), (9, 11, 7), (7, 8, 9)])
@pytest.mark.parametrize("stride", [(2, 2, 2), (1, 2, 2), (1, 1, 1)])
@pytest.mark.parametrize("kernel", [(7, 7, 7), (3, 4, 2)])
def test_cells_as_channels_are_the_strided_convolution(size, stride, kernel):
    x, weight, bias = drawn(2, 3, *size), drawn(5, 3, *kernel), drawn(5)
    torch.testing.assert_close(convolve_cells(x, weight, bias, stride), conv3d(x, weight, bias, stride))


@pytest.mark.parametrize("pads", [[(1, 1)] * 3, [(0, 1), (1, 0), (1, 1)], [(0, 0)] * 3])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
def test_a_convolution_without_gradients_is_the_same(pads, layout):
    conv = torch.nn.Conv3d(6, 4, 3, stride=(1, 2, 1), padding=7)
    x = drawn(1, 6, 5, 8, 7, dtype=torch.float32).contiguous(memory_format=layout)
    taped = convolve(x, conv, pads)
    with torch.no_grad():
        torch.testing.assert_close(convolve(x, conv, pads), taped)
    torch.testing.assert_close(taped, conv3d(pad(x, pads), conv.weight, conv.bias, conv.stride))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
@pytest.mark.parametrize(
    ("kernel", "stride"),
    [((1, 3, 3), (1, 2, 2)), ((3, 3, 3), (2, 2, 2)), ((2, 2, 2), (2, 2, 2)), ((3, 3, 3), (1, 1, 1))],
)
def test_pooling_one_dimension_after_the_other_is_the_same(kernel, stride, layout):
    x = drawn(2, 8, 9, 11, 13).contiguous(memory_format=layout)
    wanted = max_pool3d(x, kernel, stride)
    with torch.no_grad():
        assert torch.equal(max_pool(x, kernel, stride), wanted)
        frames = pool_frames(x, kernel[1:], stride[1:])
        assert torch.equal(pool_along(frames, kernel[:1], stride[:1]), wanted), "frames first, as on a GPU"
    assert torch.equal(max_pool(x, kernel, stride), wanted), "with a tape it is torch's own"


I3D_POOLINGS = sorted({*POOLS.values(), ((3, 3, 3), (1, 1, 1))})  # the last stands inside every Mixed


@pytest.mark.skipif(not HAS_TRITON, reason="needs a triton whose interpreter works with this numpy")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(("kernel", "stride"), I3D_POOLINGS)
def test_the_kernel_pools_like_torch(kernel, stride, dtype):
    """Without a GPU in Triton's interpreter. A slice of a map has strides of its own; NaN and -inf stay."""
    from whytube.classifiers import cuda_pool

    x = drawn(2, 70, 5, 6, 8).to(DEVICE, dtype).contiguous(memory_format=torch.channels_last_3d)
    x[0, 3, 2, 2, 2], x[1, :9] = torch.nan, -torch.inf
    for part in (x, x[:, 2:68, 1:, 1:, :-1]):
        found, wanted = cuda_pool.max_pool(part, kernel, stride), max_pool3d(part, kernel, stride)
        torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)
        assert found.is_contiguous(memory_format=torch.channels_last_3d)


def test_the_kernel_pools_nothing_to_nothing():
    cuda_pool = pytest.importorskip("whytube.classifiers.cuda_pool")
    assert cuda_pool.max_pool(torch.zeros(0, 4, 3, 3, 3), (3, 3, 3), (1, 1, 1)).shape == (0, 4, 1, 1, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
@pytest.mark.parametrize(("kernel", "stride"), I3D_POOLINGS)
def test_pooling_on_a_gpu_is_the_same(kernel, stride, layout, dtype):
    x = drawn(4, 192, 17, 38, 50).to("cuda", dtype).contiguous(memory_format=layout)
    with torch.no_grad():
        assert torch.equal(max_pool(x, kernel, stride), max_pool3d(x, kernel, stride))
