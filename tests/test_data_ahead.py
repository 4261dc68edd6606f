"""Batches that are read ahead."""

import threading

import pytest
import torch

from toy_source import Tints
from whytube.data.ahead import Ahead
from whytube.errors import DataError

CPU = torch.device("cpu")


class Watched(Tints):
    """Says when a batch was asked for, by which thread, and waits until it may be read."""

    def __init__(self):
        super().__init__(12)
        self.threads, self.may_read, self.was_asked = set(), threading.Event(), threading.Semaphore(0)

    def batch(self, split, indices, device="cpu"):
        self.was_asked.release()
        self.threads.add(threading.current_thread())
        assert self.may_read.wait(30)
        return super().batch(split, indices, device)


def test_batches_are_read_before_they_are_asked_for_in_order():
    source = Watched()
    with Ahead(source) as ahead:
        ahead.expect("train", [0, 1], CPU)
        ahead.expect("train", [2, 3], CPU)
        ahead.expect("train", [0, 1], CPU)  # is being read
        assert source.was_asked.acquire(timeout=30), "nobody asked yet"
        source.may_read.set()
        for indices in ([0, 1], [2, 3], [4, 5]):
            found, expected = ahead.batch("train", indices, CPU), Tints(12).batch("train", indices)
            assert torch.equal(found.clips, expected.clips)
            assert torch.equal(found.labels, expected.labels)
        assert ahead.batch("val", [0]).clips.shape[0] == 1, "one that nobody expected"
        assert source.asked == [("train", [0, 1]), ("train", [2, 3]), ("train", [4, 5]), ("val", [0])]
        assert (ahead.count("train"), ahead.classes) == (12, Tints.classes)
        assert ahead.waited > 0
    assert len(source.threads) == 1
    assert threading.current_thread() not in source.threads


def test_what_was_not_begun_is_not_read_at_the_end():
    source = Watched()
    with Ahead(source) as ahead:
        for index in range(3):
            ahead.expect("train", [index], CPU)
        assert source.was_asked.acquire(timeout=30)
        threading.Timer(0.2, source.may_read.set).start()
    assert [indices for _, indices in source.asked] == [[0]]


class Begun(Tints):
    """Can begin batches."""

    def __init__(self):
        super().__init__(12)
        self.events = []

    def begin(self, split, indices, device):
        self.events.append(("begun", indices))

        def given():
            self.events.append(("given", indices))
            return self.batch(split, indices, device)

        return given


def test_a_source_that_can_begin_batches_is_told_of_each_at_once():
    source = Begun()
    with Ahead(source) as ahead:
        for index in range(2):
            ahead.expect("train", [index], CPU)
            assert ("begun", [index]) in source.events
        found = [ahead.batch("train", [index], CPU) for index in range(2)]
    assert [event for event in source.events if event[0] == "begun"] == [("begun", [0]), ("begun", [1])]
    assert all(torch.equal(f.clips, Tints(12).batch("train", [i]).clips) for i, f in enumerate(found))


class Broken(Tints):
    def batch(self, split, indices, device="cpu"):
        raise DataError("clip 3 is broken")


def test_a_failure_comes_to_who_asks():
    with Ahead(Broken(5)) as ahead:
        ahead.expect("train", [3], CPU)
        with pytest.raises(DataError, match="clip 3 is broken"):
            ahead.batch("train", [3], CPU)


@pytest.mark.gpu
def test_batches_on_a_gpu_are_those_of_the_source():
    device = torch.device("cuda")
    with Ahead(Tints(12)) as ahead:
        for step in range(4):
            ahead.expect("train", [step + 1], device)
            found, expected = ahead.batch("train", [step], device), Tints(12).batch("train", [step])
            assert found.clips.is_cuda
            assert torch.equal(found.clips.cpu(), expected.clips)
