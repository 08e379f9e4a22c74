"""`journee`: run and look at bundles from the shell."""

from __future__ import annotations

import click

from journee_deploy.commands.failures import PlainFailures
from journee_deploy.commands.generate import generate
from journee_deploy.commands.inspect import inspect
from journee_deploy.commands.profile import profile_command
from journee_deploy.commands.verify import verify
from journee_deploy.commands.web import web


@click.group(cls=PlainFailures, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="journee-deploy")
def main() -> None:
    """Exact speculative decoding: faster text, the same distribution."""


main.add_command(generate)
main.add_command(inspect)
main.add_command(profile_command)
main.add_command(verify)
main.add_command(web)
