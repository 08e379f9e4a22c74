"""The errors that this project raises on purpose: a message for whoever asked, no traceback. Anything else is a bug."""

from __future__ import annotations

from journee_deploy.arithmetic.arena import LogitsError
from journee_deploy.arithmetic.sampling import SamplingError
from journee_deploy.bundle import BundleError
from journee_deploy.request import RequestError
from journee_deploy.runtime import RuntimeFailure
from journee_deploy.text import TextError

EXPECTED = (BundleError, LogitsError, RequestError, RuntimeFailure, SamplingError, TextError)
