import pickle

import pytest
import torch

from toy_explainer import tiny_classifier, tiny_explainer
from toy_source import Tints
from whytube.errors import ModelError
from whytube.models import load_explainer, save_classifier, save_explainer
from whytube.models.stored import load_tensors, read_header, save_tensors
from whytube.search.verify import ask


@pytest.fixture
def explainer():
    made = tiny_explainer("two-sided")
    made.scores.standardise([torch.rand(16), torch.rand(32)], [torch.rand(16), torch.rand(32)])
    return made


@pytest.fixture
def path(explainer, tmp_path):
    about = {"provenance": {"data": "tints"}, "recipe": {"lr": 0.1}, "metrics": {"loss": 1.5}}
    return save_explainer(tmp_path / "e.safetensors", explainer, **about)


def test_a_loaded_explainer_answers_the_same(explainer, path):
    loaded = load_explainer(path, explainer.classifier)
    assert loaded.classifier is explainer.classifier
    assert loaded.classes == Tints.classes
    assert loaded.attribute_names == explainer.attribute_names
    assert loaded.objective == loaded.name == "two-sided"
    assert torch.equal(loaded.table, explainer.table)
    assert not loaded.scores.training
    question = ask(explainer.classifier, Tints().batch("test", range(2)).clips)
    first, second = explainer(question, 2), loaded(question, 2)
    assert torch.equal(first.boxes, second.boxes)
    assert torch.equal(first.attribute_ids, second.attribute_ids)
    assert torch.equal(first.scores, second.scores)


def test_the_single_shape_is_kept(tmp_path):
    made = tiny_explainer("paper", shapes="single")
    path = save_explainer(tmp_path / "single.safetensors", made, provenance={})
    assert read_header(path, kind="explainer")["shapes"] == "single"
    loaded = load_explainer(path, made.classifier)
    assert loaded.scores.forms == made.scores.forms
    question = ask(made.classifier, Tints().batch("test", range(2)).clips)
    assert torch.equal(loaded(question, 2).boxes, made(question, 2).boxes)


def test_a_file_from_before_shapes_were_kept_has_several(explainer, path):
    tensors, header = load_tensors(path, kind="explainer")
    assert header.pop("shapes") == "multiple"
    save_tensors(path, tensors, header, kind="explainer")
    assert load_explainer(path, explainer.classifier).scores.forms.count == 8
    save_tensors(path, tensors, header | {"shapes": "round"}, kind="explainer")
    with pytest.raises(ModelError, match="`shapes` must be one of"):
        load_explainer(path, explainer.classifier)


def test_the_header_tells_how_it_came_about(path):
    header = read_header(path, kind="explainer")
    assert header["provenance"] == {"data": "tints"}
    assert header["metrics"] == {"loss": 1.5}
    assert header["objective"] == "two-sided"
    assert header["recipe"] == {"lr": 0.1}


def test_a_file_from_before_recipes_were_kept_is_read(explainer, path):
    tensors, header = load_tensors(path, kind="explainer")
    del header["recipe"]
    save_tensors(path, tensors, header, kind="explainer")
    assert load_explainer(path, explainer.classifier).attribute_names == explainer.attribute_names


def test_a_class_bias_is_kept(tmp_path):
    made = tiny_explainer("paper")
    loaded = load_explainer(save_explainer(tmp_path / "e.safetensors", made, provenance={}), made.classifier)
    assert loaded.objective == "paper"
    assert torch.equal(loaded.scores.class_bias, made.scores.class_bias)


def test_what_was_called_paper_before_it_had_a_class_bias_is_paper_sgd_now(tmp_path):
    made = tiny_explainer("paper-sgd")
    path = save_explainer(tmp_path / "e.safetensors", made, provenance={})
    tensors, header = load_tensors(path, kind="explainer")
    save_tensors(path, tensors, header | {"objective": "paper"}, kind="explainer")
    loaded = load_explainer(path, made.classifier)
    assert loaded.objective == loaded.name == "paper-sgd"
    question = ask(made.classifier, Tints().batch("test", range(2)).clips)
    assert torch.equal(loaded(question, 2).boxes, made(question, 2).boxes)
    assert torch.equal(loaded(question, 2).scores, made(question, 2).scores)


def test_another_classifier_is_refused(path):
    with pytest.raises(ModelError, match="it explains other classes than the classifier's"):
        load_explainer(path, tiny_classifier(("a", "b", "c")))
    with pytest.raises(ModelError, match="it explains other classes"):
        load_explainer(path, tiny_classifier(tuple(reversed(Tints.classes))))
    wide = tiny_classifier().__class__(Tints.classes, width=1 / 8, frames=2, size=(16, 16))
    with pytest.raises(ModelError, match="it was trained for another classifier"):
        load_explainer(path, wide)


def test_scores_that_do_not_fit_the_maps_are_refused(path):
    tensors, header = load_tensors(path, kind="explainer")
    del header["classifier"]  # as files had it before there were fingerprints
    save_tensors(path, tensors, header, kind="explainer")
    wide = tiny_classifier().__class__(Tints.classes, width=1 / 8, frames=2, size=(16, 16))
    with pytest.raises(ModelError, match="it does not fit the classifier's maps"):
        load_explainer(path, wide)


def test_another_kind_of_file_is_refused(explainer, tmp_path):
    path = save_classifier(tmp_path / "c.safetensors", explainer.classifier, provenance={})
    with pytest.raises(ModelError, match="expected the weights of kind 'explainer', got 'classifier'"):
        load_explainer(path, explainer.classifier)
    with pytest.raises(ModelError, match="there is no such file"):
        load_explainer(tmp_path / "none.safetensors", explainer.classifier)


def test_a_pickle_is_not_opened(explainer, tmp_path):
    class Harmful:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was opened",))

    path = tmp_path / "e.safetensors"
    path.write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(ModelError, match="a pickle can run code"):
        load_explainer(path, explainer.classifier)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "best"}, "its header is damaged .*unknown objective 'best'"),
        ({"table": [[1, 0], [1]]}, "its header is damaged"),
        ({"table": [[1, 0, 1, 0]]}, "`table` must be"),
        ({"attributes": ["one"]}, "it does not fit"),
        ({"attributes": None}, "its header is damaged"),
        ({"classes": "missing"}, "its header is damaged .*classes"),
    ],
)
def test_damaged_headers_are_said_to_be(explainer, path, change, message):
    tensors, header = load_tensors(path, kind="explainer")
    header |= change
    if header["classes"] == "missing":
        del header["classes"]
    save_tensors(path, tensors, header, kind="explainer")
    with pytest.raises(ModelError, match=message):
        load_explainer(path, explainer.classifier)
