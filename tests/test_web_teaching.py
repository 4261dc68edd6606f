import numpy as np
import pytest
import torch

from toy_explainer import tiny_classifier, tiny_explainer
from whytube.errors import ArgumentError, DataError
from whytube.search.regions import RegionSearch
from whytube.tubes import Tube
from whytube.web.taught import open_model
from whytube.web.teaching import Drawn, DrawnSource, teach


class Desk:
    """A worker's desk that notes how far the job is."""

    def __init__(self, model):
        self.model, self.told = model, []

    def progress(self, done, total, text=""):
        self.told.append((done, total, text))


@pytest.fixture
def clip(tmp_path):
    """Give a clip as decoding.py writes it: two frames of 16 x 16, of a video of 32 x 32."""
    path = tmp_path / "clip.npz"
    pixels = torch.randint(0, 255, (3, 2, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    indices = np.array([0, 5])
    rate = np.array([10.0, 1.0])
    np.savez(path, frames=pixels.numpy(), indices=indices, times=indices / 10, size=np.array([32, 32]), rate=rate)
    return str(path)


def tube(frames, box):
    return Tube(np.array(frames), np.array([box] * len(frames), dtype=float))


def test_boxes_come_in_pixels_and_frames_of_the_clip(clip):
    explainer = tiny_explainer()
    videos = [
        Drawn(clip, explainer.classes[1], {"word 1": False, "hat": True}, {"hat": tube(range(6), [4, 8, 16, 32])}),
        Drawn(clip, explainer.classes[0], {"hat": False}, {}),
    ]
    source = DrawnSource(videos, explainer)
    assert source.classes == explainer.classes[:2]
    assert source.attribute_names == ("word 1", "hat")
    assert source.table.tolist() == [[True, False], [True, True]], "word 1 as the explainer has it, hat by its videos"
    assert (source.count("train"), source.count("test"), source.boxed("train"), source.boxed("val")) == (2, 0, [0], [])
    batch = source.batch("train", [0, 1])
    assert batch.clips.shape == (2, 3, 2, 16, 16)
    assert batch.labels.tolist() == [1, 0]
    assert batch.attributes.tolist() == [[False, True], [True, False]], "what is said of a video comes before its class"
    assert batch.boxes[0]["hat"].tolist() == [[2, 4, 8, 16]] * 2
    assert batch.boxes[1] == {}
    with pytest.raises(LookupError, match="only clips of 'train'"):
        source.batch("test", [0])


def inputs(clip, folder, **more):
    box = {"frames": [0, 5], "boxes": [[4, 8, 16, 32]] * 2}
    video = {"clip": clip, "label": None, "present": {"hat": True}, "tubes": {"hat": box}}
    return {"videos": [video, video], "folder": str(folder), "base": "demo", "asked": None, "steps": 2, **more}


def test_what_was_taught_is_kept_and_told(clip, tmp_path):
    desk = Desk(tiny_explainer())
    asked = {"clip": clip, "name": "a.mp4", "hash": "ab", "why": None, "why_not": None}
    outcome = teach(inputs(clip, tmp_path / "taught", asked=asked), desk)
    (word,) = outcome.value["words"]
    assert (word["word"], word["new"], word["clips"]) == ("hat", True, 2)
    assert {path.name for path in (tmp_path / "taught").iterdir()} == {"explainer.safetensors", "base.json"}
    assert outcome.document["model"]["attributes"] == [*desk.model.attribute_names, "hat"]
    assert outcome.document["before_hash"] != outcome.document["model"]["hash"]
    assert outcome.document["after"]["source"] == "a.mp4"
    shares = [done / total for done, total, _ in desk.told]
    assert shares == sorted(shares)
    assert desk.told[-1][2] == "asking again"


def test_what_cannot_be_taught_says_why(clip, tmp_path):
    with pytest.raises(ArgumentError, match="without words"):
        teach(inputs(clip, tmp_path / "a"), Desk(RegionSearch(tiny_classifier())))
    wrong = inputs(clip, tmp_path / "b")
    wrong["videos"] = [{**wrong["videos"][0], "label": "juggling"}]
    with pytest.raises(DataError, match="no class 'juggling'"):
        teach(wrong, Desk(tiny_explainer()))


def test_a_model_that_was_not_taught_is_opened_as_ever():
    assert open_model("demo", device="cpu").attribute_names
