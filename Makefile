# The commands that CI calls too. Each makes the environment it needs in .venv, with the tested versions.

PYTHON ?= python3
BIN := .venv/bin
BUNDLE := out/tiny
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-web web lint format bench conformance proofs clean

demo: .venv/export.stamp
	$(BIN)/journee-export checkpoints/target.pt --draft checkpoints/draft.pt -o $(BUNDLE) --force
	$(BIN)/python examples/demo.py $(BUNDLE)

test: .venv/dev.stamp tests/portable/node_modules web/node_modules
	$(BIN)/python -m pytest
	$(MAKE) test-web
	@echo "make test: every test passed"

# The package for pages and its page, in web/dist.
web: web/node_modules
	npm run build --prefix web
	@echo "make web: the package and its page are in web/dist"

test-web:
	@if command -v npm >/dev/null; then $(MAKE) web && npm run check --prefix web && npm test --prefix web; \
	else echo "no Node.js here: the tests of web/ were not run"; test "$$CI" != true; fi

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	@echo "make lint: ruff, mypy and pyright found nothing"

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The hosts that ship against the cases, and one that is wrong and must be seen.
CHECK := $(BIN)/python -m journee_conformance check
conformance: .venv/dev.stamp tests/portable/node_modules
	$(BIN)/python -m journee_conformance generate --check
	$(CHECK) -- $(BIN)/python -m journee_conformance host
	$(CHECK) -- $(BIN)/python -m journee_conformance host --ops vectors
	@if command -v node >/dev/null; then $(CHECK) -- node conformance/micropython.mjs; \
	else echo "no Node.js here: the MicroPython host was not run"; test "$$CI" != true; fi
	$(BIN)/python -m tests.conformance.wrong_host --check
	@echo "make conformance: every host that ships conforms, and the wrong one does not"

# The proofs, and the proved program against the cases; installs Agda (as root) and Lean. About three minutes.
proofs:
	$(PYTHON) formal/check.py

bench: .venv/export.stamp
	$(BIN)/python -m journee.benchmark --bundle artifacts/tiny
	@echo "make bench: done"

clean:
	rm -rf .venv .venv-lean out tests/portable/node_modules web/node_modules web/dist

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=")'
	@echo "making the environment in .venv"
	$(PYTHON) -m venv .venv

.venv/export.stamp: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing what export and runtime need, at the tested versions"
	$(PIP) -e ".[cpu,export]"
	@touch $@

.venv/dev.stamp: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing what the tests need, at the tested versions"
	$(PIP) -e ".[dev]"
	@touch $@ .venv/export.stamp

# The portable suite runs in MicroPython under Node; without Node those tests are reported as not run.
tests/portable/node_modules: tests/portable/package.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/portable && touch $@; \
	else echo "no Node.js here: the MicroPython tests will be reported as not run"; fi

web/node_modules: web/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix web && touch $@; \
	else echo "no Node.js here: the tests of web/ will be reported as not run"; fi
