import http.server
import shutil
import ssl
import subprocess
import threading
from urllib.error import URLError

import pytest

from whytube.weights.pip_settings import PipSettings
from whytube.weights.web import Web

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate")


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """Port of a server with a certificate of its own making; 127.0.0.1/there redirects to localhost/here."""
    folder = tmp_path_factory.mktemp("certificate")
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=self"
    command = [*words.split(), "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/there":
                self.send_response(302)
                self.send_header("Location", f"https://localhost:{self.server.server_port}/here")
                self.end_headers()
            else:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"found")

        def log_message(self, *args):
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *args: None  # a client that refuses the certificate hangs up
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")


def read(url, *trusted):
    with Web(PipSettings(trusted_hosts=trusted, timeout=20)).open(url) as answer:
        return answer.read()


def test_a_certificate_that_nobody_signed_is_refused_unless_pip_trusts_the_host(port):
    with pytest.raises(URLError, match="certificate verify failed"):
        read(f"https://127.0.0.1:{port}/here")
    assert read(f"https://127.0.0.1:{port}/here", "127.0.0.1") == b"found"


def test_trust_in_a_host_ends_where_it_redirects_to_another(port):
    with pytest.raises(URLError, match="certificate verify failed"):
        read(f"https://127.0.0.1:{port}/there", "127.0.0.1")
    assert read(f"https://127.0.0.1:{port}/there", "127.0.0.1", "localhost") == b"found"
