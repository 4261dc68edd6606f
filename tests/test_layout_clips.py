from dataclasses import replace
from threading import Event, Timer

import numpy as np
import pytest
import torch

from layout_files import make_dataset
from video_files import number, numbers
from whytube.cli.options import open_source
from whytube.data.ahead import Ahead
from whytube.data.layout import read_dataset
from whytube.data.layout.clips import boxes_at, training_workers
from whytube.data.source import fingerprint
from whytube.data.world import World
from whytube.errors import ArgumentError, VideoError
from whytube.tubes import Tube
from whytube.video import read_bytes, read_clip


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return read_dataset(make_dataset(tmp_path_factory.mktemp("data")))


def test_batches_have_the_shapes_and_names_of_the_world(dataset):
    world, source = World(size=32, frames=8), dataset.source(frames=8, size=(24, 40))
    for name in ("classes", "attribute_names", "table"):
        assert type(getattr(source, name)) is type(getattr(world, name))
    ours, theirs = source.batch("train", [1, 0, 1]), world.batch("train", [1, 0, 1])
    for name in ("clips", "labels", "attributes"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert a.dtype == b.dtype
        assert a.ndim == b.ndim
        assert len(a) == 3
    assert ours.clips.shape == (3, 3, 8, 24, 40)
    assert ours.labels.tolist() == [1, 0, 1]
    assert ours.attributes.tolist() == [[False] * 3, [True] * 3, [False] * 3]
    assert [set(boxes) for boxes in ours.boxes] == [set(), {"with ball"}, set()]
    assert ours.boxes[1]["with ball"].shape == next(iter(theirs.boxes[1].values())).shape
    assert source.count("train") == 2


def test_a_clip_is_what_read_clip_gives_also_from_memory(dataset):
    source = dataset.source(frames=8, size=(24, 32))
    clip = read_clip(dataset.items("train")[0].path, frames=8, size=(24, 32))
    for _ in range(2):
        batch = source.batch("train", [0])
        assert torch.equal(batch.clips[0], clip.frames)
        assert batch.indices[0].tolist() == clip.indices.tolist() == [number(f) for f in clip.frames.unbind(1)]
        assert batch.times[0].tolist() == clip.times.tolist()
        assert batch.sizes.tolist() == [[48, 64]]
    batch.clips.zero_()
    assert torch.equal(source.batch("train", [0]).clips[0], clip.frames)
    assert numbers(clip) == batch.indices[0].tolist()


def test_decoded_clips_are_kept_up_to_the_bound(dataset, monkeypatch):
    calls = []

    def counted(path, out, **settings):
        calls.append(path.name)
        return read_bytes(path, out, **settings)

    monkeypatch.setattr("whytube.data.layout.clips.read_bytes", counted)
    one_clip = 3 * 4 * 8 * 8
    source = dataset.source(frames=4, size=(8, 8), cache_bytes=one_clip, workers=1)
    for _ in range(3):
        source.batch("train", [0, 1])
    assert calls == ["a.mp4", "c.mp4", "c.mp4", "c.mp4"]


def test_bytes_are_those_of_the_clip(dataset):
    path, out = dataset.items("train")[0].path, torch.empty(3, 5, 24, 40, dtype=torch.uint8)
    clip, sampled = read_clip(path, frames=5, size=(24, 40)), read_bytes(path, out, threads=1)
    assert torch.equal(out / 255, clip.frames)
    assert sampled.indices.tolist() == clip.indices.tolist()
    assert sampled.times.tolist() == clip.times.tolist()
    assert sampled.size == clip.size


@pytest.mark.parametrize(("cores", "workers", "threads"), [(16, 16, 8), (16, 1, 16), (2, 4, 1)])
def test_decoders_share_the_cores(dataset, monkeypatch, cores, workers, threads):
    found = []

    def counted(path, out, *, threads):
        found.append(threads)
        return read_bytes(path, out, threads=threads)

    monkeypatch.setattr("whytube.data.layout.clips.read_bytes", counted)
    monkeypatch.setattr("whytube.data.layout.clips.cores", lambda: cores)
    dataset.source(frames=2, size=(8, 8), workers=workers).batch("train", [0, 1])
    assert found == [threads, threads]


def test_several_batches_may_be_under_way(dataset):
    source = dataset.source(frames=2, size=(8, 8), workers=1)
    begun = [source.begin("train", indices) for indices in ([0], [1], [0, 1])]
    for given, indices in zip(begun, ([0], [1], [0, 1]), strict=True):
        assert torch.equal(given().clips, source.batch("train", indices).clips)


def test_what_nobody_takes_is_not_decoded(dataset, monkeypatch):
    """A training that is stopped waits for the video in hand alone."""
    source, go, begun = dataset.source(frames=2, size=(8, 8), workers=1, cache_bytes=0), Event(), []

    def slowly(path, out, *, threads):
        begun.append(path)
        assert go.wait(60)
        return read_bytes(path, out, threads=threads)

    monkeypatch.setattr("whytube.data.layout.clips.read_bytes", slowly)
    with Ahead(source) as ahead:
        ahead.expect("train", [0, 1, 0, 1], "cpu")
        ahead.expect("train", [1, 0, 1], "cpu")
        Timer(0.2, go.set).start()
    source._pool.shutdown()
    assert len(begun) == 1


def test_a_training_reads_as_many_videos_as_there_are_cores(monkeypatch):
    for there, workers in ((1, 4), (8, 8), (64, 16)):
        monkeypatch.setattr("whytube.data.layout.clips.cores", lambda there=there: there)
        assert training_workers() == workers


def test_a_training_keeps_clips_in_a_quarter_of_the_free_memory(tmp_path, monkeypatch):
    folder = str(make_dataset(tmp_path / "data"))
    monkeypatch.setattr("whytube.training.memory.free_bytes", lambda device: 40 << 30)
    assert open_source(folder, size=(8, 8), frames=2, again=True).cache_bytes == 10 << 30
    assert open_source(folder, size=(8, 8), frames=2).cache_bytes == 1 << 29, "what is read once"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert open_source(folder, size=(8, 8), frames=2, again=True).cache_bytes == 10 << 28
    monkeypatch.setattr("whytube.training.memory.free_bytes", lambda device: None)
    assert open_source(folder, size=(8, 8), frames=2, again=True).cache_bytes == 1 << 29, "the system does not say"


def test_boxes_are_in_pixels_of_the_clip_on_its_frames(dataset):
    source = dataset.source(frames=20, size=(96, 32))
    boxes = source.batch("train", [0]).boxes[0]["with ball"]
    assert boxes[0].tolist() == [4, 12, 12, 36]
    assert boxes[10].tolist() == [8, 24, 16, 48]
    assert not boxes[1:10].any()
    assert not boxes[11:].any()


def test_boxes_map_back_to_the_video(dataset):
    batch = dataset.source(frames=20, size=(96, 32)).batch("train", [0])
    scale = batch.sizes[0][[1, 0, 1, 0]] / np.array([32, 96, 32, 96])
    tube = batch.items[0].boxes["with ball"]
    assert np.allclose(batch.boxes[0]["with ball"] * scale, tube.at(batch.indices[0]))


def test_bridged_boxes_are_interpolated_between_annotated_frames_alone():
    tube = Tube([2, 6, 20], [[0, 0, 4, 4], [8, 4, 12, 8], [0, 0, 2, 2]])
    indices = np.array([0, 2, 3, 4, 6, 10, 20, 25])
    bridged = boxes_at(tube, indices, bridge=4)
    assert bridged.tolist() == [
        [0, 0, 0, 0],
        [0, 0, 4, 4],
        [2, 1, 6, 5],
        [4, 2, 8, 6],
        [8, 4, 12, 8],
        [0, 0, 0, 0],
        [0, 0, 2, 2],
        [0, 0, 0, 0],
    ]
    assert np.array_equal(boxes_at(tube, indices), tube.at(indices))
    assert np.array_equal(boxes_at(Tube([], []), indices, bridge=9), np.zeros((8, 4)))


BOX, OTHER = [0.0, 0, 4, 4], [8.0, 4, 12, 8]


@pytest.mark.parametrize(
    ("frames", "boxes", "expected"),
    [
        ([11], [BOX], [0, BOX, 0, 0]),
        ([12], [BOX], [0, BOX, 0, 0]),
        ([25], [BOX], [0, 0, BOX, 0]),
        ([36], [BOX], [0, 0, 0, 0]),
        ([10, 12], [BOX, OTHER], [0, BOX, 0, 0]),
        ([12, 21], [BOX, OTHER], [0, BOX, OTHER, 0]),
        ([3, 4], [BOX, OTHER], [0, 0, 0, 0]),
    ],
    ids=["next to", "near", "half a step", "beyond the last", "taken already", "two", "a track that ends in between"],
)
def test_a_frame_annotated_alone_counts_for_the_nearest_sample(frames, boxes, expected):
    placed = boxes_at(Tube(frames, boxes), np.array([0, 10, 20, 30]))
    assert placed.tolist() == [box or [0, 0, 0, 0] for box in expected]


def test_a_single_sample_takes_its_own_frame_alone():
    tube = Tube([3], [BOX])
    assert boxes_at(tube, np.array([3])).tolist() == [BOX]
    assert boxes_at(tube, np.array([4])).tolist() == [[0, 0, 0, 0]]


def test_an_empty_batch(dataset):
    batch = dataset.source(frames=4, size=(8, 8)).batch("val", [])
    assert batch.clips.shape == (0, 3, 4, 8, 8)
    assert batch.attributes.shape == (0, 3)
    assert batch.attributes.dtype == torch.bool
    assert batch.boxes == []


def test_wrong_indices_splits_and_sizes_are_refused(dataset):
    source = dataset.source()
    with pytest.raises(ArgumentError, match="`index` must be an integer from 0 to 1, got 2"):
        source.batch("train", [2])
    with pytest.raises(ArgumentError, match="split"):
        source.batch("all", [0])
    with pytest.raises(ArgumentError, match=r"\(height, width\)"):
        dataset.source(size=112)


def test_a_split_without_videos_is_refused(tmp_path):
    source = read_dataset(make_dataset(tmp_path, splits="video,split\ndunk/a,train\n")).source()
    assert source.count("test") == 0
    with pytest.raises(ArgumentError, match="'test', which has none"):
        source.batch("test", [0])


def test_a_damaged_video_is_named(tmp_path):
    folder = make_dataset(tmp_path)
    (folder / "videos/surf/c.mp4").write_bytes(b"no video")
    with pytest.raises(VideoError, match=r"surf/c\.mp4"):
        read_dataset(folder).source().batch("train", [0, 1])


def test_videos_splits_and_attributes_are_its_fingerprint(dataset, tmp_path):
    same = read_dataset(make_dataset(tmp_path))
    assert fingerprint(same.source()) == fingerprint(dataset.source(frames=8, workers=1)), "wherever they lie"
    first, *others = dataset.videos
    for change in ({"name": "videos/dunk/other.mp4"}, {"split": None}, {"attributes": ~first.attributes}):
        other = replace(dataset, videos=(replace(first, **change), *others))
        assert fingerprint(other.source()) != fingerprint(dataset.source()), change
