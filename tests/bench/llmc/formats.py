"""Files of numbers as llm.c reads them: a header of 256 numbers of four bytes, then the numbers themselves."""
import numpy

HEADER = 256  # as train_gpt2.c and llmc/dataloader.h read it
TOKENS_MAGIC, TOKENS_VERSION = 20240520, 1


def header(*numbers):
    padded = numpy.zeros(HEADER, dtype="<i4")
    padded[: len(numbers)] = numbers
    return padded.tobytes()


def write_random_tokens(file, count, vocabulary, random):
    tokens = random.integers(vocabulary, size=count, dtype=numpy.uint16)
    file.write_bytes(header(TOKENS_MAGIC, TOKENS_VERSION, count) + tokens.tobytes())
