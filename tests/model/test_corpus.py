"""Corpora: order, split, hash; the tokenizer as a function of corpus and size; refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journee.corpus import CorpusError, Document, read_corpus, standard_library
from journee.tokenizer import END_OF_TEXT, END_OF_TEXT_ID, encode, load_tokenizer, token_texts, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer(corpus):
    return load_tokenizer(train_tokenizer(read_corpus(corpus).training, 300))


def test_the_standard_library_is_read_without_tests():
    library = standard_library()
    paths = [document.path for document in library.documents]
    assert paths == sorted(paths)
    assert "argparse.py" in paths
    assert not [path for path in paths if "/test" in path or path.startswith(("test", "site-packages"))]
    held_out = sum(map(len, library.held_out)) / sum(len(document.text) for document in library.documents)
    assert 0.02 < held_out < 0.15


def test_the_hash_covers_paths_and_bytes(tmp_path):
    def hash_of(**texts):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text)
        return read_corpus(folder).hash

    many = {f"f{number}": "text" for number in range(80)}
    assert hash_of(**many) != hash_of(**(many | {"f0": "texts"}))
    renamed = dict(many)
    renamed["g"] = renamed.pop("f0")
    assert hash_of(**many) != hash_of(**renamed)


def test_the_split_depends_on_the_path_alone():
    assert Document("a/b.py", "one").held_out == Document("a/b.py", "two").held_out


def test_one_file_is_cut_into_documents_of_whole_lines(tmp_path):
    text = "".join(f"line {number} of the file\n" for number in range(60_000))
    (tmp_path / "long.txt").write_text(text)
    pieces = read_corpus(tmp_path / "long.txt").documents
    assert "".join(piece.text for piece in pieces) == text
    assert all(piece.text.endswith("\n") for piece in pieces)


def test_files_that_are_no_text_are_left_out(corpus, tmp_path):
    for file in corpus.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "picture.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / ".hidden").write_text("not read")
    assert read_corpus(tmp_path).hash == read_corpus(corpus).hash


@pytest.mark.parametrize(("name", "message"), [("nowhere", "does not exist"), ("empty", "no UTF-8 text")])
def test_a_corpus_that_is_none_is_refused(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=message):
        read_corpus(tmp_path / name)


def test_a_corpus_without_a_held_out_part_is_refused(tmp_path):
    (tmp_path / "one.txt").write_text("short")
    with pytest.raises(CorpusError, match="held-out part"):
        read_corpus(tmp_path)


def test_the_same_corpus_gives_the_same_tokenizer_to_the_byte(corpus):
    first, second = (train_tokenizer(read_corpus(corpus).training, 300) for _ in range(2))
    assert first == second


def test_a_vocabulary_that_does_not_fit_is_refused(corpus):
    texts = read_corpus(corpus).training
    with pytest.raises(ValueError, match="at least 257"):
        train_tokenizer(texts, 256)
    with pytest.raises(ValueError, match=r"lower tokenizer\.vocab_size"):
        train_tokenizer(texts, 5000)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.text(), max_size=4))
def test_encoding_keeps_every_text_and_marks_their_ends(tokenizer, texts):
    ids = encode(tokenizer, texts).tolist()
    assert ids[0] == ids[-1] == END_OF_TEXT_ID
    assert ids.count(END_OF_TEXT_ID) == len(texts) + 1
    assert tokenizer.decode(ids, skip_special_tokens=True) == "".join(texts)


def test_the_spelling_of_a_special_token_is_plain_text(tokenizer):
    assert END_OF_TEXT_ID not in encode(tokenizer, [f"a {END_OF_TEXT} b"])[1:-1]


def test_every_token_has_a_text(tokenizer):
    texts = token_texts(tokenizer)
    assert len(texts) == 300
    assert texts[END_OF_TEXT_ID] == END_OF_TEXT
    assert all(texts)
