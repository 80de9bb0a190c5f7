"""torch.optim as oracle: 20 updates on the same gradients, each tensor within 1e-6 (relative norm).

torch_oracle.py OPTIM_REPLAY
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

STEPS, ELEMENTS, TOLERANCE = 20, 10007, 1e-6
ADAMW = {"algorithm": "adamw", "lr": 6e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}
CASES = {
    "adamw": ADAMW,
    "adamw, no decay, other betas": ADAMW | {"weight_decay": 0.0, "beta1": 0.8, "beta2": 0.999, "eps": 1e-6},
    "adamw, high rate": ADAMW | {"lr": 0.1},
    "sgd": {"algorithm": "sgd", "lr": 0.1, "momentum": 0.0, "weight_decay": 0.0},
    "sgd with momentum and decay": {"algorithm": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
}
GRADIENT_SCALE = 0.125


def torch_result(weights, gradients, case):
    parameter = torch.nn.Parameter(weights.clone())
    if case["algorithm"] == "adamw":
        optimizer = torch.optim.AdamW([parameter], lr=case["lr"], betas=(case["beta1"], case["beta2"]),
                                      eps=case["eps"], weight_decay=case["weight_decay"])
    else:
        optimizer = torch.optim.SGD([parameter], lr=case["lr"], momentum=case["momentum"],
                                    weight_decay=case["weight_decay"])
    for gradient in gradients:
        parameter.grad = gradient.float() * GRADIENT_SCALE
        optimizer.step()
    state = optimizer.state[parameter]
    result = {"weights": parameter.detach(), "copy": parameter.detach().bfloat16()}
    if case["algorithm"] == "adamw":
        return result | {"first": state["exp_avg"], "second": state["exp_avg_sq"]}
    return result | ({"first": state["momentum_buffer"]} if case["momentum"] else {})


def our_result(program, folder, tensors, case):
    source, target = folder / "in.safetensors", folder / "out.safetensors"
    target.unlink(missing_ok=True)
    options = {name: str(value) for name, value in case.items()} | {"gradient_scale": str(GRADIENT_SCALE)}
    save_file(tensors, source, metadata=options)
    subprocess.run([program, source, target], check=True)
    return load_file(target)


def compare(name, ours, theirs):
    bad = 0
    for key, expected in theirs.items():
        distance = ((ours[key].double() - expected.double()).norm() / expected.double().norm()).item()
        # A bf16 copy of weights that differ in the last bit may round the other way now and then.
        good = distance < (1e-4 if key == "copy" else TOLERANCE)
        bad += not good
        print(f"{'ok  ' if good else 'FAIL'} {name}: {key} differs by {distance:.2e}")
    return bad


def main():
    torch.manual_seed(1)
    weights = torch.randn(ELEMENTS)
    gradients = torch.randn(STEPS, ELEMENTS)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            for dtype in (torch.float32, torch.bfloat16):
                tensors = {"weights": weights, "gradients": gradients.to(dtype)}
                ours = our_result(sys.argv[1], Path(folder), tensors, case)
                bad += compare(f"{name}, gradients {dtype}", ours, torch_result(weights, tensors["gradients"], case))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
