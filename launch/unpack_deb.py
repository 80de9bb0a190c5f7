"""Unpacks a Debian package where dpkg-deb is missing: unpack_deb.py FILE.deb FOLDER."""
import io
import lzma
import pathlib
import sys
import tarfile

package, folder = sys.argv[1:3]
content = pathlib.Path(package).read_bytes()
if content[:8] != b"!<arch>\n":
    sys.exit(f"{package} is no Debian package")
at = 8
while at < len(content):
    name = content[at:at + 16].decode().strip().rstrip("/")
    size = int(content[at + 48:at + 58])
    body = content[at + 60:at + 60 + size]
    at += 60 + size + size % 2
    if not name.startswith("data.tar"):
        continue
    if not name.endswith((".xz", ".gz", ".tar")):
        sys.exit(f"{package}: {name} needs dpkg-deb")
    data = lzma.decompress(body) if name.endswith(".xz") else body
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder)
