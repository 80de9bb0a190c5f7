"""When launch/setup configures a build folder, and when anew."""
import os
import shutil
import unittest

from setup_case import SetupCase


class ConfigureTest(SetupCase):
    def configured(self, *flags, **variables):
        """How this call has configured: "", "again" or "fresh"; and what it said."""
        before = len(self.calls())
        done = self.run_setup(*flags, **variables)
        self.assertEqual(done.returncode, 0, done.stdout)
        calls = [call for call in self.calls()[before:] if call.startswith("configure")]
        self.assertLess(len(calls), 2)
        return "".join("fresh" if "--fresh" in call else "again" for call in calls), done.stdout

    def test_compilers_and_mpi_that_have_changed_are_configured_anew(self):
        mpirun = self.program(self.tools / "mpirun", "#!/bin/sh\necho 4.1\n")
        self.assertEqual(self.configured()[0], "fresh")
        self.assertEqual(self.configured()[0], "")
        self.program(mpirun, "#!/bin/sh\necho 5.0\n")
        how, said = self.configured()
        self.assertEqual(how, "fresh")
        self.assertIn("not as at the last configure: mpirun", said)
        self.assertEqual(self.configured()[0], "")
        # A shell without its module, and without its libraries.
        elsewhere = self.folder / "modules"
        elsewhere.mkdir()
        self.program(elsewhere / "mpirun", '#!/bin/sh\n[ -n "$LOADED" ] && echo 6.0\n')
        self.assertEqual(self.configured(PATH=f"{elsewhere}:{self.tools}:{os.environ['PATH']}", LOADED="1")[0], "fresh")
        mpirun.unlink()
        if not shutil.which("mpirun"):
            self.assertEqual(self.configured()[0], "")

    def test_what_cxx_and_cudacxx_said_holds(self):
        """Until they say something else, or a toolkit is another one."""
        nvcc = self.program(self.folder / "nvcc", "#!/bin/sh\necho 13.0\n")
        other = self.program(self.folder / "other++", "#!/bin/sh\necho 1\n")
        self.assertEqual(self.configured()[0], "fresh")
        how, said = self.configured(CUDACXX=str(nvcc), CXX=str(other))
        self.assertEqual(how, "fresh")
        self.assertRegex(said, "last configure: .*compiler .*nvcc")
        self.assertEqual(self.configured()[0], "")
        self.program(nvcc, "#!/bin/sh\necho 13.1\n")
        self.assertEqual(self.configured()[0], "fresh")
        self.assertIn(f"CXX={other} CUDACXX={nvcc}", self.calls()[-2])
        other.unlink()
        self.assertEqual(self.configured()[0], "fresh")
        self.assertIn(f"CXX= CUDACXX={nvcc}", self.calls()[-2])
        self.assertEqual(self.configured(CXX="c++")[0], "")  # which it is by itself

    def test_builds_without_cuda_do_not_look_at_a_toolkit(self):
        nvcc = self.program(self.folder / "nvcc", "#!/bin/sh\necho 13.0\n")
        for preset, how in ("cpu", ""), ("release", "fresh"):
            self.configured("--preset", preset)
            self.assertEqual(self.configured("--preset", preset, CUDACXX=str(nvcc))[0], how)

    def test_a_configure_that_failed_is_made_anew(self):
        mpirun = self.program(self.tools / "mpirun", "#!/bin/sh\necho 4.1\n")
        self.configured()
        for code in "false", "kill -KILL":
            self.program(mpirun, "#!/bin/sh\necho 5.0\n")
            self.assertNotEqual(self.run_setup(STUB_CONFIGURE=code).returncode, 0)
            self.program(mpirun, "#!/bin/sh\necho 4.1\n")
            self.assertEqual(self.configured()[0], "fresh")

    def test_builds_that_it_has_not_configured_are_taken_over(self):
        """Of an earlier version, or made by hand: what is compiled stays, unless it is of another environment."""
        self.configured()
        made = self.folder / "clone/build/release"
        (made / "object.o").touch()
        (made / "tools").unlink()
        self.assertEqual(self.configured()[0], "again")
        self.assertEqual(self.configured()[0], "")
        for name in "tools", "environment":
            (made / name).unlink()
        self.assertEqual(self.configured()[0], "again")
        self.assertTrue((made / "object.o").exists())
        (made / "tools").unlink()
        other = self.program(self.folder / "other++", "#!/bin/sh\necho 1\n")
        self.assertEqual(self.configured(CXX=str(other))[0], "fresh")
        self.assertTrue((made / "object.o").exists())

        torch = self.environment / "lib/python3.11/site-packages/torch"
        torch.mkdir(parents=True)
        for place, kept in (self.folder / "clone/build/env/lib/python3.11/site-packages/torch", True), (self.folder / "torch", False):
            with (made / "CMakeCache.txt").open("a") as cache:
                cache.write(f"SIDESTREAM_TORCH_DIR:PATH={place}\n")
            for name in "tools", "environment":
                (made / name).unlink()
            how, said = self.configured()
            self.assertEqual((how, (made / "object.o").exists()), ("again" if kept else "fresh", kept), said)

    def test_objects_of_another_environment_go(self):
        self.configured()
        made = self.folder / "clone/build/release"
        (made / "object.o").touch()
        how, said = self.configured(STUB_VERSION="3.12")
        self.assertEqual((how, (made / "object.o").exists()), ("fresh", False))
        self.assertIn("the Python environment has changed", said)
        # build/env has led elsewhere since somebody configured this one.
        for name in "tools", "environment":
            (made / name).unlink()
        (made / "object.o").touch()
        os.utime(made / "build.ninja", (1, 1))
        self.assertEqual(self.configured(STUB_VERSION="3.12")[0], "fresh")
        self.assertFalse((made / "object.o").exists())


unittest.main()
