"""Every mistake on the list is seen by the test it names; the list covers design section 9; the runner can tell."""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.mutants.mutants import ABSENT, DART, MUTANTS, OTHER, Mutant
from tests.mutants.runner import BROKEN, KILLED, ROOT, SURVIVED, Copy, MutantError, mutated_text


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("copy").resolve())


def test_the_killers_pass_where_there_is_no_mistake(copy: Copy) -> None:
    assert copy.run(sorted({mutant.killer for mutant in MUTANTS})) == (0, [])


@pytest.fixture(scope="module")
def verdicts(copy: Copy, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[str]]:
    """Every mutant's verdict, two at a time, each in a copy of its own."""
    copies: SimpleQueue[Copy] = SimpleQueue()
    copies.put(copy)
    copies.put(Copy(tmp_path_factory.mktemp("other").resolve()))

    def tried(mutant: Mutant) -> str:
        mine = copies.get()
        try:
            return mine.verdict(mutant)
        finally:
            copies.put(mine)

    with ThreadPoolExecutor(2) as pool:
        return {mutant.name: pool.submit(tried, mutant) for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_is_seen(mutant: Mutant, verdicts: dict[str, Future[str]]) -> None:
    verdict = verdicts[mutant.name].result()
    assert verdict == KILLED, f"{mutant.name} ({mutant.mistake}): {verdict}; {mutant.killer} must be strengthened"


def test_the_list_covers_the_design() -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = design.split("## 9. Mistakes others shipped, and ours to avoid")[1].split("\n\n")[2]
    items = {re.sub(r"\s+", " ", item).strip(" .\n") for item in section.split("·")}
    assert len(items) == 20
    assert {mutant.mistake for mutant in MUTANTS} | set(ABSENT) == items | {DART, OTHER}


def test_the_documents_tell_how_many() -> None:
    assert f"# {len(MUTANTS)} mistakes" in (ROOT / "docs" / "exactness.md").read_text(encoding="utf-8")


def test_names_are_unique_and_places_exist() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        mutated_text(mutant, (ROOT / mutant.file).read_text(encoding="utf-8"))
        file, name = mutant.killer.split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), mutant.killer


# The runner itself.

FIRST = MUTANTS[0]


def test_a_change_that_changes_nothing_survives(copy: Copy) -> None:
    (find, _), *_ = FIRST.edits
    assert copy.verdict(FIRST._replace(edits=((find, find + "            # as before\n"),))) == SURVIVED


def test_a_file_that_cannot_be_imported_is_no_kill(copy: Copy) -> None:
    (find, _), *_ = FIRST.edits
    assert copy.verdict(FIRST._replace(edits=((find, "            )\n"),))) == BROKEN
    assert copy.verdict(FIRST._replace(killer="tests/test_exactness.py::test_that_is_not_there")) == BROKEN


def test_the_copy_is_as_it_was_after_a_mutant(copy: Copy) -> None:
    before = (copy.folder / FIRST.file).read_bytes()
    copy.verdict(FIRST)
    assert (copy.folder / FIRST.file).read_bytes() == before == (ROOT / FIRST.file).read_bytes()


def test_rows_that_do_not_fit_are_refused() -> None:
    text = Path(ROOT / FIRST.file).read_text(encoding="utf-8")
    with pytest.raises(MutantError, match="0 times, not once"):
        mutated_text(FIRST._replace(edits=(("not in the file", ""),)), text)
    with pytest.raises(MutantError, match="changes nothing"):
        mutated_text(FIRST._replace(edits=()), text)
