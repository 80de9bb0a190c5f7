"""Trains a byte-level BPE tokenizer with GPT-2's pattern and writes Hugging Face's tokenizer.json.

    train_tokenizer.py --vocab-size 4096 --output tokenizer.json --include '*.hpp,*.h' FOLDER_OR_FILE ...

The walk is that of `sidestream prepare`. The result is a pure function of the files and the arguments. Of more text
than --sample-mb an evenly spread part of the files is taken.
"""

import argparse
import fnmatch
import os
import pathlib
import sys
import tempfile

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT = "<|endoftext|>"
SMALLEST_VOCAB = 257  # all bytes and the end of text


def files_below(path, patterns):
    """Files of a folder whose names match, in name order; links to folders are not followed."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        sys.exit(f"train_tokenizer: {path} is neither a file nor a folder")
    found = []
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith("."))
        found += [pathlib.Path(folder, name) for name in files
                  if (not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))
                  and pathlib.Path(folder, name).is_file()]  # no link to nothing, no pipe
    return sorted(found)


def text_of(path):
    """The file's text; nothing for what is not UTF-8, has NUL bytes or cannot be read: `prepare` skips it too."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if "\0" in text else text


def sample(paths, limit_bytes):
    """Files spread evenly over the list until their sizes reach the limit."""
    total = sum(path.stat().st_size for path in paths)
    if total <= limit_bytes:
        return paths
    taken, due = [], 0.0
    for path in paths:
        due += path.stat().st_size * limit_bytes / total
        if due >= path.stat().st_size / 2:
            taken.append(path)
            due -= path.stat().st_size
    return taken


def train(texts, vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=[END_OF_TEXT], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save(tokenizer, output):
    """Under a temporary name first: an interrupted run leaves no half file."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=output.parent, delete=False, encoding="utf-8") as file:
        file.write(tokenizer.to_str(pretty=True))
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, output)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("inputs", nargs="+", type=pathlib.Path, metavar="FOLDER_OR_FILE")
    parser.add_argument("--vocab-size", type=int, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--include", default="", help="comma-separated patterns of file names in folders")
    parser.add_argument("--sample-mb", type=float, default=20.0)
    options = parser.parse_args()
    if options.vocab_size < SMALLEST_VOCAB:
        parser.error(f"--vocab-size must be at least {SMALLEST_VOCAB}: every byte and the end of text")
    return options


def main():
    options = arguments()
    patterns = [pattern for pattern in options.include.split(",") if pattern]
    paths = [path for given in options.inputs for path in files_below(given, patterns)]
    texts = [text for text in map(text_of, sample(paths, options.sample_mb * 1e6)) if text]
    if not texts:
        sys.exit("train_tokenizer: no text in " + " ".join(map(str, options.inputs)))
    tokenizer = train(texts, options.vocab_size)
    if tokenizer.get_vocab_size() < options.vocab_size:
        print(f"train_tokenizer: the text has merges for {tokenizer.get_vocab_size()} tokens only", file=sys.stderr)
    save(tokenizer, options.output)


if __name__ == "__main__":
    main()
