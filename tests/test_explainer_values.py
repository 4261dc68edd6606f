"""Values of best tubes: those of the search, with gradients that finite differences confirm."""

import pytest
import torch
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

from toy_explainer import tiny_maps, tiny_scores
from whytube.errors import ArgumentError
from whytube.explainer import values
from whytube.explainer.values import attribute_values, difference_values
from whytube.subpath import max_subpath, max_subpath_difference, min_subpath_difference

POSITIVE = torch.tensor([2, 0, 3])
IDS = torch.tensor([[0, 2, 4], [1, -1, -1], [0, 1, -1]])


@pytest.fixture
def scores():
    scores = tiny_scores()
    with torch.no_grad():
        scores.attribute_bias.copy_(torch.linspace(-0.1, 0.1, 5))
    return scores


@pytest.fixture
def maps():
    return tiny_maps(3)


class Call(torch.nn.Module):
    """A function of scores as a module, so that its weights can be given from outside."""

    def __init__(self, scores, function):
        super().__init__()
        self.scores, self.function = scores, function

    def forward(self):
        return self.function(self.scores)


def check_gradients(scores, function):
    """Compare with finite differences in all weights."""
    call = Call(scores, function)
    names, weights = zip(*call.named_parameters(), strict=True)
    assert torch.autograd.gradcheck(
        lambda *given: functional_call(call, dict(zip(names, given, strict=True)), ()),
        [weight.detach().clone().requires_grad_() for weight in weights],
        fast_mode=True,
    )


@pytest.mark.parametrize("two_sided", [False, True])
def test_difference_values_are_those_of_the_search(scores, maps, two_sided):
    with torch.no_grad():
        volumes = scores.class_volumes(maps, IDS)
    expected = min_subpath_difference(volumes, POSITIVE).value
    if two_sided:
        expected = expected + max_subpath_difference(volumes, POSITIVE).value
    assert torch.equal(difference_values(scores, maps, POSITIVE, IDS, two_sided=two_sided), expected)


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("class_bias", [False, True])
@pytest.mark.parametrize("bytes_", [1, 1 << 20])
def test_some_negatives_have_the_values_and_gradients_they_have_among_all(
    maps, two_sided, class_bias, bytes_, monkeypatch
):
    monkeypatch.setattr(values, "VOLUME_BYTES", bytes_)
    scores = tiny_scores(class_bias=class_bias)
    negative = torch.tensor([[3, 0], [1, 3], [0, 2]])  # in any order
    place = negative - (negative > POSITIVE[:, None]).long()  # among all but the positive
    every = difference_values(scores, maps, POSITIVE, IDS, two_sided=two_sided)
    expected = every.gather(1, place[..., None].expand(-1, -1, 3))
    some = difference_values(scores, maps, POSITIVE, IDS, negative, two_sided=two_sided)
    torch.testing.assert_close(some, expected)
    trained = [weight for weight in scores.parameters() if weight is not scores.attribute_bias]
    tilt = torch.linspace(1, 2, some.numel(), dtype=some.dtype).view_as(some)  # so that no two count alike
    found, full = (torch.autograd.grad((value * tilt).sum(), trained) for value in (some, expected))
    for a, b in zip(found, full, strict=True):
        assert a.abs().max() > 0
        torch.testing.assert_close(a, b)


def test_attribute_values_are_those_of_the_search(scores, maps):
    with torch.no_grad():
        expected = max_subpath(scores.attribute_volumes(maps)).value
    assert torch.equal(attribute_values(scores, maps), expected)


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("bytes_", [1, 1 << 20])
def test_gradients_of_difference_values(scores, maps, two_sided, bytes_, monkeypatch):
    monkeypatch.setattr(values, "VOLUME_BYTES", bytes_)
    check_gradients(scores, lambda s: difference_values(s, maps, POSITIVE, IDS, two_sided=two_sided))


@pytest.mark.parametrize("bytes_", [1, 1 << 20])
def test_gradients_of_attribute_values(scores, maps, bytes_, monkeypatch):
    monkeypatch.setattr(values, "VOLUME_BYTES", bytes_)
    check_gradients(scores, lambda s: attribute_values(s, maps))


def test_no_tape_holds_a_volume(scores, maps):
    """Between forward and backward only cells, rows and views of the maps are kept."""
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        difference_values(scores, maps, POSITIVE, IDS, two_sided=True)
    own = {h.untyped_storage().data_ptr() for h in maps}
    others = [x for x in kept if x.untyped_storage().data_ptr() not in own]
    volume = 3 * 4 * 3 * scores.forms.count * 3 * 4 * 6
    assert sum(x.numel() for x in others) < volume / 2


def test_scores_that_are_not_finite_are_refused(scores, maps):
    with torch.no_grad():
        scores.class_weights[0][0, 0, 1, 1] = torch.nan
    with pytest.raises(ArgumentError, match="must not contain NaN"):
        difference_values(scores, maps, POSITIVE, IDS)


def test_chunks_are_few_and_equal(scores, monkeypatch):
    clip = 8 * 12 * scores.forms.count * 3 * 4 * 6  # bytes of twelve float64 volumes
    monkeypatch.setattr(values, "VOLUME_BYTES", 4 * clip)
    sizes = [part.stop - part.start for part in values._chunks(scores, 9, 12)]
    assert sizes == [3, 3, 3], "not 4, 4 and 1"


class Operations(TorchDispatchMode):
    """Count what a GPU would be sent: all operations but views and allocations."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        views = any(a.alias_info and not a.alias_info.is_write for a in function._schema.arguments)
        self.count += not views and "empty" not in function._schema.name
        return function(*args, **kwargs or {})


def test_a_chunk_costs_few_operations(scores, maps, monkeypatch):
    """A GPU is waiting for its host, so that operations are what a step costs."""
    counts = []
    for bytes_ in (1 << 20, 1):  # one chunk, three
        monkeypatch.setattr(values, "VOLUME_BYTES", bytes_)
        with Operations() as seen:
            difference_values(scores, maps, POSITIVE, IDS).sum().backward()
        counts.append(seen.count)
    assert (counts[1] - counts[0]) / 2 < 100, "of these, 20 are the search's on a CPU"


@pytest.mark.gpu
def test_scores_that_are_not_finite_are_refused_by_a_gpu(scores, maps):
    """With a tape not before backward, which nothing can be learnt without."""
    with torch.no_grad():
        scores.class_weights[0][0, 0, 1, 1] = torch.nan
    arguments = scores.cuda(), [h.cuda() for h in maps], POSITIVE.cuda(), IDS.cuda()
    with torch.no_grad(), pytest.raises(ArgumentError, match="must not contain NaN"):
        difference_values(*arguments)
    value = difference_values(*arguments)
    with pytest.raises(ArgumentError, match="must not contain NaN"):
        value.sum().backward()


@pytest.mark.gpu
@pytest.mark.parametrize("negative", [None, torch.tensor([[3, 0], [1, 3], [0, 2]])], ids=["all", "some"])
def test_a_gpu_gives_the_gradients_of_a_cpu(scores, maps, negative):
    weights = [*scores.class_weights, *scores.attribute_weights]
    on_cpu = difference_values(scores, maps, POSITIVE, IDS, negative, two_sided=True)
    expected = torch.autograd.grad(on_cpu.sum(), weights)
    scores.cuda()
    some = None if negative is None else negative.cuda()
    value = difference_values(scores, [h.cuda() for h in maps], POSITIVE.cuda(), IDS.cuda(), some, two_sided=True)
    weights = [*scores.class_weights, *scores.attribute_weights]
    for a, b in zip(torch.autograd.grad(value.sum(), weights), expected, strict=True):
        torch.testing.assert_close(a.cpu(), b)
