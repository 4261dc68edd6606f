import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from whytube.data.importers.unpickling import load_arrays
from whytube.errors import DataError

UCF = Path(__file__).parent.parent.parent / "shared" / "data" / "ucf101_24" / "corrected_boxes.pkl"


def read(value, protocol):
    return load_arrays(io.BytesIO(pickle.dumps(value, protocol=protocol)))


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_plain_data_and_arrays_are_read(protocol):
    value = {
        "weights": [np.arange(6, dtype="f4").reshape(2, 3), np.asfortranarray(np.ones((2, 2)))],
        "count": np.int64(3),
        "table": (1, 2.5, "ü", None, True),
        "rows": np.zeros(2, dtype=[("x", "u1"), ("y", "f8")]),
    }
    if protocol == 2:  # there Python 3 writes bytes as a call
        value = {"table": value["table"]}
    found = read(value, protocol)
    assert found.keys() == value.keys()
    assert found["table"] == value["table"]
    if protocol > 2:
        assert all(np.array_equal(a, b) for a, b in zip(found["weights"], value["weights"], strict=True))
        assert found["count"] == 3
        assert found["rows"].dtype == value["rows"].dtype


class Attack:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "value",
    [Attack(os.system, "exit 1"), Attack(eval, "1 + 1"), Path("x"), Attack(getattr, "a", "upper"), np.sum, {1: print}],
)
def test_everything_else_is_refused_before_it_is_called(value):
    with pytest.raises(DataError, match=r"expected plain data and numpy arrays, got .*which could run code"):
        read(value, 4)


OBJECTS = 63
"""The flags of numpy's object dtype."""
RECONSTRUCT, EMPTY = np.ones(1).__reduce__()[:2]


class Flagged:
    """A dtype of long numbers that claims, by its flags, to hold Python objects."""

    def __reduce__(self):
        return np.dtype, ("i8", False, True), (3, "<", None, None, None, -1, -1, OBJECTS)


class Filled:
    """An array that takes this dtype."""

    def __init__(self, dtype, data):
        self.state = 1, (1,), dtype, False, data

    def __reduce__(self):
        return RECONSTRUCT, EMPTY, self.state


@pytest.mark.parametrize(
    "value",
    [
        np.array([{}, []], dtype=object),
        np.zeros(2, dtype=[("x", "O")]),
        np.zeros(2, dtype=[("x", "O", 2)]),
        np.zeros(2, dtype=[("x", [("y", "O")])]),
        Attack(np.ndarray, (2,), "O"),
        Attack(RECONSTRUCT, np.ndarray, (2,), "O"),
        Attack(RECONSTRUCT, np.ndarray, (0,), "O"),
        Attack(np.float64(1).__reduce__()[0], np.dtype("O"), [1]),
        Filled(Flagged(), [{}]),
    ],
    ids=["array", "field", "inner", "nested", "class", "empty", "none", "scalar", "flags and a list"],
)
def test_arrays_of_objects_are_refused_by_every_way_to_make_one(value):
    with pytest.raises(DataError, match="cannot read this pickle"):
        read(value, 4)


def test_flags_of_a_file_are_not_believed():
    """With numpy's dtype it would take the eight bytes for the address of an object."""
    found = read(Filled(Flagged(), (7).to_bytes(8, "little")), 4)
    assert found.tolist() == [7]
    assert not found.dtype.hasobject


@pytest.mark.parametrize(
    "value",
    [
        np.arange(3, dtype=">f4"),
        np.array([1.5, 2], dtype="<f2"),
        np.array([b"a", b"bcd"]),
        np.array(["ab", "ü"]),
        np.array([True, False]),
        np.array([(300, [[1, 2], [3, 4]])], dtype=[("x", ">i2"), ("y", "f4", (2, 2))]),
        np.array([(1, 2)], dtype=np.dtype([("x", "i1"), ("y", "f8")], align=True)),
        np.float32(0.5),
    ],
    ids=lambda value: str(value.dtype),
)
def test_kinds_of_numbers_are_read_as_numpy_reads_them(value):
    found, expected = read(value, 4), pickle.loads(pickle.dumps(value))
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("data", [b"", b"junk", pickle.dumps(np.ones(9))[:60], b"\x80\x04N0."])
def test_damaged_files(data):
    with pytest.raises(DataError, match="it is damaged or no pickle"):
        load_arrays(io.BytesIO(data))


def test_the_message_names_the_file(tmp_path):
    path = tmp_path / "boxes.pkl"
    path.write_bytes(pickle.dumps(print))
    with path.open("rb") as file, pytest.raises(DataError, match=r"cannot read .*boxes\.pkl.*builtins\.print"):
        load_arrays(file)


@pytest.mark.skipif(not UCF.exists(), reason="UCF101-24's boxes are not here")
def test_a_real_file_of_python_2():
    with UCF.open("rb") as file:
        assert len(load_arrays(file, encoding="latin1")) == 3194
