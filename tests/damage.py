"""Damages documents and model files in seeded ways."""

import copy
import json

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save

DEEP = "[" * 10_000 + "]" * 10_000


def nest(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


ODD = (
    None, True, 0, -1, 1.5, 10**400, -(10**18), float("nan"), float("inf"), "", "x" * 10_000, "\ud800", [], {}, [[]],
    [1, "a"], {"a": 1}, [None] * 5, nest(40), nest(250), {"kind": nest(120)}, "1e999", [[1, 2], [3]], [10**400],
)  # fmt: skip


def places(tree, path=()):
    """Every place in a tree of JSON, as keys from its root."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        yield (*path, key)
        yield from places(value, (*path, key))


def damaged_tree(tree, rng):
    """Change, remove, add or copy something at one to three places."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.integers(1, 4)):
        known = list(places(tree))
        if not known:
            break
        *above, key = known[rng.integers(len(known))]
        parent = tree
        for step in above:
            parent = parent[step]
        how = rng.integers(5)
        if how == 0:
            del parent[key]
        elif how == 1 and isinstance(parent, dict):
            parent["surplus"] = ODD[rng.integers(len(ODD))]
        elif how == 2 and isinstance(parent, list):
            parent.append(parent[key])
        else:
            parent[key] = copy.deepcopy(ODD[rng.integers(len(ODD))])
    return tree


def damaged_bytes(data, rng):
    """Cut off, turned or doubled bytes."""
    how = rng.integers(4)
    if how == 0:
        return data[: rng.integers(len(data))]
    if how == 1:
        return data + data[: rng.integers(len(data))]
    turned = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        turned[rng.integers(min(len(data), 4000) if how == 2 else len(data))] = rng.integers(256)
    return bytes(turned)


def damaged_json(tree, rng):
    """Return the bytes of a JSON file that is not as it should be."""
    how = rng.integers(6)
    if how == 0:
        return damaged_bytes(json.dumps(tree).encode(), rng)
    if how == 1:  # something far too deep somewhere
        text = json.dumps(tree)
        at = [i for i, letter in enumerate(text) if letter.isdigit()]
        cut = at[rng.integers(len(at))]
        return (text[:cut] + DEEP + text[cut + 1 :]).encode()
    if how == 2:
        text = json.dumps(tree)
        key = json.dumps(next(iter(tree)))
        return text.replace(key, f"{key}: 1, {key}", 1).encode()
    return json.dumps(damaged_tree(tree, rng)).encode()


def damaged_model(path, rng):
    """Return the bytes of a model's file with a damaged header, other tensors, or broken bytes."""
    how = rng.integers(4)
    if how == 0:
        return damaged_bytes(path.read_bytes(), rng)
    with safe_open(path, framework="pt") as file:
        header = file.metadata()["whytube"]
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if how == 1:
        header = damaged_json(json.loads(header), rng).decode("utf-8", "replace")
    for _ in range(rng.integers(1, 3) if how > 1 else 0):
        tensors = damaged_tensors(tensors, rng)
    return save(tensors, {"whytube": header})


def damaged_tensors(tensors, rng):
    tensors = dict(tensors)
    name = list(tensors)[rng.integers(len(tensors))]
    old = tensors[name]
    changes = (
        lambda: None,
        lambda: old.reshape(-1)[1:].clone(),
        lambda: old[None].clone(),
        lambda: torch.zeros(0),
        lambda: old.double(),
        lambda: old.long(),
        lambda: old.bool(),
        lambda: old.to(torch.complex64),
        lambda: old.float().to(torch.float8_e4m3fn),
        lambda: torch.full_like(old.float(), float("nan")),
        lambda: torch.full_like(old.float(), float("inf")),
    )
    new = changes[rng.integers(len(changes))]()
    if new is None:
        del tensors[name]
    else:
        tensors[name] = new
    if rng.integers(3) == 0:
        tensors[f"{name}.more"] = torch.ones(2)
    return tensors


def variants(make, number=1000, seed=0):
    """Yield that many damaged variants; `make` takes a generator of random numbers."""
    for place in range(number):
        yield make(np.random.default_rng([seed, place]))
