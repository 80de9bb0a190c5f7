"""Text to train on that never changes: functions of a made-up program, drawn from a seed. With any other text a training goes
another way, and bounds on its losses would have to be found anew."""

import random

TYPES = ["int", "float", "double", "bool", "auto", "std::size_t", "std::string", "std::vector<float>", "const Tensor&", "Bucket*"]
NAMES = ["rank", "bucket", "gradient", "stream", "buffer", "step", "loader", "worker", "shard", "token", "batch", "weight", "moment",
         "offset", "length", "window", "deadline", "checkpoint", "collective", "parameter"]
VERBS = ["read", "write", "reduce", "gather", "flush", "wait_for", "advance", "check", "resize", "copy"]
SIGNS = ["+", "-", "*", "/", "<", ">", "==", "!="]
SHAPES = [
    "  {type} {name} = {verb}_{other}({third}, {number});\n",
    "  if ({name} {sign} {other}) return {third};\n",
    "  for (std::size_t i = 0; i < {name}.size(); ++i) {other}[i] += {third}[i] * {number};\n",
    "  {name}.{verb}({other}, {third} {sign} {number});\n",
    "  // The {name} of the {other} comes before that of the {third}.\n",
    "  while (!{name}.done()) {{\n    {other}.{verb}({third});\n  }}\n",
]


class Author:
    def __init__(self, seed):
        self.random = random.Random(seed).random  # the only method whose values every version of Python keeps

    def one_of(self, words):
        return words[int(self.random() * len(words))]

    def line(self):
        return self.one_of(SHAPES).format(type=self.one_of(TYPES), name=self.one_of(NAMES), verb=self.one_of(VERBS),
                                          other=self.one_of(NAMES), third=self.one_of(NAMES), sign=self.one_of(SIGNS),
                                          number=int(self.random() * 1000))

    def function(self):
        head = f"{self.one_of(TYPES)} {self.one_of(VERBS)}_{self.one_of(NAMES)}({self.one_of(TYPES)} {self.one_of(NAMES)}) {{\n"
        body = "".join(self.line() for _ in range(2 + int(self.random() * 12)))
        return head + body + f"  return {self.one_of(NAMES)};\n}}\n\n"


def write_corpus(folder, files=64, functions=16):
    """Half a megabyte."""
    folder.mkdir(parents=True)
    for number in range(files):
        author = Author(number)
        (folder / f"file_{number:02}.cpp").write_text("".join(author.function() for _ in range(functions)))
