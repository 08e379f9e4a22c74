"""A local server for one bundle and the page that runs it: what a page needs to be isolated, and nothing else.

    /                        the built page
    /bundle.json             {"url": "/models/NAME/"}: the bundle to load
    /models/NAME/...         journee.json, and the files that it lists

Rules:

1. What is served is in the page's folder or in the manifest; there is no listing, and links don't lead out.
2. Every answer, an error too, isolates the page (threads in WebAssembly need that), and lets it load from here alone.
3. Nothing is taken from a browser's cache unasked: `no-cache`, with an ETag.
4. A server for this machine alone answers to this machine's names alone: a site whose name was made to mean 127.0.0.1
   (DNS rebinding) would otherwise be of one origin with it, and could read the bundle.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import shutil
import socket
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote, urlsplit

from journee_deploy.bundle import Bundle
from journee_deploy.manifest import MANIFEST, inside

INDEX = "index.html"
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
        "style-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}
"""By our own table: the system's may lack .wasm, and a page refuses modules of another type."""
BYTES = "application/octet-stream"


def find_page() -> Path | None:
    """The folder of the built page: that of the checkout, or the one that was installed; None if there is neither."""
    package = Path(__file__).parent
    places = (package.parent / "web" / "dist" / "page", package / "page")
    return next((place for place in places if (place / INDEX).is_file()), None)


@dataclass(frozen=True, slots=True)
class Found:
    """An answer: an open file, its size, its type, and a tag that changes with its content."""

    file: BinaryIO
    size: int
    kind: str
    tag: str


class PageServer(ThreadingHTTPServer):
    """Serves `page` and `bundle`; listens once it is made. Port 0 takes any that is free; OSError if there is none."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, bundle: Bundle, page: Path, host: str, port: int) -> None:
        self.bundle = bundle
        self.page = page.resolve()
        self.root = bundle.root.resolve()
        self.models = f"/models/{self.root.name or 'bundle'}/"
        self.host = host
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        super().__init__((host, port), Handler)

    @property
    def url(self) -> str:
        """Where the page is. A host that means all of them is called localhost."""
        host = "localhost" if self.host in ("0.0.0.0", "::") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}/"

    def find(self, path: str) -> Found | None:
        """What lies at a decoded path; None if nothing does."""
        if path == "/bundle.json":
            return _made({"url": quote(self.models)})
        if path.startswith("/models/"):
            return self._of_bundle(path.removeprefix(self.models)) if path.startswith(self.models) else None
        name = INDEX if path == "/" else path.removeprefix("/")
        return None if inside(name) else _opened(self.page, name, "")

    def _of_bundle(self, name: str) -> Found | None:
        if name == MANIFEST:
            return _opened(self.root, name, "")
        record = self.bundle.manifest.files.get(name)
        return _opened(self.root, name, record.sha256) if record else None


def _made(value: object) -> Found:
    content = json.dumps(value).encode()
    return Found(BytesIO(content), len(content), TYPES[".json"], hashlib.sha256(content).hexdigest())


def _opened(folder: Path, name: str, tag: str) -> Found | None:
    """The file `name` of `folder`, open; `tag` is that of its content where it is known."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            return None
        file = path.open("rb")
    except (OSError, ValueError):
        return None
    state = os.fstat(file.fileno())
    kind = TYPES.get(path.suffix.lower(), BYTES)
    return Found(file, state.st_size, kind, tag or f"{state.st_mtime_ns:x}-{state.st_size:x}")


def is_loopback(host: str) -> bool:
    """Whether `host` means this machine alone, wherever it is said."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".") == "localhost"


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD."""

    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version = "journee"
    sys_version = ""
    timeout = 60
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"

    def do_GET(self) -> None:
        found = self._head()
        if found is None:
            return
        with found.file:
            if self.command == "GET":
                shutil.copyfileobj(found.file, self.wfile, 2**16)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _head(self) -> Found | None:
        """Answer all but the body, which is in what is returned; None if there is none."""
        if is_loopback(self.server.host) and not is_loopback(self._asked_host()):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        found = self.server.find(self._path())
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        tag = f'"{found.tag}"'
        known = tag in (self.headers.get("If-None-Match") or "")
        self.send_response(HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK)
        self.send_header("ETag", tag)
        if not known:
            self.send_header("Content-Type", found.kind)
            self.send_header("Content-Length", str(found.size))
        self.end_headers()
        if known:
            found.file.close()
            return None
        return found

    def _asked_host(self) -> str:
        """The host that the browser took this server for."""
        try:
            return urlsplit("//" + (self.headers.get("Host") or "")).hostname or ""
        except ValueError:
            return ""

    def _path(self) -> str:
        try:
            return unquote(urlsplit(self.path).path, errors="strict")
        except ValueError:
            return ""

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def handle(self) -> None:
        with suppress(ConnectionError):  # the browser left
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class says so)
        """Say nothing: a page asks for dozens of files."""
