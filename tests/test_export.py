import numpy as np
import pytest
import torch

from whytube.data.export import export_world
from whytube.data.layout import check_dataset, read_dataset
from whytube.data.world import World
from whytube.errors import ArgumentError, DataError
from whytube.video import probe

SMALL = {"size": 48, "frames": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return export_world(tmp_path_factory.mktemp("export") / "world", count=40, seed=3, fps=10, **SMALL)


def test_the_world_comes_back(folder):
    world, dataset = World(seed=3, **SMALL), read_dataset(folder)
    assert dataset.classes == world.classes
    assert dataset.attribute_names == world.attribute_names
    assert torch.equal(dataset.table, world.table)
    assert [dataset.count(split) for split in ("train", "val", "test")] == [28, 4, 8]
    source = dataset.source(frames=8, size=(48, 48))
    for split in ("train", "val", "test"):
        batch = source.batch(split, range(source.count(split)))
        original = world.batch(split, [int(item.path.stem.removeprefix(f"{split}_")) for item in batch.items])
        assert torch.equal(batch.labels, original.labels)
        assert torch.equal(batch.attributes, original.attributes)
        assert (batch.clips - original.clips).abs().mean() < 0.03
        near = (batch.clips.flatten(1).mean(1) - original.clips.flatten(1).mean(1)).abs()
        assert near.max() < 0.02, "the colours as a whole must not shift"
        for ours, theirs in zip(batch.boxes, original.boxes, strict=True):
            assert set(ours) == set(theirs)
            assert all(np.abs(ours[name] - theirs[name]).max() < 0.01 for name in theirs)


def test_the_export_passes_its_own_check(folder):
    report = check_dataset(folder, deep=True)
    assert report.ok
    assert report.problems == ()
    info = probe(next(folder.glob("videos/*/train_00000.mp4")))
    assert (info.frames, info.fps, info.size) == (8, 10, (48, 48))


def test_splits_are_shared_out_to_the_last_clip(tmp_path):
    out = export_world(tmp_path / "w", count=5, splits={"train": 1, "test": 1}, **SMALL)
    dataset = read_dataset(out)
    assert sorted([dataset.count("train"), dataset.count("test")]) == [2, 3]
    assert dataset.count("val") == 0


def test_an_empty_folder_is_taken_and_a_full_one_refused(tmp_path):
    out = tmp_path / "w"
    out.mkdir()
    export_world(out, count=1, **SMALL)
    before = sorted(out.rglob("*"))
    with pytest.raises(DataError, match="not an empty folder"):
        export_world(out, count=1, **SMALL)
    assert sorted(out.rglob("*")) == before
    with pytest.raises(DataError, match="Make it first"):
        export_world(tmp_path / "no" / "w", count=1, **SMALL)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError, OSError(28, "No space left on device")])
def test_nothing_is_left_after_a_failure(tmp_path, failure):
    def stop(done, total):
        assert total == 4
        if done == 2:
            raise failure

    expected = DataError if isinstance(failure, OSError) else failure
    with pytest.raises(expected):
        export_world(tmp_path / "w", count=4, progress=stop, **SMALL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "`count`"),
        ({"size": 8}, "`size`"),
        ({"fps": 0}, "`fps`"),
        ({"splits": {"train": 0}}, "sum above 0"),
        ({"splits": {"train": -1}}, "0 or more"),
        ({"splits": {"trian": 1}}, "'train', 'val', 'test'"),
    ],
)
def test_wrong_settings_write_nothing(tmp_path, settings, message):
    with pytest.raises(ArgumentError, match=message):
        export_world(tmp_path / "w", **{"count": 2, **SMALL, **settings})
    assert list(tmp_path.iterdir()) == []
