"""`journee web`: what is served and how, what is not, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import journee_deploy.commands.web
import journee_deploy.page_server
from journee_deploy.bundle import open_bundle
from journee_deploy.commands.main import main
from journee_deploy.commands.web import web
from journee_deploy.page_server import HEADERS, PageServer, find_page, is_loopback
from tests.bundle.small_bundle import write_bundle

ROOT = Path(__file__).parents[2]
NAME = "a bundle"
PAGE = {
    "index.html": b"<!doctype html>",
    "assets/main.js": b"export {};",
    "assets/worker.mjs": b"export {};",
    "assets/ort.wasm": b"\0asm",
    "assets/style.css": b"",
    "assets/thing.onnx": b"?",
}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Served:
    """A server under way, and the folders that it serves."""

    server: PageServer
    page: Path
    bundle: Path

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_address[1], timeout=10)
        try:
            connection.putrequest(method, path, skip_host="host" in headers)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


def write_page(folder: Path) -> Path:
    for name, content in PAGE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    page, root = write_page(tmp_path / "page"), tmp_path / NAME
    write_bundle(root)
    (root / "secret.txt").write_text("secret")
    (tmp_path / "outside.txt").write_text("outside")
    with PageServer(open_bundle(root), page, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Served(server, page, root)
        server.shutdown()
        thread.join()


def test_the_page_learns_its_bundle_and_loads_it(served: Served) -> None:
    assert served.ask("/").body == PAGE["index.html"]
    assert served.ask("/?bundle=x#y").body == PAGE["index.html"]
    place = json.loads(served.ask("/bundle.json").body)["url"]
    assert place == "/models/a%20bundle/"
    assert served.ask(place + "journee.json").body == (served.bundle / "journee.json").read_bytes()
    for name in open_bundle(served.bundle).manifest.files:
        assert served.ask(place + name).body == (served.bundle / name).read_bytes()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/bundle.json", "application/json"),
        ("/assets/main.js", "text/javascript; charset=utf-8"),
        ("/assets/worker.mjs", "text/javascript; charset=utf-8"),
        ("/assets/ort.wasm", "application/wasm"),
        ("/assets/style.css", "text/css; charset=utf-8"),
        ("/assets/thing.onnx", "application/octet-stream"),
        ("/models/a%20bundle/target/tokenizer.json", "application/json"),
        ("/models/a%20bundle/target/onnx/model.onnx_data", "application/octet-stream"),
    ],
)
def test_types_and_lengths(served: Served, path: str, kind: str) -> None:
    got, head = served.ask(path), served.ask(path, "HEAD")
    assert (got.status, got.headers["Content-Type"]) == (200, kind)
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["Content-Length"]) == int(got.headers["Content-Length"]) == len(got.body)
    assert head.headers["ETag"] == got.headers["ETag"]


@pytest.mark.parametrize("path", ["/", "/bundle.json", "/models/a%20bundle/journee.json", "/nothing", "/models/"])
def test_every_answer_isolates_the_page(served: Served, path: str) -> None:
    headers = served.ask(path).headers
    assert {name: headers.get(name) for name in HEADERS} == HEADERS
    assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert "script-src 'self' 'wasm-unsafe-eval';" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/models/a%20bundle/secret.txt", "/models/a%20bundle/", "/models/a%20bundle", "/models/",
        "/models/other/journee.json", "/models/a%20bundle/../page/index.html",
        "/models/a%20bundle/target/../secret.txt", "/models/a%20bundle//journee.json", "/assets/", "/assets",
        "/../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt", "/assets/../../outside.txt",
        "/..%5coutside.txt", "//outside.txt", "/./index.html", "/index.html%00", "/%ff", "/link.txt",
        "/models/a%20bundle/link", "/C:/outside.txt", "//[", "outside.txt", "*",
    ],
)  # fmt: skip
def test_nothing_else_is_served(served: Served, path: str) -> None:
    (served.page / "link.txt").symlink_to(served.page.parent / "outside.txt")
    (served.bundle / "link").symlink_to(served.page.parent / "outside.txt")
    for method in ("GET", "HEAD"):
        answer = served.ask(path, method)
        assert answer.status == 404, answer
        assert b"outside" not in answer.body
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200), ("127.0.0.1:8000", 200), ("localhost", 200), ("LOCALHOST:1", 200), ("localhost.:80", 200),
        ("[::1]:8000", 200), ("evil.example", 421), ("evil.example:8000", 421), ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421), ("localhost@evil.example", 421), ("192.168.1.5", 421), ("8.8.8.8", 421),
        ("", 421), ("[", 421), ("[::1", 421),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/bundle.json", "/models/a%20bundle/journee.json"])
def test_a_site_that_calls_this_machine_by_its_own_name_gets_nothing(
    served: Served, path: str, host: str, status: int
) -> None:
    for method in ("GET", "HEAD"):
        assert served.ask(path, method, host=host).status == status


def test_a_server_for_others_answers_to_any_name(served: Served) -> None:
    served.server.host = "models.example"
    assert served.ask("/", host="models.example").status == 200


def test_a_file_that_became_a_link_leads_nowhere(served: Served) -> None:
    weights = served.bundle / "target/onnx/model.onnx_data"
    weights.unlink()
    weights.symlink_to(served.page.parent / "outside.txt")
    assert served.ask("/models/a%20bundle/target/onnx/model.onnx_data").status == 404


def test_other_methods_are_refused(served: Served) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert served.ask("/", method).status == 501


def test_what_a_browser_has_is_not_sent_again(served: Served) -> None:
    for path in ("/", "/bundle.json", "/models/a%20bundle/target/onnx/model.onnx"):
        first = served.ask(path)
        assert first.headers["Cache-Control"] == "no-cache"
        again = served.ask(path, If_None_Match=f'"other", W/{first.headers["ETag"]}')
        assert (again.status, again.body) == (304, b"")
        assert served.ask(path, If_None_Match='"other"').status == 200
    (served.page / "index.html").write_bytes(b"<!doctype html> changed")
    assert served.ask("/").body.endswith(b"changed")


def test_a_browser_that_leaves_disturbs_nobody(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    (served.page / "large").write_bytes(bytes(2**25))
    with socket.create_connection(("127.0.0.1", served.server.server_address[1])) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close by a reset
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
        connection.recv(100)
    assert served.ask("/").status == 200
    assert capfd.readouterr().err == ""


def test_many_at_once(served: Served) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(served.ask("/assets/ort.wasm").status)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 16


# The command


def test_it_is_a_command_whose_errors_are_plain(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["web", str(tmp_path / "nothing"), "--no-browser"])
    assert done.exit_code == 1
    assert re.search(r"Error: .*nothing: does not exist; a bundle is the folder", done.output)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_bundle(tmp_path / NAME)
    return tmp_path / NAME


def failure(*arguments: object) -> str:
    done = CliRunner().invoke(web, list(map(str, arguments)))
    assert done.exit_code == 1, done.output
    return re.sub(r"\s+", " ", done.output)


def test_without_a_page_it_says_how_to_make_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journee_deploy.commands.web, "find_page", lambda: None)
    assert "the page is not built: run `make web` first" in failure(root, "--no-browser")


def test_the_page_of_the_checkout_goes_before_the_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "journee_deploy"
    package.mkdir()
    monkeypatch.setattr(journee_deploy.page_server, "__file__", str(package / "page_server.py"))
    assert find_page() is None
    installed = write_page(package / "page")
    assert find_page() == installed
    built = write_page(tmp_path / "web/dist/page")
    assert find_page() == built


def test_a_port_in_use_and_a_host_that_is_not_here(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journee_deploy.commands.web, "find_page", lambda: write_page(tmp_path / "page"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = failure(root, "--no-browser", "--port", port)
    assert f"can't listen on 127.0.0.1, port {port}: another program listens there; choose another --port" in said
    assert "choose a --host that this machine has" in failure(root, "--no-browser", "--host", "192.0.2.1")


def test_a_bundle_that_no_page_can_run(root: Path) -> None:
    file = root / "journee.json"
    text = file.read_text().replace('"cache": "concat"', '"cache": "shared"')
    file.write_text(text.replace('"positions": "position_ids"', '"positions": null'))
    assert "the target has no graph with a concatenated cache" in failure(root, "--no-browser")


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("box", False)],
)
def test_who_can_reach_it(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def test_it_serves_until_ctrl_c(root: Path, tmp_path: Path) -> None:
    """A copy of the library with a page of its own, in a process of its own."""
    shutil.copytree(ROOT / "journee_deploy", tmp_path / "library/journee_deploy")
    write_page(tmp_path / "library/journee_deploy/page")
    code = "from journee_deploy.commands.web import web; web()"
    command = [sys.executable, "-c", code, str(root), "--port", "0", "--no-browser"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "library"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        line = process.stdout.readline()
        address = re.fullmatch(r"a bundle is at http://127\.0\.0\.1:(\d+)/  \(Ctrl-C ends it\)\n", line)
        assert address, line + process.stderr.read()
        connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=10)
        connection.request("GET", "/")
        assert connection.getresponse().read() == PAGE["index.html"]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""
        connection.close()
