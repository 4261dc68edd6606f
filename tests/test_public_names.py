"""The names that users rely on: adding one is a decision, losing one is a break."""

import whytube

NAMES = {
    "ArgumentError",
    "Explainer",
    "Explanation",
    "MaxSubpathPool",
    "Subpath",
    "WhytubeError",
    "explain",
    "explain_all",
    "load_model",
    "max_subpath",
    "max_subpath_difference",
    "min_subpath",
    "min_subpath_difference",
    "path_sum",
    "top_subpaths",
    "wrap",
}


def test_exported_names():
    assert set(whytube.__all__) == NAMES
    assert all(getattr(whytube, name) is not None for name in NAMES)
    assert not hasattr(whytube, "no_such_name")
