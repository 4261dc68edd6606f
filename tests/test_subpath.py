"""The layer's contract, on every kernel: exact, with the path, with its gradient."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import whytube
from subpath_kernels import INTERPRETED, assert_same, place, tied_scores
from subpath_oracle import all_paths, best_path
from whytube.errors import ArgumentError
from whytube.subpath import MaxSubpathPool, Subpath, other_classes, path_sum, top_subpaths, use_backend
from whytube.subpath.layer import max_subpath, max_subpath_difference, min_subpath, min_subpath_difference
from whytube.subpath.reference import compose


def oracle(scores: torch.Tensor, *, radius: int, forms: str, lengths: torch.Tensor) -> Subpath:
    rows = [
        best_path(volume.numpy(), radius, forms == "fixed", int(length))
        for volume, length in zip(scores, lengths, strict=True)
    ]
    value, start, stop, cells = zip(*rows, strict=True)
    return Subpath(
        torch.tensor(value, dtype=torch.float32),
        torch.tensor(start),
        torch.tensor(stop),
        torch.from_numpy(np.stack(cells)),
    )


SMALL = [(1, 1, 1, 1), (2, 1, 2, 2), (1, 4, 1, 3), (1, 3, 3, 3), (2, 3, 2, 2), (3, 3, 1, 2), (1, 5, 2, 2), (2, 2, 3, 2)]


@pytest.mark.parametrize("forms", ["free", "fixed"])
@pytest.mark.parametrize("radius", [0, 1, 2, 3])
def test_equals_enumeration(kernel, radius, forms):
    count = 6 if kernel == "cuda" and INTERPRETED else 60
    for seed, shape in enumerate(SMALL):
        scores = tied_scores(seed, (count, *shape))
        lengths = torch.from_numpy(np.random.default_rng(seed).integers(0, shape[1] + 1, count))
        found = max_subpath(place(kernel, scores), radius=radius, forms=forms, lengths=place(kernel, lengths))
        assert_same(found, oracle(scores, radius=radius, forms=forms, lengths=lengths))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**31),
    shape=st.tuples(*[st.integers(1, n) for n in (3, 9, 6, 6)]),
    radius=st.integers(0, 3),
    forms=st.sampled_from(["free", "fixed"]),
    search=st.sampled_from([max_subpath, min_subpath]),
)
def test_kernels_agree(seed, shape, radius, forms, search):
    scores = tied_scores(seed, (3, *shape))
    scores = scores if search is max_subpath else -scores
    with use_backend("reference"):
        wanted = search(scores, radius=radius, forms=forms)
    with use_backend("cpu"):
        assert_same(search(scores, radius=radius, forms=forms), wanted)


@pytest.mark.parametrize("forms", ["free", "fixed"])
def test_equals_composition_on_large_volumes(kernel, forms):
    shape = (2, 3, 5, 9, 7) if kernel == "cuda" and INTERPRETED else (20, 8, 16, 14, 14)
    base = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    ours, theirs = (place(kernel, base.clone()).requires_grad_() for _ in range(2))
    found = max_subpath(ours, forms=forms)
    wanted = compose(theirs, fixed=forms == "fixed")
    assert torch.equal(found.value, wanted)
    found.value.sum().backward()
    wanted.sum().backward()
    assert torch.equal(ours.grad, theirs.grad)


def test_value_is_the_score_of_the_path(kernel):
    scores = place(kernel, torch.randn(4, 3, 6, 5, 5, dtype=torch.float64))
    for search in (max_subpath, min_subpath):
        found = search(scores)
        torch.testing.assert_close(found.value, path_sum(scores, found.cells))


def test_gradient_is_one_on_the_path_and_zero_elsewhere(kernel):
    scores = place(kernel, tied_scores(3, (5, 2, 4, 3, 3))).requires_grad_()
    found = max_subpath(scores)
    weight = torch.arange(1.0, 6.0, device=scores.device)
    (found.value * weight).sum().backward()
    wanted = torch.zeros_like(scores)
    for n, t in (found.cells[:, :, 0] >= 0).nonzero().tolist():
        form, row, col = found.cells[n, t].tolist()
        wanted[n, form, t, row, col] = weight[n]
    assert torch.equal(scores.grad, wanted)
    assert scores.grad.abs().sum() > 0


def test_closed_forms(kernel):
    steps = 7
    ones = place(kernel, torch.ones(2, steps, 3, 3))
    assert max_subpath(ones).value == steps
    assert min_subpath(ones).value == 1
    assert max_subpath(-ones).value == -1  # never empty
    assert (max_subpath(-ones).start, max_subpath(-ones).stop) == (0, 1)
    zeros = max_subpath(0 * ones)  # a past of zero is not worth extending into
    assert zeros.cells[0].tolist() == [0, 0, 0]
    assert (zeros.start, zeros.stop) == (0, 1)


def test_minimum_is_the_maximum_with_the_sign_turned(kernel):
    scores = place(kernel, torch.randn(3, 2, 5, 4, 4))
    low, high = min_subpath(scores), max_subpath(-scores)
    assert_same(low, high._replace(value=-high.value))


def test_a_radius_limits_the_step():
    scores = torch.full((1, 2, 1, 4), -1.0)
    scores[0, 0, 0, 0] = scores[0, 1, 0, 3] = 5.0
    assert [max_subpath(scores, radius=r).value.item() for r in (0, 1, 2, 3)] == [5.0, 5.0, 5.0, 10.0]


def test_padding_is_never_looked_at(kernel):
    scores = place(kernel, torch.randn(3, 2, 6, 4, 4))
    lengths = place(kernel, torch.tensor([6, 3, 0]))
    wanted = [max_subpath(scores[0]), max_subpath(scores[1, :, :3])]
    scores[1, :, 3:] = torch.nan
    scores[2] = torch.nan
    found = max_subpath(scores, lengths=lengths)
    assert torch.equal(found.value[:2], torch.stack([w.value for w in wanted]))
    assert torch.equal(found.cells[1, :3], wanted[1].cells)
    assert found.value[2] == -torch.inf
    assert (found.start[2], found.stop[2], found.cells[2].max()) == (0, 0, -1)


def test_forbidden_cells_are_avoided_and_may_leave_nothing(kernel):
    scores = place(kernel, torch.full((2, 1, 3, 1, 2), -torch.inf))
    scores[0, 0, :, 0, 1] = -2.0
    scores.requires_grad_()
    found = max_subpath(scores)
    assert found.value.tolist() == [-2.0, -torch.inf]
    assert found.cells[0, 0].tolist() == [0, 0, 1]
    assert found.cells[1].max() == -1
    found.value[0].backward()
    assert scores.grad.sum() == 1


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_nan_and_infinity_are_errors(kernel, value):
    scores = place(kernel, torch.zeros(3, 2, 3, 2, 2))
    scores[1, 1, 2, 1, 0] = value
    with pytest.raises(ArgumentError, match=r"must not contain (NaN: 1 of 3 items|\+inf: item 1)"):
        max_subpath(scores)
    with pytest.raises(ArgumentError, match=r"^`scores` must not contain"):
        max_subpath(scores.requires_grad_()).value.sum().backward()
    m = place(kernel, torch.zeros(1, 2, 1, 2, 2, 2))
    m[0, 0, 0, 0, 0, 0] = value
    with pytest.raises(ArgumentError, match=r"^`m` must not contain"):
        max_subpath_difference(m, place(kernel, torch.tensor([0])))


def test_other_classes_are_all_but_the_positive_one():
    assert other_classes(torch.tensor([0, 2, 3]), 4).tolist() == [[1, 2, 3], [0, 1, 3], [0, 1, 2]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_dtypes_accumulate_in_float32_or_better(kernel, dtype):
    scores = place(kernel, torch.randn(3, 2, 6, 4, 4)).to(dtype).requires_grad_()
    found = max_subpath(scores)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert found.value.dtype == wide
    assert_same(Subpath(*(x.detach() for x in found)), max_subpath(scores.detach().to(wide)))
    found.value.sum().backward()
    assert scores.grad.dtype == dtype
    assert scores.grad.sum() == (found.stop - found.start).sum()


def test_strides_and_batches(kernel):
    base = place(kernel, torch.randn(3, 2, 5, 4, 6, 2))
    scores = base.permute(5, 0, 1, 2, 4, 3)  # (2, 3, K=2, T=5, H=6, W=4), not contiguous
    found = max_subpath(scores)
    assert found.value.shape == (2, 3)
    assert found.cells.shape == (2, 3, 5, 3)
    assert_same(found, max_subpath(scores.contiguous()))
    expanded = scores[0, 0].expand(4, *scores.shape[2:])
    assert max_subpath(expanded).value.unique().numel() == 1
    assert max_subpath(scores[0, 0]).value.shape == ()


def test_empty_batch(kernel):
    scores = place(kernel, torch.zeros(0, 2, 4, 3, 3)).requires_grad_()
    found = max_subpath(scores)
    assert found.value.shape == (0,)
    assert found.cells.shape == (0, 4, 3)
    found.value.sum().backward()
    assert scores.grad.shape == scores.shape


@pytest.mark.parametrize("forms", ["free", "fixed"])
@pytest.mark.parametrize("listed", [False, True])
def test_difference_equals_the_search_on_differences(kernel, forms, listed):
    m = place(kernel, tied_scores(0, (2, 4, 3, 2, 4, 3, 3)).clamp_min(-9)).requires_grad_()
    positive = place(kernel, torch.tensor([3, 1]))
    negative = place(kernel, torch.tensor([[0, 2], [0, 3]])) if listed else None
    lengths = place(kernel, torch.tensor([4, 2]))
    chosen = negative if listed else place(kernel, torch.tensor([[0, 1, 2], [0, 2, 3]]))
    each = torch.arange(2, device=m.device)[:, None]
    stored = m[each, positive[:, None]] - m[each, chosen]  # (B, N, S, K, T, H, W)
    spread_lengths = lengths[:, None, None].expand(stored.shape[:3])
    for search, plain in ((max_subpath_difference, max_subpath), (min_subpath_difference, min_subpath)):
        found = search(m, positive, negative, forms=forms, lengths=lengths)
        wanted = plain(stored, forms=forms, lengths=spread_lengths)
        assert_same(found, wanted)
        weight = torch.arange(1.0, 1 + wanted.value.numel(), device=m.device).view_as(wanted.value)
        ours = torch.autograd.grad((found.value * weight).sum(), m)[0]
        theirs = torch.autograd.grad((wanted.value * weight).sum(), m, retain_graph=True)[0]
        assert torch.equal(ours, theirs)


def test_top_subpaths_are_disjoint_and_ordered(kernel):
    scores = place(kernel, torch.rand(2, 2, 5, 6, 6)).requires_grad_()
    found = top_subpaths(scores, 4, gap=1)
    assert found.value.shape == (2, 4)
    assert found.value.diff(dim=1).max() <= 0
    torch.testing.assert_close(found.value[:, 0], max_subpath(scores).value)
    for n in range(2):
        for a in range(4):
            for b in range(a):
                near = (found.cells[n, a, :, 1:] - found.cells[n, b, :, 1:]).abs().amax(1) <= 1
                both = (found.cells[n, a, :, 0] >= 0) & (found.cells[n, b, :, 0] >= 0)
                assert not (near & both).any()
    found.value.sum().backward()
    assert scores.grad.sum() == (found.stop - found.start).sum()


def test_every_item_may_have_a_gap_of_its_own(kernel):
    scores, gaps = place(kernel, torch.rand(2, 3, 1, 4, 6, 6)), [0, 2, 1]
    found = top_subpaths(scores, 3, gap=place(kernel, torch.tensor(gaps)))
    same = top_subpaths(scores, 3, gap=place(kernel, torch.tensor([-1, 2, 1])))
    assert torch.equal(same.cells, found.cells), "less than 0 is as 0"
    for item, gap in enumerate(gaps):
        alone = top_subpaths(scores[:, item], 3, gap=gap)
        assert_same(Subpath(*(part[:, item] for part in found)), alone)
    assert not torch.equal(found.cells[:, 1], top_subpaths(scores[:, 1], 3).cells)


def test_top_subpaths_run_out():
    found = top_subpaths(torch.ones(1, 2, 1, 2), 3)
    assert found.value.tolist() == [2.0, 2.0, -torch.inf]
    assert found.cells[2].max() == -1


def test_module_stores_settings_and_calls_the_function():
    scores = torch.randn(2, 3, 4, 5, 5)
    pool = MaxSubpathPool(radius=2, forms="fixed")
    assert torch.equal(pool(scores), max_subpath(scores, radius=2, forms="fixed").value)
    assert repr(copy.deepcopy(pool)) == "MaxSubpathPool(radius=2, forms='fixed')"


def test_a_class_that_is_not_there_is_an_error_with_gradients_too(kernel):
    m = place(kernel, torch.randn(2, 3, 2, 3, 2, 2)).requires_grad_()
    with pytest.raises(ArgumentError, match="`positive` must be from 0 to 2"):
        min_subpath_difference(m, place(kernel, torch.tensor([0, 7]))).value.sum().backward()


def test_half_precision_sums_are_the_same_with_and_without_gradients():
    scores = torch.full((1, 16, 2, 2), 191.4, dtype=torch.float16)
    plain, taped = top_subpaths(scores, 1), top_subpaths(scores.clone().requires_grad_(), 1)
    assert plain.value == taped.value == max_subpath(scores).value
    with pytest.raises(ArgumentError, match=r"`cells` must be of shape \(..., T, 3\) with T = 16"):
        path_sum(scores, plain.cells[..., :3, :])


def test_half_precision_differences_do_not_overflow(kernel):
    m = torch.tensor([60000.0, -60000.0], dtype=torch.float16)[None, :, None, None, None, None].expand(1, 2, 1, 2, 1, 1)
    m = place(kernel, m.contiguous()).requires_grad_()
    found = max_subpath_difference(m, place(kernel, torch.tensor([0])))
    assert found.value.tolist() == [[240000.0]]
    found.value.sum().backward()
    assert m.grad.flatten().tolist() == [1, 1, -1, -1]


def test_enumerator_counts_paths():
    # One cell per step: T * (T + 1) / 2 intervals. Two cells that are neighbours: sum of 2^length.
    assert len(all_paths((1, 4, 1, 1), 1, False)) == 10
    assert len(all_paths((1, 3, 1, 2), 1, False)) == 3 * 2 + 2 * 4 + 8
    assert len(all_paths((2, 2, 1, 1), 1, True)) == 4 + 2


def test_comparison_helper_can_fail():
    found = max_subpath(torch.randn(1, 3, 2, 2))
    with pytest.raises(AssertionError, match="value"):
        assert_same(found, found._replace(value=found.value + 1))


def test_names_at_the_top():
    assert whytube.max_subpath is max_subpath
    assert whytube.MaxSubpathPool is MaxSubpathPool


def test_paths_are_kept_away_from_only_where_they_are():
    """A path that has ended forbids nothing afterwards, not even around the corner of the grid."""
    scores = -torch.ones(1, 3, 4, 5)
    scores[0, 0, 3, 4] = 5.0
    scores[0, 1, 0, 0] = scores[0, 2, 0, 0] = 2.0
    scores[0, 1, 0, 4] = 3.0
    found = top_subpaths(scores, 3, gap=1)
    assert found.value.tolist() == [5.0, 4.0, 3.0]
    assert found.cells[1].tolist() == [[-1] * 3, [0, 0, 0], [0, 0, 0]]
    assert (found.start.tolist(), found.stop.tolist()) == ([0, 1, 1], [1, 3, 2])
    assert torch.equal(found.value, path_sum(scores, found.cells))


@pytest.mark.parametrize("wrong", [(2, 0, 0), (0, 3, 0), (0, 0, 5), (-1, 0, 0), (0, -1, 0), (0, 0, -1), (-2, -2, -2)])
def test_cells_outside_the_grid_have_no_sum(wrong):
    scores = torch.arange(2 * 2 * 3 * 5.0).view(2, 2, 3, 5)
    last = torch.tensor([[1, 2, 4], [-1, -1, -1]])
    assert path_sum(scores, last) == scores[1, 0, 2, 4], "the last cell of all is one"
    with pytest.raises(ArgumentError, match=r"`cells` must be \(form, row, column\) below \(2, 3, 5\)"):
        path_sum(scores, torch.tensor([[0, 0, 0], wrong]))


def test_every_argument_of_a_sum_is_checked():
    scores = torch.zeros(2, 2, 3, 5)
    for cells, message in (
        ([[0, 0, 0]] * 2, "`cells` must be a tensor"),
        (torch.zeros(2, 3), "`cells` must be an integer tensor"),
        (torch.zeros(2, 3, dtype=torch.bool), "`cells` must be an integer tensor"),
        (torch.zeros(2, 2, dtype=torch.long), "`cells` must be of shape"),
    ):
        with pytest.raises(ArgumentError, match=message):
            path_sum(scores, cells)
    for lengths, message in (([3, 3], "`lengths` must be a tensor"), (torch.ones(1).bool(), "an integer tensor")):
        with pytest.raises(ArgumentError, match=message):
            max_subpath(scores[None], lengths=lengths)
    with pytest.raises(ArgumentError, match="`gap` must be an integer of at least 0"):
        top_subpaths(scores, 1, gap=-1)
    with pytest.raises(ArgumentError, match="`gap` must be an integer tensor"):
        top_subpaths(scores, 1, gap=torch.tensor(1.0))
    with pytest.raises(ArgumentError, match="`gap` must be an integer tensor"):
        top_subpaths(scores, 1, gap=torch.tensor(True))
    with pytest.raises(ArgumentError, match=r"`gap` must be a tensor that broadcasts to the batch \(\), got \(3,\)"):
        top_subpaths(scores, 1, gap=torch.tensor([1, 2, 3]))
    with pytest.raises(ArgumentError, match="`positive` must be a tensor of class indices"):
        max_subpath_difference(scores[None, None].expand(1, 2, 2, 2, 3, 5), torch.tensor([0.0]))


def test_sums_of_many_paths_through_one_volume():
    scores = torch.randn(2, 1, 2, 3, 4, 5)
    cells = torch.stack([torch.randint(0, n, (2, 6, 3)) for n in (2, 4, 5)], -1)
    cells[0, 0, 1:] = -1
    found = path_sum(scores, cells)
    assert found.shape == (2, 6)
    for b in range(2):
        for n in range(6):
            steps = [(t, *cell) for t, cell in enumerate(cells[b, n].tolist()) if cell[0] >= 0]
            assert float(found[b, n]) == pytest.approx(
                sum(float(scores[b, 0, k, t, i, j]) for t, k, i, j in steps), abs=1e-5
            )


def test_many_threads_find_what_one_does(monkeypatch):
    scores = torch.randn(7, 2, 4, 6, 6)
    with use_backend("cpu"):
        alone = max_subpath(scores)
        monkeypatch.setattr("whytube.subpath.cpu._CELLS_PER_THREAD", 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
        assert_same(max_subpath(scores), alone)


@pytest.mark.parametrize(("cells", "threads"), [(2, 3), (504, 2), (1009, None)])
def test_a_thread_is_worth_its_cells(monkeypatch, cells, threads):
    """A volume of 7 x 2 x 4 x 6 x 3 = 1008 cells."""
    asked = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr("whytube.subpath.cpu._CELLS_PER_THREAD", cells)
    monkeypatch.setattr(
        "whytube.subpath.cpu.ThreadPoolExecutor", lambda count: asked.append(count) or ThreadPoolExecutor(count)
    )
    with use_backend("cpu"):
        max_subpath(torch.zeros(7, 2, 4, 6, 3))
    assert asked == ([] if threads is None else [threads])


def test_whatever_stands_between_classes_and_forms_keeps_its_order(kernel):
    m = place(kernel, torch.randn(2, 3, 2, 4, 1, 3, 2, 2))
    positive, negative = place(kernel, torch.tensor([2, 0])), place(kernel, torch.tensor([[0, 1], [2, 1]]))
    found = max_subpath_difference(m, positive, negative)
    assert found.value.shape == (2, 2, 2, 4)
    assert found.cells.shape == (2, 2, 2, 4, 3, 3)
    for b in range(2):
        for n in range(2):
            wanted = max_subpath(m[b, positive[b]] - m[b, negative[b, n]])
            assert_same(Subpath(*(x[b, n] for x in found)), wanted)


def test_class_indices_have_their_shape_and_range(kernel):
    m = place(kernel, torch.randn(2, 3, 1, 3, 2, 2))
    positive = place(kernel, torch.tensor([0, 1]))
    for wrong in (3, 4, -1):
        with pytest.raises(ArgumentError, match="`negative` must be from 0 to 2"):
            max_subpath_difference(m, positive, place(kernel, torch.tensor([[wrong], [0]])))
        with pytest.raises(ArgumentError, match="`positive` must be from 0 to 2"):
            max_subpath_difference(m, place(kernel, torch.tensor([wrong, 0])))
    with pytest.raises(ArgumentError, match=r"`positive` must be of shape \(B,\)"):
        max_subpath_difference(m, positive[:, None])
    with pytest.raises(ArgumentError, match=r"`negative` must be of shape \(B, N\)"):
        max_subpath_difference(m, positive, positive)
