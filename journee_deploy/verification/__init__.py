"""Checks of a bundle on the machine that will serve it: what `journee verify` runs.

check           what a check is, and how a list of them is run
suite           which checks there are, in their order
promises        the row rule; greedy and coupled texts, token for token
controller      the controller's law over toys; conformance of this host
concentration   the statistic of the G-test and a false-alarm bound that holds for every sample size
laws            exact laws of short texts, from the bundle's own rows
biases          wrong rules with their exact laws: what the G-test must be able to see
sampling_test   the G-test of real speculative runs, its power and its negative control
parity          this machine's rows against another provider's or a recorded trace's
"""
