"""Files of results: the newest measurement first, those of other machines and days below it."""


def with_new(former, text):
    """A title that both begin with stays the file's first line."""
    text = text.rstrip("\n") + "\n"
    if not former.strip():
        return text
    title, _, rest = text.partition("\n")
    if title.startswith("# ") and former.startswith(title + "\n"):
        return f"{title}\n\n{rest.strip()}\n\n{former[len(title):].strip()}\n"
    return f"{text}\n{former.strip()}\n"


def keep(path, text):
    former = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(with_new(former, text), encoding="utf-8")
