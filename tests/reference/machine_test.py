"""Results name the generation and the units of the processor, also where it calls itself "AMD EPYC" only."""
import unittest

import machine

BASE, AVX512 = "fpu avx2", "fpu avx2 avx512f avx512bw"
BF16 = AVX512 + " avx512_bf16"
ZEN_3 = "AMD EPYC (Zen 3: AVX2, no units for bf16)"
ZEN_4 = "AMD EPYC (Zen 4: AVX-512 in two halves of 256 bits, with dot products of bf16)"
ZEN_5 = "AMD EPYC (Zen 5: AVX-512 in units of 512 bits, with dot products of bf16)"


def cpuinfo(vendor, family, model, name, flags):
    """Of two processors; a file of Linux has more fields."""
    one = (f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\nstepping\t: 1\n"
           f"flags\t\t: {flags}\npower management:\n\n")
    return f"processor\t: 0\n{one}processor\t: 1\n{one}"


def epyc(family, model, flags):
    return machine.described(cpuinfo("AuthenticAMD", family, model, "AMD EPYC", flags))


def xeon(flags):
    return machine.described(cpuinfo("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Processor", flags))


class DescribedTest(unittest.TestCase):
    def test_generations_by_their_models(self):
        for model in (0, 1, 15, 32, 33, 95):
            self.assertEqual(epyc(25, model, BASE), ZEN_3, model)
        for model in (16, 17, 31, 96, 97, 160, 175):
            self.assertEqual(epyc(25, model, BF16), ZEN_4, model)
        for model in (0, 2, 17, 31, 68):
            self.assertEqual(epyc(26, model, BF16), ZEN_5, model)

    def test_no_width_where_a_generation_has_two(self):
        self.assertEqual(epyc(26, 36, BF16), "AMD EPYC (Zen 5: AVX-512, with dot products of bf16)")

    def test_others_of_amd_have_their_units_only(self):
        self.assertEqual(epyc(23, 49, BASE), "AMD EPYC (AVX2, no units for bf16)")
        self.assertEqual(epyc(26, 80, BF16), "AMD EPYC (AVX-512, with dot products of bf16)")

    def test_what_a_virtual_machine_hides_is_not_named(self):
        self.assertEqual(epyc(25, 17, BASE), ZEN_3.replace("Zen 3", "Zen 4"))
        self.assertEqual(epyc(25, 17, AVX512), ZEN_4.replace(", with dot products of bf16", ""))

    def test_units_of_intel(self):
        self.assertEqual(xeon(BF16 + " amx_bf16 amx_tile"), "Intel(R) Xeon(R) Processor (AMX)")
        self.assertEqual(xeon(BF16), "Intel(R) Xeon(R) Processor (AVX-512 with dot products of bf16, no AMX)")
        self.assertEqual(xeon(AVX512), "Intel(R) Xeon(R) Processor (AVX-512, no AMX)")

    def test_what_is_not_known_is_left_out(self):
        self.assertEqual(machine.described(cpuinfo("Other", 1, 1, "Some Processor", BASE)), "Some Processor")
        self.assertEqual(machine.described(""), "unknown processor")


class HereTest(unittest.TestCase):
    def test_the_name_of_run_json_is_part_of_it(self):
        self.assertIn(f", {machine.processor()}", machine.today_here())
        self.assertNotIn("Zen", machine.processor())


if __name__ == "__main__":
    unittest.main()
