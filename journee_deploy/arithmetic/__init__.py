"""From logits to distributions: the arithmetic of docs/distributions.md, once in plain Python and once in
NumPy.

`plain.py` is the readable reference and runs in MicroPython too; `vectors.py` over `vector_steps.py` is what
ships on CPython. They are equal to the bit (tests/arithmetic). `vectors` is not imported here: only those who
have NumPy ask for it.
"""
