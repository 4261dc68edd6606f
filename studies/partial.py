"""Write the results of an evaluation that ended early: those of the clips that were judged, from its saved state.

python studies/partial.py STATE.part.safetensors --classifier FILE --out FILE.json [--commit C --device NAME]

--classifier: the network, or one of its architecture where it is gone. Commit and device stand in the state; those of a
state that was written before they did are told here, and the results say so.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from whytube.evaluation.state import KIND, State, Tally
from whytube.evaluation.suite import summed_up
from whytube.models import load_classifier
from whytube.models.stored import read_header

SETTINGS = ("data", "split", "negatives", "k", "fills", "seen_fills", "area")


def main(words: list[str] | None = None) -> None:
    """Read the command line, sum up, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", type=Path)
    for name in ("classifier", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("commit", "device"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--effort", type=int, help="tubes tried, if it is to be told")
    given = parser.parse_args(words)
    header = read_header(given.state, kind=KIND)
    run, origin = header["run"], header.get("origin") or _told(given, header["run"])
    found = State({name: Tally() for name in run["methods"]}, run, range(run["clips"]), given.state)
    found.load()
    notes = [f"The evaluation ended after {found.done} of {run['clips']} clips."]
    notes += [] if header.get("origin") else ["Commit and device were told, not recorded."]
    origin = dict(origin) | {"settings": {name: run[name] for name in SETTINGS if name in run} | {"clips": found.done}}
    origin |= {"notes": notes, "model": given.state.name.partition(".")[0], "judging_clips": found.judging_clips}
    origin |= {} if given.effort is None else {"search": {"effort": given.effort}}
    found.order = found.order[: found.done]
    found.in_order()
    results = summed_up(found, load_classifier(given.classifier), origin, seed=given.seed, clips=False)
    results.save(given.out)
    print(f"{given.out}: {len(results.methods)} methods, {found.done} clips")


def _told(given: argparse.Namespace, run: dict[str, Any]) -> dict[str, Any]:
    if given.commit is None or given.device is None:
        raise SystemExit(f"{given.state} does not say where it comes from: give --commit and --device")
    return {"commit": given.commit, "device": given.device, "seed": given.seed, "versions": run["versions"]}


if __name__ == "__main__":
    main()
