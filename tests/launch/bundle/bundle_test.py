"""Bundles that do not fit are refused with one message and exit code 2, before anything is unpacked; wheels and packages
are unpacked without pip and dpkg."""

import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]


def check(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)


def make_bundle(folder):
    (folder / "wheels").mkdir(parents=True)
    (folder / "wheels/a.whl").write_text("a wheel")
    digest = hashlib.sha256(b"a wheel").hexdigest()
    (folder / "SHA256SUMS").write_text(f"{digest}  wheels/a.whl\n# end of 1 files\n")
    return folder


def fake_python(folder, answer):
    """Answers what the script asks a Python about itself."""
    script = folder / f"python-{len(list(folder.iterdir()))}"
    script.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n")
    script.chmod(0o755)
    return script


def expect_refusal(bundle, python, *words):
    done = subprocess.run([ROOT / "launch/unpack-bundle", bundle], text=True, capture_output=True,
                          env=dict(os.environ, PYTHON=str(python)))
    lines = done.stderr.strip().splitlines()
    check(done.returncode == 2 and len(lines) == 1, f"expected exit code 2 and one line: {done}")
    for word in words:
        check(word in lines[0], f"expected '{word}' in: {lines[0]}")


def check_refusals(root):
    good = make_bundle(root / "good")
    right = fake_python(root, "3.11 2.11.0 /nowhere")
    expect_refusal(root / "absent", right, "there is no folder", "absent")
    (root / "empty").mkdir()
    expect_refusal(root / "empty", right, "no SHA256SUMS", "launch/bundle")
    expect_refusal(good, fake_python(root, "3.9 2.11.0 /nowhere"), "3.10 to 3.13", "found 3.9")
    expect_refusal(good, fake_python(root, "3.14 2.11.0 /nowhere"), "3.10 to 3.13", "found 3.14")
    expect_refusal(good, fake_python(root, "3.12 2.10.1 /nowhere"), "torch 2.11", "found 2.10.1")
    expect_refusal(good, fake_python(root, "3.12 none "), "torch 2.11", "found none")
    expect_refusal(good, root / "no-such-python", "no-such-python")
    expect_refusal(good, right, "made for another version", "libboost1.74-dev", "launch/bundle")
    damaged = make_bundle(root / "damaged")
    (damaged / "wheels/a.whl").write_text("another wheel")
    expect_refusal(damaged, right, "damaged", "wheels/a.whl")
    cut = make_bundle(root / "cut")
    (cut / "SHA256SUMS").write_text((cut / "SHA256SUMS").read_text().splitlines()[0] + "\n")
    expect_refusal(cut, right, "cut short", "copy it again")
    stray = make_bundle(root / "stray")
    (stray / "wheels/b.whl").write_text("from elsewhere")
    expect_refusal(stray, right, "wheels/b.whl", "not in SHA256SUMS")


def check_wheel(root):
    wheel = root / "tool.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tool.py", "def main():\n    print('works')\n")
        archive.writestr("tool-1.data/data/include/tool.h", "int tool;\n")
        archive.writestr("tool-1.dist-info/entry_points.txt", "[console_scripts]\ntool = tool:main\n")
    environment = root / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python3*/site-packages"))
    subprocess.run([sys.executable, ROOT / "launch/unpack_wheel.py", wheel, environment, packages], check=True)
    check((environment / "include/tool.h").exists(), "data of a wheel goes into the environment")
    output = subprocess.run([environment / "bin/tool"], text=True, capture_output=True).stdout
    check(output == "works\n", f"the wheel's script printed {output!r}")


def ar_member(name, content):
    header = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)


def check_package(root):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        member = tarfile.TarInfo("./usr/include/thing.h")
        member.size = 6
        archive.addfile(member, io.BytesIO(b"int x;"))
    package = root / "thing.deb"
    package.write_bytes(b"!<arch>\n" + ar_member("debian-binary", b"2.0\n") + ar_member("control.tar.xz", b"odd") +
                        ar_member("data.tar.xz", data.getvalue()))
    subprocess.run([sys.executable, ROOT / "launch/unpack_deb.py", package, root / "unpacked"], check=True)
    check((root / "unpacked/usr/include/thing.h").read_text() == "int x;", "the package was not unpacked")
    package.write_text("no package")
    done = subprocess.run([sys.executable, ROOT / "launch/unpack_deb.py", package, root], text=True, capture_output=True)
    check(done.returncode != 0 and "is no Debian package" in done.stderr, f"{done}")


def main():
    with tempfile.TemporaryDirectory(prefix="sidestream-bundle-") as name:
        root = pathlib.Path(name)
        check_refusals(root)
        check_wheel(root)
        check_package(root)


if __name__ == "__main__":
    main()
