import json

import pytest
import torch
from safetensors.torch import save_file

from whytube.errors import ArgumentError, ModelError
from whytube.models.stored import load_tensors, read_header, save_tensors

TENSORS = {"a": torch.arange(6.0).view(2, 3), "count": torch.tensor(3), "half": torch.ones(2, dtype=torch.bfloat16)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def test_what_is_written_is_read(path):
    header = {"classes": ["a", "ü"], "lr": 0.1, "nested": {"none": None}}
    assert save_tensors(path, TENSORS, header, kind="explainer") == path
    tensors, read = load_tensors(path, kind="explainer")
    assert read == header == read_header(path, kind="explainer")
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_shared_and_strided_tensors(path):
    base = torch.rand(4, 6)
    save_tensors(path, {"x": base, "view": base[:, ::2].T}, {}, kind="k")
    tensors, _ = load_tensors(path, kind="k")
    assert torch.equal(tensors["view"], base[:, ::2].T)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    save_tensors(path, TENSORS, {}, kind="k")

    def broken(*_args, **_kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("whytube.models.stored.save_file", broken)
    with pytest.raises(ModelError, match="no space left"):
        save_tensors(path, {}, {}, kind="k")
    assert load_tensors(path, kind="k")[0].keys() == TENSORS.keys()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_values_that_are_not_finite_are_refused_both_ways(path, bad):
    weights = {"fc.weight": torch.tensor([1.0, bad])}
    with pytest.raises(ModelError, match=r"cannot write .*'fc.weight' holds values that are NaN or infinite"):
        save_tensors(path, weights, {}, kind="k")
    assert not path.exists()
    save_file(weights, path, metadata={"whytube": json.dumps({"schema": 1, "kind": "k"})})
    with pytest.raises(ModelError, match=r"cannot use .*'fc.weight' holds"):
        load_tensors(path, kind="k")


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.ckpt", "model.safetensors"])
def test_pickles_are_refused_by_name_and_by_content(tmp_path, name):
    torch.save(TENSORS, tmp_path / name)
    with pytest.raises(ModelError, match="Convert it to safetensors"):
        load_tensors(tmp_path / name, kind="k")


@pytest.mark.parametrize("kept", [0, 4, 40, -5])
def test_files_that_are_cut_off(path, kept):
    save_tensors(path, TENSORS, {}, kind="k")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelError, match="cannot read"):
        load_tensors(path, kind="k")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (None, "it has no whytube header"),
        ({"whytube": "{"}, "its whytube header is damaged"),
        ({"whytube": "[1]"}, "its whytube header is damaged"),
        ({"whytube": '{"kind": "k"}'}, "its whytube header is damaged"),
        ({"whytube": '{"schema": 2, "kind": "k"}'}, "its schema is 2, this whytube knows 1"),
        ({"whytube": '{"schema": 1, "kind": "other"}'}, "expected the weights of kind 'k', got 'other'"),
    ],
)
def test_headers_that_are_not_ours(path, metadata, message):
    save_file({"a": torch.ones(1)}, path, metadata=metadata)
    with pytest.raises(ModelError, match=message):
        load_tensors(path, kind="k")


def test_no_such_file_or_folder(tmp_path):
    with pytest.raises(ModelError, match="there is no such file"):
        load_tensors(tmp_path / "none.safetensors", kind="k")
    with pytest.raises(ModelError, match="there is no such file"):
        load_tensors(tmp_path, kind="k")
    with pytest.raises(ModelError, match="there is no folder"):
        save_tensors(tmp_path / "no" / "model.safetensors", TENSORS, {}, kind="k")


def test_headers_must_be_json_and_names_must_say_safetensors(path):
    with pytest.raises(ArgumentError, match="`header` must be values that JSON can hold"):
        save_tensors(path, TENSORS, {"accuracy": float("nan")}, kind="k")
    with pytest.raises(ArgumentError, match="`header` must be values that JSON can hold"):
        save_tensors(path, TENSORS, {"lr": torch.ones(1)}, kind="k")
    with pytest.raises(ArgumentError, match=r"ends in \.safetensors"):
        save_tensors(path.with_suffix(".pt"), TENSORS, {}, kind="k")
