"""The names that users rely on: adding one is a decision, losing one is a break."""

import whytube

NAMES = {
    "ArgumentError",
    "Clip",
    "Explainer",
    "Explanation",
    "MaxSubpathPool",
    "Reason",
    "Subpath",
    "Tube",
    "WhytubeError",
    "__version__",
    "classify",
    "contrastive_map",
    "explain",
    "explain_all",
    "explain_rounds",
    "fit_explainer",
    "load_model",
    "max_subpath",
    "max_subpath_difference",
    "min_subpath",
    "min_subpath_difference",
    "path_sum",
    "read_dataset",
    "top_subpaths",
    "what_if",
    "wrap",
}


def test_exported_names():
    assert set(whytube.__all__) == NAMES
    assert all(getattr(whytube, name) is not None for name in NAMES)
    assert not hasattr(whytube, "no_such_name")


def test_dir_shows_the_public_names_alone():
    assert {name for name in dir(whytube) if not name.startswith("__")} == NAMES - {"__version__"}
