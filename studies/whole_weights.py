"""Make one whole float16 file of a classifier that an earlier whytube stored as its difference from other weights.

    python studies/whole_weights.py OLD.safetensors BASE.safetensors OUT.safetensors

OLD names its base and the base's fingerprint; BASE must have that fingerprint. The card goes over, and its provenance
says what was done. An explainer.safetensors beside OLD is loaded with the new classifier, which checks that the two
belong together, and saved again beside OUT. `--full` stores float32, to compare with (compare_weights.py).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from whytube.errors import ModelError
from whytube.models import load_classifier, load_explainer, save_classifier, save_explainer, weights_fingerprint
from whytube.models.files import construct
from whytube.models.stored import load_tensors, read_header


def main(old: Path, base: Path, out: Path, *, half: bool = True) -> Path:
    """Write the whole file, and the explainer where there is one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    changed, header = load_tensors(old, kind="classifier")
    expected = header.get("base")
    if not expected:
        raise ModelError(f"cannot use {old}: it is a whole file already")
    found = weights_fingerprint(base)
    if found != expected["fingerprint"]:
        raise ModelError(
            f"cannot use {base}: {old} differs from {expected['name']} with the fingerprint "
            f"{expected['fingerprint']}, this one has {found}"
        )
    tensors, _ = load_tensors(base, kind="classifier")
    model = construct(header["architecture"], header["classes"], settings=header["settings"])
    model.load_state_dict(tensors | changed)
    done = f"studies/whole_weights.py, from what differs from {expected['name']} {found}"
    about = {name: header[name] for name in ("recipe", "metrics")}
    save_classifier(out, model, provenance=header["provenance"] | {"made whole by": done}, half=half, **about)
    explainer = old.with_name("explainer.safetensors")
    if explainer.exists():
        header = read_header(explainer, kind="explainer")
        about = {name: header.get(name) for name in ("recipe", "metrics")}
        loaded = load_explainer(explainer, load_classifier(out))
        provenance = header["provenance"] | {"saved again by": "studies/whole_weights.py"}
        save_explainer(out.with_name("explainer.safetensors"), loaded, provenance=provenance, **about)
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--full", action="store_true", help="store float32")
    given = parser.parse_args()
    print(main(given.old, given.base, given.out, half=not given.full))
