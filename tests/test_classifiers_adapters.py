"""Networks of transformers and torchvision, small and with random weights."""

import json

import pytest
import torch

from toy_networks import CLASSES, made_clip
from whytube import explain
from whytube.classifiers.adapters import from_hugging_face, from_torchvision
from whytube.classifiers.layers import hidden, watching
from whytube.errors import ArgumentError, ModelError

SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 32}
HALF = {"mean": (0.5,) * 3, "std": (0.5,) * 3}


def hugging_face(kind, seed=0, **changes):
    transformers = pytest.importorskip("transformers")
    own = {
        "VideoMAE": {"num_frames": 8, "patch_size": 8, "tubelet_size": 2},
        "Timesformer": {"num_frames": 4, "patch_size": 8},
        "Vivit": {"num_frames": 8, "tubelet_size": [2, 8, 8]},
    }[kind]
    config = getattr(transformers, f"{kind}Config")(**SIZES | own | changes, id2label=dict(enumerate(CLASSES)))
    torch.manual_seed(seed)
    return getattr(transformers, f"{kind}ForVideoClassification")(config).eval()


@pytest.mark.parametrize(
    ("kind", "changes", "layers"),
    [
        ("VideoMAE", {}, ("videomae.encoder.layer.1", "videomae.encoder.layer.2")),
        ("VideoMAE", {"use_mean_pooling": False}, ("videomae.encoder.layer.0", "videomae.encoder.layer.1")),
        ("Timesformer", {}, ("timesformer.encoder.layer.0", "timesformer.encoder.layer.1")),
        ("Timesformer", {"attention_type": "joint_space_time"}, None),
        ("Vivit", {}, ("vivit.layers.0", "vivit.layers.1")),
    ],
)
def test_hugging_face_networks_are_explained(kind, changes, layers):
    model = from_hugging_face(hugging_face(kind, **changes), **HALF)
    assert model.classes == CLASSES
    assert layers is None or model.layers == layers, "where only one token is read, the last block's cells are not"
    assert model.map_shapes() == ((16, 4, 4, 4),) * 2
    clip = made_clip(model)
    given = (clip.frames[None].transpose(1, 2) - 0.5) / 0.5
    with torch.no_grad():
        torch.testing.assert_close(model(clip.frames[None]), model.model(given).logits)
    explanation = explain(clip, model)
    assert explanation.reasons
    assert all(len(reason.tube) and len(reason.evidence) == 3 for reason in explanation.reasons)


@pytest.mark.parametrize("kind", ["VideoMAE", "Timesformer", "Vivit"])
def test_a_patch_that_changes_changes_its_own_cell(kind):
    """Before any attention a token sees one patch only; the embeddings' tokens stand as the blocks' do."""
    network = hugging_face(kind)
    model = from_hugging_face(network, **HALF)
    layout = next(iter(model.layouts.values()))
    embeddings = network.get_submodule(f"{kind.lower()}.embeddings")

    def cells(clips):
        seen = []
        with watching({"embeddings": embeddings}, lambda _, output: seen.append(hidden(output))), torch.no_grad():
            model(clips)
        return layout.to_map(seen[0], 1)

    plain = torch.full((1, 3, model.frames, *model.size), 0.3)
    step = model.frames // 4
    for t, i, j in ((0, 0, 3), (1, 2, 0), (3, 3, 1)):
        changed = plain.clone()
        changed[:, :, t * step : (t + 1) * step, 8 * i : 8 * i + 8, 8 * j : 8 * j + 8] = 0.9
        moved = (cells(changed) - cells(plain)).abs().amax(1)[0] > 1e-5
        assert moved.nonzero().tolist() == [[t, i, j]]


def test_a_saved_folder_says_how_to_normalise(tmp_path):
    network = hugging_face("VideoMAE")
    network.save_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match=r"give `mean` and `std`: there is no preprocessor_config\.json"):
        from_hugging_face(tmp_path)
    said = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.2, 0.25], "do_rescale": True, "rescale_factor": 1 / 255}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    model = from_hugging_face(tmp_path)
    torch.testing.assert_close(model.mean.flatten(), torch.tensor([0.4, 0.5, 0.6]))
    torch.testing.assert_close(model.std.flatten(), torch.tensor([0.2, 0.2, 0.25]))
    clip = made_clip(model)
    again = from_hugging_face(network, mean=said["image_mean"], std=said["image_std"])
    torch.testing.assert_close(model(clip.frames[None]), again(clip.frames[None]))
    # ViViT's: bytes / 127.5 - 1, and then (x - .5) / .5.
    both = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "rescale_factor": 1 / 127.5, "offset": True}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(both))
    shown = torch.rand(1, 3, 1, 2, 2)
    model = from_hugging_face(tmp_path)
    torch.testing.assert_close((shown - model.mean) / model.std, (shown * 255 / 127.5 - 1 - 0.5) / 0.5)
    (tmp_path / "preprocessor_config.json").write_text("{}")
    with pytest.raises(ModelError, match="it says no image_mean and image_std"):
        from_hugging_face(tmp_path)


def test_what_is_no_video_classifier_of_transformers(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(ModelError, match="as a video classifier of transformers"):
        from_hugging_face(tmp_path)
    with pytest.raises(ArgumentError, match="one whose config has no num_frames"):
        from_hugging_face(torch.nn.Identity())


@pytest.mark.parametrize(
    ("name", "frames", "size", "grids"),
    [
        ("r3d_18", 8, 64, ((2, 8, 8), (1, 4, 4))),
        ("mc3_18", 4, 64, ((4, 8, 8), (4, 4, 4))),
        ("r2plus1d_18", 8, 64, ((2, 8, 8), (1, 4, 4))),
        ("s3d", 16, 224, ((4, 14, 14), (2, 7, 7))),
        ("mvit_v1_b", 16, 224, ((8, 14, 14), (8, 7, 7))),
        ("mvit_v2_s", 16, 224, ((8, 14, 14), (8, 7, 7))),
        ("swin3d_t", 8, 64, ((4, 4, 4), (4, 2, 2))),
    ],
)
def test_torchvision_networks_are_explained(name, frames, size, grids):
    """Maps of two scales; classes by hand, as random weights know none."""
    models = pytest.importorskip("torchvision.models")
    torch.manual_seed(0)
    network = models.get_model(name, weights=None, num_classes=3)
    model = from_torchvision(network, classes=CLASSES, frames=frames, size=(size, size)).eval()
    assert tuple(shape[1:] for shape in model.map_shapes()) == grids
    clip = made_clip(model)
    with torch.no_grad():
        features = model.features(clip.frames[None])
        torch.testing.assert_close(features.logits, model(clip.frames[None]))
    reasons = explain(clip, model).reasons
    assert reasons, "there is always a region to ask about"
    assert all(len(reason.tube) and len(reason.evidence) == 3 for reason in reasons)


def test_torchvision_names_and_weights():
    models = pytest.importorskip("torchvision.models")
    with pytest.raises(ArgumentError, match="unknown video network of torchvision 'r3d_81'"):
        from_torchvision("r3d_81")
    with pytest.raises(ArgumentError, match="give `classes`"):
        from_torchvision("r3d_18")
    weights = models.video.R3D_18_Weights.KINETICS400_V1
    model = from_torchvision(models.get_model("r3d_18", weights=None), weights=weights)
    assert len(model.classes) == 400
    assert (model.frames, model.size) == (16, (112, 112))
    assert model.mean.flatten().tolist() == pytest.approx([0.43216, 0.394666, 0.37645])


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("r3d_18", ((256, 4, 14, 14), (512, 2, 7, 7))),
        ("mvit_v2_s", ((384, 8, 14, 14), (768, 8, 7, 7))),
        ("swin3d_t", ((384, 16, 14, 14), (768, 16, 7, 7))),
    ],
)
def test_a_bare_torchvision_network_takes_what_is_published(name, shapes):
    models = pytest.importorskip("torchvision.models")
    model = from_torchvision(models.get_model(name, num_classes=3), classes=CLASSES)
    published = models.get_model_weights(name).DEFAULT.transforms()
    assert model.mean.flatten().tolist() == pytest.approx(published.mean)
    assert model.std.flatten().tolist() == pytest.approx(published.std)
    assert model.size == tuple(published.crop_size)
    assert model.map_shapes() == shapes
