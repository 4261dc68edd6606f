import pytest
import torch

from toy_source import Tints
from whytube.data.source import Kept, PermutedTable, RandomLabels, Source, clips_to_take, fingerprint
from whytube.data.world import World
from whytube.errors import ArgumentError


def test_the_world_is_a_source_without_end():
    source: Source = World(size=32)
    assert source.count("train") is None
    assert source.batch("val", [3, 1]).clips.shape == (2, 3, 16, 32, 32)


def test_kept_clips_are_those_of_the_source():
    source = Tints()
    kept = Kept(source, "train", 10, device="cpu", chunk=4)
    assert [len(indices) for _, indices in source.asked] == [4, 4, 2]
    assert kept.count("train") == 10
    assert kept.count("val") == 0
    mine, theirs = kept.batch("train", [7, 2, 7]), source.batch("train", [7, 2, 7])
    torch.testing.assert_close(mine.clips, theirs.clips, rtol=0, atol=0.5 / 255 + 1e-6)
    assert torch.equal(mine.labels, theirs.labels)
    assert torch.equal(mine.attributes, theirs.attributes)
    assert kept.classes == source.classes
    with pytest.raises(LookupError, match="only clips of 'train' are kept"):
        kept.batch("val", [0])


def test_how_many_clips_to_take():
    assert clips_to_take(Tints(5), "test", None) == 5
    assert clips_to_take(Tints(5), "test", 9) == 5
    assert clips_to_take(Tints(), "test", 9) == 9
    with pytest.raises(
        ArgumentError, match="`count` must be a number, as there is no end of clips in 'test', got None"
    ):
        clips_to_take(Tints(), "test", None)
    with pytest.raises(ArgumentError, match="`count` must be an integer of at least 1, got 0"):
        clips_to_take(Tints(0), "test", None)


def test_a_permuted_table_gives_every_class_the_attributes_of_another():
    source = World(size=32)
    permuted = PermutedTable(source, seed=0)
    rows, mine = source.table.tolist(), permuted.table.tolist()
    assert sorted(mine) == sorted(rows)
    assert all(own != other for own, other in zip(rows, mine, strict=True))
    theirs, batch = source.batch("train", [5, 2]), permuted.batch("train", [5, 2])
    assert torch.equal(batch.clips, theirs.clips)
    assert torch.equal(batch.labels, theirs.labels)
    assert torch.equal(batch.attributes, permuted.table[theirs.labels])
    assert permuted.count("train") is None


def test_fingerprints_tell_data_apart():
    class Renamed(Tints):
        attribute_names = ("reddish", "leafy")

    world = World(size=32)
    different = [Tints(), Tints(30), Renamed(), PermutedTable(Tints()), world, World(size=32, seed=1)]
    different += [PermutedTable(world), PermutedTable(World(size=32, seed=1))]
    assert len({fingerprint(source) for source in different}) == len(different)
    assert fingerprint(World(size=32)) == fingerprint(world)


def test_random_labels_are_of_the_training_clips_alone():
    plain = Tints()
    source = RandomLabels(plain, seed=3)
    mine, theirs = source.batch("train", range(300)), plain.batch("train", range(300))
    assert torch.equal(mine.clips, theirs.clips)
    assert 0.25 < (mine.labels == theirs.labels).double().mean() < 0.42, "a third, by chance"
    assert torch.bincount(mine.labels, minlength=3).min() > 75
    assert torch.equal(mine.attributes, plain.table[mine.labels])
    assert torch.equal(source.batch("train", [7, 2]).labels, mine.labels[[7, 2]]), "a clip keeps its label"
    assert torch.equal(source.batch("test", range(9)).labels, plain.batch("test", range(9)).labels)
    assert source.count("train") is None
    assert fingerprint(source) not in (fingerprint(plain), fingerprint(RandomLabels(plain, seed=4)))
