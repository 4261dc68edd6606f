from pathlib import Path

import pytest

from video_files import make_seq
from whytube.data.importers import import_olympic_sports
from whytube.data.layout import check_dataset, read_dataset
from whytube.errors import DataError

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "olympic_sports"
NAMES = (
    "long_jump/aB-_cD12345_00001_00070",
    "long_jump/xyzxyzxyz12_00100_00170",
    "diving_platfrom_10m/Q_cD_123456_00001_00050",
)


def write_lists(folder, train, test):
    for name, lines in (("train", train), ("test", test)):
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return {"train": folder / "train.txt", "test": folder / "test.txt"}


@pytest.fixture
def videos(tmp_path):
    for name in (*NAMES, "vault/unlisted_00001_00009"):
        path = tmp_path / "olympic" / f"{name}.seq"
        path.parent.mkdir(parents=True, exist_ok=True)
        make_seq(path, 3)
    return tmp_path / "olympic"


def test_seq_files_are_indexed_by_the_users_lists(videos, tmp_path):
    lists = write_lists(
        tmp_path, [f"{NAMES[0]}.seq", "diving_platform_10m/Q_cD_123456_00001_00050"], [NAMES[1], "vault/gone"]
    )
    made = import_olympic_sports(videos, tmp_path / "out", **lists)
    assert (made.videos, made.missing) == ({"train": 2, "val": 0, "test": 1}, ("vault/gone",))
    assert f"1 videos under {videos} are in neither list" in str(made)
    assert check_dataset(tmp_path / "out").ok
    data = read_dataset(tmp_path / "out")
    assert (len(data.classes), len(data.attribute_names)) == (16, 40)
    assert {data.classes[item.label] for item in data.items("train")} == {"long_jump", "diving_platform_10m"}
    assert data.source(frames=2, size=(24, 32)).batch("train", [0, 1]).clips.shape == (2, 3, 2, 24, 32)


@pytest.mark.parametrize("written", ["diving_platfrom_10m", "diving_platform_10m", "Diving_Platfrom_10m"])
def test_the_misspelt_folder_may_be_written_either_way(videos, tmp_path, written):
    lists = write_lists(tmp_path, [f"{written}/Q_cD_123456_00001_00050"], [NAMES[0]])
    assert import_olympic_sports(videos, tmp_path / "out", **lists).missing == ()


def test_clips_of_one_source_video_stay_together(videos, tmp_path):
    twin = "long_jump/aB-_cD12345_00100_00170"
    make_seq(videos / f"{twin}.seq", 3)
    lists = write_lists(tmp_path, [NAMES[0], NAMES[1], twin], [NAMES[2]])
    import_olympic_sports(videos, tmp_path / "out", **lists, val=0.5)
    split = {item.path.name[:3]: item.split for item in read_dataset(tmp_path / "out").videos}
    assert set(split.values()) == {"train", "val", "test"}
    together = {item.split for item in read_dataset(tmp_path / "out").videos if item.path.name.startswith("aB-")}
    assert len(together) == 1


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ([NAMES[0], "long_jmp/x"], [NAMES[1]], r"train.txt:2: unknown class 'long_jmp'\. Did you mean 'long_jump'"),
        ([NAMES[0]], [NAMES[1], NAMES[0]], r"test.txt:2: .*is listed already, in train"),
        (["vault/none"], ["vault/gone"], "none of the 2 listed videos"),
    ],
)
def test_wrong_lists_write_nothing(videos, tmp_path, train, test, message):
    with pytest.raises(DataError, match=message):
        import_olympic_sports(videos, tmp_path / "out", **write_lists(tmp_path, train, test))
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not REAL.is_dir(), reason="the data set is not at hand")
def test_all_real_names_are_understood(tmp_path):
    names = (REAL / "videos.txt").read_text().split()
    for name in names:
        path = tmp_path / "olympic" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    made = import_olympic_sports(
        tmp_path / "olympic", tmp_path / "out", **write_lists(tmp_path, names[::2], names[1::2])
    )
    assert (made.videos, made.missing) == ({"train": 392, "val": 0, "test": 391}, ())
    assert len({item.label for item in read_dataset(tmp_path / "out").videos}) == 16
