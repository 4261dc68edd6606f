from whytube.training import state
from whytube.training.state import Saving


def test_a_run_is_saved_every_so_many_records_and_at_its_end():
    saving = Saving(3)
    assert [saving.due(n, end=n == 7) for n in range(1, 8)] == [False, False, True, False, False, True, True]


def test_a_slow_run_is_saved_by_the_clock(monkeypatch):
    now = 100.0
    monkeypatch.setattr(state.time, "monotonic", lambda: now)
    saving = Saving(1000)
    assert not saving.due(1, end=False)
    now += Saving.SECONDS
    assert saving.due(2, end=False)
    assert not saving.due(3, end=False), "the clock starts again"
