"""Conformance: cases as data with exact answers, and a checker that runs any host over them.

conformance/README.md says how a host speaks with the checker and what each kind of case asks. The cases are the formal
IR: what the specification (docs/distributions.md) says, as numbers that any program can be held against.
"""

FORMAT = "journee-conformance"
VERSION = 1
