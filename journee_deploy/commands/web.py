"""`journee web`: a bundle in the browser, from this machine."""

from __future__ import annotations

import errno
import threading
import webbrowser
from pathlib import Path

import click

from journee_deploy.bundle import Bundle, open_bundle
from journee_deploy.page_server import PageServer, find_page, is_loopback


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; this machine's own alone.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes any that is free."
)
@click.option("--browser/--no-browser", default=True, help="Open the page, or only print its address.")
def web(bundle: Path, host: str, port: int, browser: bool) -> None:
    """Verify BUNDLE and serve it with the page that runs it, until Ctrl-C.

    The models run in the browser; nothing that is typed there is sent anywhere.
    """
    opened = open_bundle(bundle)
    check_runs_in_a_page(opened)
    page = find_page()
    if page is None:
        raise click.ClickException("the page is not built: run `make web` first, in a checkout of the project")
    with listening(opened, page, host, port) as server:
        click.echo(f"{opened.root.name} is at {server.url}  (Ctrl-C ends it)")
        if not is_loopback(host):
            click.echo(
                "Other machines need https to load it: browsers verify files on secure pages only. "
                "Put a server with a certificate before this one.",
                err=True,
            )
        if browser:
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo()


def listening(bundle: Bundle, page: Path, host: str, port: int) -> PageServer:
    """The server, or what to do where there can be none."""
    try:
        return PageServer(bundle, page, host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            hint = "another program listens there; choose another --port, or --port 0 for any that is free"
        elif error.errno == errno.EACCES:
            hint = "the system keeps such ports to itself; choose a --port of at least 1024"
        else:
            hint = f"{error.strerror or error}; choose a --host that this machine has"
        raise click.ClickException(f"can't listen on {host}, port {port}: {hint}") from None


def check_runs_in_a_page(bundle: Bundle) -> None:
    """Raise unless every role has a graph that a page can run."""
    for name, role in bundle.manifest.roles.items():
        if all(graph.cache != "concat" for graph in role.graphs):
            raise click.ClickException(
                f"{bundle.root}: the {name} has no graph with a concatenated cache, the only kind that runs in a page; "
                "export the checkpoint with --for web"
            )
