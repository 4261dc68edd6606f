import numpy as np
import pytest

from whytube.data.importers.mat import can_read_mat, read_mat
from whytube.errors import DataError


def test_without_scipy_the_user_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("whytube.data.importers.mat.find_spec", lambda name: None)
    assert not can_read_mat()
    with pytest.raises(DataError, match=r"needs scipy, which is not here: pip install 'whytube\[mat\]'"):
        read_mat(tmp_path / "x.mat", "annot")


def test_one_variable_is_read(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    path = tmp_path / "x.mat"
    scipy_io.savemat(path, {"mask": np.eye(3), "annot": {"name": "a", "boxes": np.ones((2, 4))}})
    assert read_mat(path, "mask").tolist() == np.eye(3).tolist()
    assert read_mat(path, "annot")["name"] == "a"
    with pytest.raises(DataError, match="has no variable 'other'"):
        read_mat(path, "other")


def test_what_is_no_matlab_file_is_refused(tmp_path):
    pytest.importorskip("scipy.io")
    path = tmp_path / "x.mat"
    newer = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n" + bytes(500)
    for content in (b"", b"no matlab file " * 40, bytes(1000)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"cannot read .*x\.mat as a MATLAB file"):
            read_mat(path, "annot")
    path.write_bytes(newer)
    with pytest.raises(DataError, match=r"version 7\.3"):
        read_mat(path, "annot")
    with pytest.raises(DataError, match="cannot read"):
        read_mat(tmp_path / "none.mat", "annot")
