import itertools

import pytest
import torch

from whytube.classifiers import I3D
from whytube.classifiers.blocks import run_again, run_all, same_padding, spread


@pytest.mark.parametrize("n", [5, 8, 9])
@pytest.mark.parametrize(("k", "s"), [(1, 1), (3, 1), (3, 2), (7, 2)])
def test_a_block_reaches_the_cells_that_see_it(n, k, s):
    """Every span of a row, against a look at each output's window."""
    (before, _), count = same_padding((n, 1, 1), (k, 1, 1), (s, 1, 1))[0], -(-n // s)
    windows = [set(range(o * s - before, o * s - before + k)) for o in range(count)]
    for first, end in itertools.combinations(range(n + 1), 2):
        one = slice(0, 1)
        reached, needed, pads = spread((slice(first, end), one, one), (n, 1, 1), (k, 1, 1), (s, 1, 1))
        cells = [o for o in range(count) if windows[o] & set(range(first, end))]
        assert list(range(count))[reached[0]] == cells
        seen = set().union(*(windows[o] for o in cells))
        assert set(range(n)[needed[0]]) == seen & set(range(n))
        assert pads[0] == (sum(c < 0 for c in seen), sum(c >= n for c in seen))


@pytest.mark.parametrize("strides", ["kinetics", "one"])
@pytest.mark.parametrize(
    "where",
    [
        (slice(0, 9), slice(0, 80), slice(0, 96)),
        (slice(0, 2), slice(0, 5), slice(90, 96)),
        (slice(4, 6), slice(33, 41), slice(40, 57)),
        (slice(8, 9), slice(79, 80), slice(17, 18)),
    ],
)
def test_i3d_runs_on_blocks(strides, where):
    torch.manual_seed(0)
    model = I3D(["a", "b"], frames=9, size=(80, 96), temporal_strides=strides).double().eval()
    clip = torch.rand(1, 3, 9, 80, 96, dtype=torch.float64)
    changed = clip.clone()
    changed[(..., *where)] = torch.rand_like(changed[(..., *where)])
    with torch.no_grad():
        maps = run_all(model.steps(), clip)
        torch.testing.assert_close(maps[-1], model.front(clip, model.block_cut))
        found = run_again(model.steps(), maps, changed[(..., *where)], where)
        torch.testing.assert_close(found, model.front(changed, model.block_cut))
        torch.testing.assert_close(maps[-1], model.front(clip, model.block_cut), msg="kept as they were")
