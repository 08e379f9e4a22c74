"""The cases themselves: what the generator makes, what the schema says, what the README shows; and bad files."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import journee_conformance
from journee_conformance import generate, host
from journee_conformance.cases import PACKAGED, Case, CasesError, load, packaged_cases

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((PACKAGED.parent / "schema.json").read_text(encoding="utf-8"))
CASES = packaged_cases()


def test_the_files_are_what_the_generator_makes() -> None:
    made = generate.files()
    assert set(made) == {file.name for file in PACKAGED.glob("*.jsonl")}
    for name, text in made.items():
        assert generate.held(name) == text, f"{name}: python -m journee_conformance generate"


def test_every_case_is_what_the_schema_says() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for case in CASES:
        whole = {"kind": case.kind, "id": case.id, "input": case.input, "answer": case.answer}
        assert validator.is_valid(whole), (case.id, next(validator.iter_errors(whole)).message)


def test_the_schema_refuses_what_is_off() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for case in {case.kind: case for case in CASES}.values():
        whole: dict[str, Any] = {"kind": case.kind, "id": case.id, "input": case.input, "answer": case.answer}
        for name in case.input:
            short = {key: value for key, value in case.input.items() if key != name}
            assert not validator.is_valid({**whole, "input": short})
        assert not validator.is_valid({**whole, "answer": {}})
        assert not validator.is_valid({**whole, "kind": "other"})


def test_numbers_are_whole_and_every_reader_holds_them() -> None:
    for file in PACKAGED.glob("*.jsonl"):
        numbers = re.findall(r'(?<![0-9a-f"])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![0-9a-f"])', file.read_text())
        assert numbers
        assert all(re.fullmatch(r"-?\d+", number) and abs(int(number)) <= 1 << 53 for number in numbers)


def test_distributions_add_up() -> None:
    for case in CASES:
        if case.kind == "distribution" and "units" in case.answer:
            assert sum(case.answer["units"]) == 1 << 50, case.id


def test_the_cases_reach_what_they_are_for() -> None:
    """Every kind of answer occurs, and often enough that a host can't pass by luck."""
    generations = [case for case in CASES if case.kind == "generation"]
    kinds = Counter(kind for case in generations for kind in case.answer["kinds"])
    assert min(kinds[kind] for kind in ("accepted", "recovered", "bonus")) > 100
    assert set(Counter(case.answer["reason"] for case in generations)) == {"end-of-sequence", "stop", "length"}
    drafts = {(case.input["rule"], case.input["draft"]) for case in generations if "accepted" in case.answer["kinds"]}
    assert drafts == {(rule, draft) for rule in host.RULES for draft in ("model", "ngram", "uniform")}
    verdicts = Counter((case.input["rule"], case.answer["accepted"]) for case in CASES if case.kind == "verdict")
    assert len(verdicts) == 4
    assert min(verdicts.values()) > 10
    codes = {case.answer["refused"] for case in CASES if "refused" in case.answer}
    assert codes == set(SCHEMA["$defs"]["refused"]["properties"]["refused"]["enum"])
    cut = [case for case in generations if case.answer["rounds"][-1][1] >= case.answer["rounds"][-1][4] > 0]
    assert len(cut) > 10  # text ends before the round does


def test_the_documents_tell_how_many() -> None:
    assert f"against {len(CASES)} cases" in (ROOT / "docs" / "exactness.md").read_text(encoding="utf-8")


def test_versions_agree() -> None:
    assert (host.FORMAT, host.VERSION) == (journee_conformance.FORMAT, journee_conformance.VERSION)
    assert f"version {journee_conformance.VERSION}:" in SCHEMA["title"]


def shortest(kind: str) -> str:
    """The kind's shortest case as its file has it."""
    lines = (PACKAGED / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    return min(lines, key=len)


def test_the_readme_shows_a_case_of_each_kind_and_names_every_field() -> None:
    readme = (ROOT / "conformance" / "README.md").read_text(encoding="utf-8")
    for kind in generate.MAKERS:
        assert f"\n    {shortest(kind)}\n" in readme, f"{kind}: {shortest(kind)}"
        assert f"**{kind}**" in readme
    for case in {case.kind: case for case in CASES}.values():
        for name in (*case.input, *case.answer):
            assert name in readme, (case.kind, name)


# Bad files.

HEADER = {"format": "journee-conformance", "version": 1, "kind": "philox", "count": 1, "made": "by hand"}
GOOD = {"id": "philox-001", "input": {"counter": [0] * 4, "key": [0, 0]}, "answer": {"words": [1, 2, 3, 4]}}

BAD = [
    ([], "has no case files"),
    ([""], "line 1 is no JSON"),
    (["[]"], "no JSON object"),
    ([{}], "no case file: its first line lacks format"),
    ([{**HEADER, "version": 2}, GOOD], r"has version 2 and this checker reads 1; use the checker that came with"),
    ([{**HEADER, "version": "1"}, GOOD], "has version '1'"),
    ([{**HEADER, "count": 0}], "has 0 cases and its header says 0"),
    ([{**HEADER, "count": 2}, GOOD], "has 1 cases and its header says 2"),
    ([{**HEADER, "count": True}, GOOD], "count True"),
    ([{**HEADER, "kind": None}, GOOD], "kind None"),
    ([HEADER, "{"], "line 2 is no JSON"),
    ([HEADER, "[" * 100_000], "line 2 is no JSON"),
    ([HEADER, {**GOOD, "id": 5}], "line 2 needs a string id"),
    ([HEADER, {**GOOD, "input": []}], "line 2 needs"),
    ([HEADER, {"id": "a", "input": {}}], "line 2 needs"),
    ([HEADER, {**GOOD, "extra": 1}], "line 2 needs"),
    ([{**HEADER, "count": 2}, GOOD, GOOD], "2 cases have 1 ids"),
]


@pytest.mark.parametrize(("lines", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_files_are_refused_by_file_and_line(lines: list[Any], message: str, tmp_path: Path) -> None:
    if lines:
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        (tmp_path / "cases.jsonl").write_text(text + "\n", encoding="utf-8")
    with pytest.raises(CasesError, match=message):
        load(tmp_path)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_bytes(b"\xff\xfe{}")
    with pytest.raises(CasesError, match="can't be read"):
        load(tmp_path)


def test_kinds_select_and_an_unknown_one_is_refused() -> None:
    assert {case.kind for case in packaged_cases(("dart", "below"))} == {"dart", "below"}
    with pytest.raises(CasesError, match=r"no cases of kind 'drat'; there are: below, dart"):
        packaged_cases(("drat",))
    assert isinstance(CASES[0], Case)
