"""What may not stay in the texts of a trace, and how it goes: paths, hosts, addresses, and the words that somebody named."""
import ipaddress
import re

TAKE_OUT = "; name it with --also, or take it out by hand"

# A folder may hold nearly everything: parentheses in pairs, quotes and colons within a word. Semicolons end a path.
_LETTER = r"(?:[\w.@+~=,%#&!^{}\[\]$-]|\([^()/:;\n]*\)|(?<=\w)[\"'`*?|](?=\w)|(?<=\w):(?=[^\W\d]))"
_FOLDER = rf"/+{_LETTER}(?: *{_LETTER})*"
_START = r"(?:(?<![\w.<>/)\]])|(?<=-[ILB]))"
_RULES = [
    # The machine of an address; what follows is a path like any other.
    re.compile(r"\b[A-Za-z][\w+.-]{0,30}://[^\s/\"'<>]*"),
    # A home is named for its user, also where nothing follows it.
    re.compile(rf"{_START}/+(?:(?:home|Users)/+[^\s/:;,\"'<>()]+|root)/*(?![^\s:;,\"'<>()\]])"),
    # Up to the last slash: the name of the file stays.
    re.compile(rf"{_START}(?:(?:\.\.?|~[\w.-]*)(?:{_FOLDER})*|(?:{_FOLDER})+)/+"),
    # The same without its slash, where a file follows, and a home by its user's name alone; destructors and bitwise operators stay.
    re.compile(rf"{_START}(?<!-)(?:home|Users)(?:{_FOLDER})+/+"),
    re.compile(r"(?:(?<![\s\S])|(?<=[\"'])|(?<=[\w,;:][ \t]))~[a-z_][a-z0-9_.-]*(?![^\s:;,\"'])"),
    re.compile(r"(?:\b[A-Za-z]:\\+|(?<![\\\w])\\\\+(?=\w[^\\\"]*\\))(?:[^\\\"]+\\+)*"),
]
# Versions of symbols (memcpy@GLIBC_2.14, malloc@plt) are no hosts.
_USER_AT_HOST = re.compile(r"(?<![\w@.+-])[\w.+-]+@(?!plt\b|[A-Z]\w*_\d)\w[\w.-]*")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
# Of network cards, InfiniBand's too.
_HARDWARE_ADDRESS = re.compile(r"(?<![\w.])(?<!::)[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5,19}(?![\w:])")
_COLONS = re.compile(r"(?<![\w.])(?<!::)(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{2,38}(?:[0-9A-Fa-f]|::)(?!\w)(?:%[\w.-]+)?")
# How the first group of an address begins: global, of a link, of a site, multicast.
_FIRST_GROUP = re.compile(r"[23][0-9a-f]{3}|fe[89ab][0-9a-f]|f[cdf](?=.?\d)[0-9a-f]{2}", re.IGNORECASE)
# Of a site or multicast, which may be a word of C++ as well: no name there has a digit in front.
_FIRST_LETTERS = re.compile(r"f[cdf][a-f]{2}", re.IGNORECASE)

_LEFT_PATH = re.compile(r"(?<![\w.)\]])/[^/\s][^/\n]*/[^/\s]"
                        r"|(?<![\w.])/(?:home|Users|root|mnt|lustre|scratch|data|work|tmp|opt|usr|var|workspace)/\w")
_LEFT_ENVIRONMENT = re.compile(r"(?<![^\s\0;\"'])(?:HOME|USER|LOGNAME|HOSTNAME|PWD|PATH|LD_LIBRARY_PATH|SHELL)=")


def _without_ipv6(found):
    """c10::add is none, although its letters would do; nor is a slice, 1::2."""
    text = found[0].split("%")[0]
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return found[0]
    first, *later = [group for group in text.split(":") if group] or [""]
    is_address = len(later) >= 3 or _FIRST_GROUP.fullmatch(first) or (
        _FIRST_LETTERS.fullmatch(first) and any(group[0].isdigit() for group in later))
    return "x" if is_address else found[0]


class LeftOver(Exception):
    """A text still holds what has to go."""


class Cleaner:
    def __init__(self, words):
        # The longest first: a word may be part of another.
        self._words = sorted(words, key=len, reverse=True)
        self._known = {}

    def text(self, text):
        """The text without what has to go, as far as the rules find it."""
        for rule in _RULES:
            text = rule.sub("", text)
        text = _ADDRESS.sub("x", _USER_AT_HOST.sub("x", text))
        text = _COLONS.sub(_without_ipv6, _HARDWARE_ADDRESS.sub("x", text))
        for word in self._words:
            text = text.replace(word, "x")
        return text

    def checked(self, text):
        """The same, looked through once more. Texts of a trace repeat: each is cleaned once."""
        if text not in self._known:
            cleaned = self.text(text)
            self._complain_about(cleaned)
            self._known[text] = cleaned
        return self._known[text]

    def fixed(self, text, what):
        """A text that readers look for cannot change: it holds nothing that has to go, or the trace is refused."""
        if self.text(text) != text:
            raise LeftOver(f"{what} '{text[:80]}' holds what should go, and cannot be another: take it out by hand")

    def _complain_about(self, text):
        found = _LEFT_PATH.search(text)
        if found:
            raise LeftOver(f"still holds a path: ...{text[max(0, found.start() - 40):found.end() + 40]!r}...{TAKE_OUT}")
        found = _LEFT_ENVIRONMENT.search(text)
        if found:
            raise LeftOver(f"still holds an environment: {text[found.start():found.end()]!r}...; take it out by hand")
        for word in self._words:
            if word in text:
                raise LeftOver(f"still holds '{word}'; take it out by hand")
