"""Compares our byte-level BPE with Hugging Face's `tokenizers` on random strings and on every code point.

    tokenizer_oracle.py ENCODE_TEXTS TRAIN_TOKENIZER

ENCODE_TEXTS is the program under test, TRAIN_TOKENIZER the script core/data/train_tokenizer.py.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import AddedToken, Tokenizer, pre_tokenizers

WORDS = """the a of and to in is it's they're we've I'm you'll he'd don't o'clock 'S 'tis
template typename std::vector<int> const auto& x = y->z(); // comment #include <boost/any.hpp> 0x1F 3.14159 1e-9
return nullptr; if (a && b) { foo(bar[i++]); } \\n "quoted" `tick` naïve café Straße Ελληνικά русский 中文字符 日本語テスト
한국어 עברית العربية हिन्दी ไทย 👍 👩‍👩‍👧‍👦 🏳️‍🌈 ½ ² Ⅷ ٣ ۴ € ™ ﬁ ſ <|endoftext|> <|endoftext <|x|>""".split()
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "\u00a0", "\u2003", "\u3000", "\u0085", "\u180e",
          "\u200b", "\u2028", "\x1c", "\x0b", "\x0c", "\ufeff"]
CODE_POINTS = [range(0x20, 0x7F), range(0, 0x20), range(0xA0, 0x250), range(0x370, 0x530), range(0x600, 0x700),
               range(0x2000, 0x2070), range(0x4E00, 0x4F00), range(0x1F300, 0x1F700), range(0xFFF0, 0xFFFE)]


def random_text(source):
    kind = source.randrange(4)
    parts = []
    for _ in range(source.randrange(40)):
        if kind == 0 or source.random() < 0.3:
            parts.append(chr(source.choice(source.choice(CODE_POINTS))))
        elif kind == 1:
            parts.append(source.choice(SPACES) * source.randrange(1, 4))
        else:
            parts.append(source.choice(WORDS))
        if kind > 1 and source.random() < 0.7:
            parts.append(source.choice(SPACES) if source.random() < 0.3 else " ")
    return "".join(parts)


def texts_to_compare(source):
    long_ones = [" " * 5000 + "x", "a" * 5000, "ab" * 3000, "=" * 4097, "\n" * 1000, "x\n" * 500, "1234567890" * 300]
    return ["", " ", "\n", "'", "'s", " 's", "''s", *long_ones, *(random_text(source) for _ in range(2000))]


def ours(program, tokenizer, texts, special):
    request = json.dumps({"tokenizer": str(tokenizer), "special": special, "texts": texts})
    result = subprocess.run([program], input=request, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{program} failed: {result.stderr}")
    return json.loads(result.stdout)


def compare(program, path, texts, special):
    theirs = Tokenizer.from_file(str(path))
    theirs.encode_special_tokens = not special
    expected = [encoding.ids for encoding in theirs.encode_batch(texts)]
    found = ours(program, path, texts, special)
    if found["vocab_size"] != theirs.get_vocab_size():
        sys.exit(f"{path}: vocabulary of {theirs.get_vocab_size()}, ours {found['vocab_size']}")
    prefix = json.loads(path.read_text())["pre_tokenizer"]["add_prefix_space"]
    for text, right, ids, decoded in zip(texts, expected, found["ids"], found["texts"], strict=True):
        if ids != right:
            sys.exit(f"{path}: {text!r}\n tokenizers {right}\n ours       {ids}")
        if not prefix and bytes.fromhex(decoded) != text.encode():
            sys.exit(f"{path}: {text!r} decodes to {bytes.fromhex(decoded)!r}")


def classifying_tokenizer(path, trained):
    """A tokenizer whose ids show the class of any character: each of `a1. ` merges with every byte that follows it in
    the same word, so letters, digits, white space and the rest behind them give different ids."""
    definition = json.loads(trained.read_text())
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [[left, right] for left in ("a", "1", ".", "\u0120") for right in alphabet]
    tokens = alphabet + [left + right for left, right in merges] + ["<|endoftext|>"]
    definition["model"]["vocab"] = {token: number for number, token in enumerate(tokens)}
    definition["model"]["merges"] = merges
    definition["added_tokens"][0]["id"] = len(tokens) - 1
    path.write_text(json.dumps(definition))
    return path


def differing(program, path, groups):
    texts = ["".join(f"a{chr(point)}1{chr(point)} {chr(point)}.{chr(point)}!" for point in group) for group in groups]
    right = [encoding.ids for encoding in Tokenizer.from_file(str(path)).encode_batch(texts)]
    return [group for group, ids, theirs in zip(groups, ours(program, path, texts, True)["ids"], right) if ids != theirs]


def check_every_code_point(program, path):
    """Every plane with characters in it: groups first, then the groups that differ one by one."""
    points = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xF0000)]
    groups = differing(program, path, [points[i:i + 64] for i in range(0, len(points), 64)])
    found = [point for [point] in differing(program, path, [[point] for group in groups for point in group])]
    print(f"{len(found)} code points differ:", " ".join(f"U+{point:04X}" for point in found[:40]))
    # Only what Unicode added after the version that PCRE2 (or, on newer systems, `tokenizers`) was made with.
    assigned = [point for point in found if unicodedata.category(chr(point)) != "Cn"]
    if assigned:
        sys.exit("differ though assigned in Unicode " + unicodedata.unidata_version + ": " +
                 " ".join(f"U+{point:04X}" for point in assigned[:40]))


def variants(folder, trained):
    """The same vocabulary as other files spell it, and with the options that we support."""
    yield trained
    definition = json.loads(trained.read_text())
    definition["model"]["merges"] = [" ".join(merge) for merge in definition["model"]["merges"]]
    (folder / "strings.json").write_text(json.dumps(definition))
    yield folder / "strings.json"
    tokenizer = Tokenizer.from_file(str(trained))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.add_tokens(["nullptr", AddedToken("std::", normalized=False), "<|x|>"])
    tokenizer.save(str(folder / "added.json"))
    yield folder / "added.json"
    definition["model"]["ignore_merges"] = True
    definition["model"]["merges"] = definition["model"]["merges"][:100]
    (folder / "ignore.json").write_text(json.dumps(definition))
    yield folder / "ignore.json"


def main():
    program, train_tokenizer = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = random.Random(7)
        corpus = "\n".join(random_text(source) for _ in range(3000)).replace("\0", "")
        (folder / "corpus.txt").write_text(corpus)
        trained = folder / "tokenizer.json"
        subprocess.run([sys.executable, train_tokenizer, "--vocab-size", "700", "--output", trained,
                        folder / "corpus.txt"], check=True)
        texts = texts_to_compare(source)
        for path in variants(folder, trained):
            for special in (True, False):
                compare(program, path, texts, special)
        check_every_code_point(program, classifying_tokenizer(folder / "classes.json", trained))
    print(f"{len(texts)} texts, 4 tokenizers: equal")


main()
