"""Bundles that do not fit are refused with one message and exit code 2, before anything is unpacked; wheels and packages
are unpacked without pip and dpkg."""

import fcntl
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/launch/training"))
sys.dont_write_bytecode = True
from running import processes_with, running  # noqa: E402


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


STUBS = {
    "pip": 'while [ "$1" != --dest ]; do shift; done; echo "$CONTENT" > "$2/tool-1.whl"',
    "apt-get": '[ -n "$CONTENT" ] || exit 100; case "$*" in *" download "*) echo "$CONTENT" > thing_1.deb;; esac',
    "mv": 'echo >> "$COUNT"; [ "$(wc -l < "$COUNT")" != "$KILL_AT" ] || { kill -KILL $PPID; exit; }; exec /bin/mv "$@"',
}


def check_making(root):
    """One that is killed, or finds no network, leaves the bundle that was there, or it comes back with the next call."""
    clone, tools = root / "clone", root / "clone/build/env/bin"
    for folder in clone / "launch", tools:
        folder.mkdir(parents=True)
    (clone / "launch/bundle").write_text((ROOT / "launch/bundle").read_text())
    shutil.copytree(ROOT / "launch/scripts", clone / "launch/scripts")
    (clone / "launch/bundle-packages.txt").write_text("wheel tool==1\ndeb thing\n")
    for name, text in STUBS.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)

    def make(content, kill_at=0, folder="made"):
        (root / "count").write_text("")
        stubs = {"PATH": f"{tools}:{os.environ['PATH']}", "CONTENT": content, "COUNT": str(root / "count"), "KILL_AT": str(kill_at)}
        return subprocess.run(["bash", clone / "launch/bundle", root / folder], text=True, capture_output=True, timeout=60,
                              env=os.environ | stubs)

    def holds(folder="made"):
        done = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=root / folder, capture_output=True, text=True)
        check(done.returncode == 0, f"the bundle is damaged: {done}")
        return {(root / folder / file).read_text().strip() for file in ("wheels/tool-1.whl", "debs/thing_1.deb")}

    check(make("one").returncode == 0 and holds() == {"one"}, "a bundle was made")
    check(make("").returncode == 2 and holds() == {"one"}, "without a network what was there stays")
    steps = 0
    while make("two", kill_at=steps + 1).returncode != 0:
        steps += 1
        check(make("").returncode == 2 and holds() == {"one"}, f"after a kill at step {steps}")
    check(steps > 5 and holds() == {"two"}, f"{steps} steps")
    check_first_making(root, make, holds)
    check_folders_of_others(root, make)
    check_making_at_the_same_time(root, make, holds)
    check(sorted(path.name for path in (root / "made").iterdir()) == [".lock", "SHA256SUMS", "debs", "wheels"], "something was left behind")


def check_first_making(root, make, holds):
    """What a killed one had put into a new folder is known for its own by the next call."""
    steps = 0
    while make("one", kill_at=steps + 1, folder=f"first-{steps}").returncode != 0:
        check(make("two", folder=f"first-{steps}").returncode == 0 and holds(f"first-{steps}") == {"two"}, f"after a kill at step {steps}")
        steps += 1
    check(steps > 2, f"{steps} steps")


def check_folders_of_others(root, make):
    for name in "wheels", "debs", "SHA256SUMS":
        own = root / f"with-{name}"
        own.mkdir()
        (own / name).write_text("my own\n")
        done = make("one", folder=own.name)
        check(done.returncode == 2 and f"{own / name} is of no bundle" in done.stderr and "new folder" in done.stderr, f"{done}")
        check((own / name).read_text() == "my own\n", f"{name} of somebody else is gone")


def check_making_at_the_same_time(root, make, holds):
    """A second call into the same folder touches nothing of the first one's before that has ended."""
    other = root / "made/.bundle.new/wheels"
    was_there = []

    def end():
        try:
            was_there.append(other.exists())
            shutil.rmtree(other.parent, ignore_errors=True)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    other.mkdir(parents=True)
    with (root / "made/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = threading.Timer(1, end)
        first.start()
        done = make("three")
        first.join()
    check(was_there == [True], "what another call fetches was removed")
    check(done.returncode == 0 and "another call makes the bundle" in done.stdout and holds() == {"three"}, f"{done}")


def check_systems(root):
    """Which ones it works on, where it does not work on this one."""
    tools = root / "systems"
    tools.mkdir()
    for libc, words in ("glibc 2.35", "this system has 2.35"), ("", "need glibc, which"):
        (tools / "getconf").write_text(f"#!/bin/sh\n[ -n '{libc}' ] && echo '{libc}'\n")
        (tools / "getconf").chmod(0o755)
        done = subprocess.run([ROOT / "launch/unpack-bundle", root / "good"], text=True, capture_output=True,
                              env=dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}"))
        check(done.returncode == 2 and words in done.stderr and "they work on Debian 12" in done.stderr, f"{done}")


def check_what_cmake_takes_for_a_bundle(root):
    """Where build/env leads, not whether there is a bundle, which a normal set-up leaves alone."""
    clone = root / "link/configured"
    (root / "place").mkdir()
    (root / "link").symlink_to(root / "place")
    (clone / "build/bundle/env").mkdir(parents=True)
    (root / "cache/env").mkdir(parents=True)
    script = clone / "ask.cmake"
    script.write_text(f'set(PROJECT_SOURCE_DIR "{clone}")\nset(SIDESTREAM_ENV "{clone}/build/env")\n'
                      f'include("{ROOT}/launch/cmake/SidestreamBundle.cmake")\nmessage("answer: ${{SIDESTREAM_IN_BUNDLE}}")\n')
    for target, answer in ((None, "OFF"), (clone / "build/bundle/env", "ON"), (root / "cache/env", "OFF"),
                           (root / "place/configured/build/bundle/env", "ON")):
        (clone / "build/env").unlink(missing_ok=True)
        if target:
            (clone / "build/env").symlink_to(target)
        done = subprocess.run([ROOT / "build/env/bin/cmake", "-P", script], text=True, capture_output=True)
        check(done.returncode == 0 and f"answer: {answer}" in done.stderr, f"{target}: {done}")


def check_fetching_at_the_same_time(root):
    """A second launch/fetch-nsys waits, and takes what the first one has brought."""
    clone = root / "fetching"
    home = clone / "build/nsight"
    (clone / "launch/scripts").mkdir(parents=True)
    home.mkdir(parents=True)
    for name in "fetch-nsys", "scripts/stoppable.sh", "scripts/take_lock.sh":
        shutil.copy(ROOT / "launch" / name, clone / "launch" / name)
    (clone / "apt-get").write_text("#!/bin/sh\nexit 100\n")
    (clone / "apt-get").chmod(0o755)

    def bring():
        (home / "root").mkdir(exist_ok=True)
        shutil.copy("/bin/true", home / "root/nsys")
        (home / "complete").touch()
        fcntl.flock(lock, fcntl.LOCK_UN)

    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        threading.Timer(1, bring).start()
        done = subprocess.run([clone / "launch/fetch-nsys"], text=True, capture_output=True, timeout=60,
                              env=dict(os.environ, PATH=f"{clone}:{os.environ['PATH']}"))
    check(done.returncode == 0 and done.stdout == str(home / "root/nsys") + "\n" and "waiting" in done.stderr, f"{done}")


def check_stopping(root):
    """What they have started ends with them."""
    clone = root / "stopping"
    (clone / "launch/scripts").mkdir(parents=True)
    for name in "bundle", "bundle-packages.txt", "fetch-nsys", "scripts/stoppable.sh", "scripts/take_lock.sh":
        shutil.copy(ROOT / "launch" / name, clone / "launch" / name)
    for name in "apt-get", "pip3":
        (clone / name).write_text("#!/bin/sh\ntouch up\n/bin/sleep 600\n")
        (clone / name).chmod(0o755)
    env = os.environ | {"PATH": f"{clone}:{os.environ['PATH']}", "OF_CHECK_STOPPING": str(root)}
    for words in ("fetch-nsys",), ("bundle", clone / "made"):
        with running([clone / "launch" / words[0], *words[1:]], env, cwd=clone) as process:
            deadline = time.monotonic() + 30
            while not (clone / "up").exists():
                check(time.monotonic() < deadline, f"{words}: it never began to fetch")
                time.sleep(0.02)
            process.terminate()
            output, _ = process.communicate(timeout=30)
        left = processes_with(f"OF_CHECK_STOPPING={root}")
        check(process.returncode == 143 and not left, f"{words}: {process.returncode}, {left} go on\n{output}")
        (clone / "up").unlink()
    check([path.name for path in (clone / "made").iterdir()] == [".lock"], "a bundle that was stopped left something behind")


def main():
    with tempfile.TemporaryDirectory(prefix="sidestream-bundle-") as name:
        root = pathlib.Path(name)
        check_refusals(root)
        check_wheel(root)
        check_package(root)
        check_systems(root)
        check_making(root)
        check_fetching_at_the_same_time(root)
        check_stopping(root)
        check_what_cmake_takes_for_a_bundle(root)


if __name__ == "__main__":
    main()
