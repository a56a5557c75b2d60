"""The comparison behind models_compare.sh: runs `auspex score` on each model, with an f32 and an f16 K/V cache.

Tolerances, in logits (whose standard deviation is 2 in these models):
  f32 cache   1e-3. Both sides have the same weights and float32 arithmetic, in another order: 1e-5 is to be expected, and
              1e-4 at positions beyond 8192, where float32 angles count (format_goldens.py measured 6e-5 against float64).
              A format read wrongly, rows permuted or positions scaled otherwise change logits by 0.1 and more.
  f16 cache   4 times what rounding keys and values to f16 changed in transformers (the reference says how much), because
              ours are rounded from slightly different values, plus the above.
Log-probabilities may differ by twice the first two (a logit and the logarithm of a sum of others); with an f16 cache by 4
times what rounding changed in any of them, plus that.
"""
import glob
import json
import math
import os
import subprocess
import sys


def tolerances(reference, cache):
    """Of a logit and of a log-probability."""
    exact = 1e-3
    if cache == "f32":
        return exact, 2 * exact
    return exact + 4 * reference["cache_f16"], 2 * exact + 4 * reference["cache_f16_logprobs"]


def score(program, path, reference, cache):
    tokens = reference["tokens"]
    rows = sorted(int(r) for r in reference["logits"])
    command = [program, "score", "-m", path, "--tokens", ",".join(map(str, tokens)), "--json", "--cache-type", cache,
               "--logits", ",".join(map(str, rows))]
    if len(tokens) > 4096:
        command += ["-c", str(len(tokens))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(f"exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def largest(name, ours, theirs, limit):
    """The largest difference; raises where it is above the limit or not a number."""
    if len(ours) != len(theirs):
        raise ValueError(f"{name}: {len(ours)} values, expected {len(theirs)}")
    worst = 0.0
    for i, (a, b) in enumerate(zip(ours, theirs)):
        error = abs(a - b) if a is not None else math.nan
        if not error <= limit:
            raise ValueError(f"{name} [{i}]: {a}, expected {b} ± {limit:.1e}")
        worst = max(worst, error)
    return worst


def compare(program, path, cache):
    with open(path + ".reference.json", encoding="utf-8") as file:
        reference = json.load(file)
    found = score(program, path, reference, cache)
    tokens = reference["tokens"]
    limit, log_prob_limit = tolerances(reference, cache)
    if found["tokens"] != tokens:
        raise ValueError("tokens are not those given")
    worst = 0.0
    for row, expected in reference["logits"].items():
        ours = found["logits"].get(row)
        if ours is None:
            raise ValueError(f"no logits of position {row}")
        worst = max(worst, largest(f"logits of position {row}", ours[:len(expected)], expected, limit))
    if found["logprobs"][:1] != [None]:
        raise ValueError("the first token has a log-probability, and nothing before it")
    log_prob_error = largest("logprobs", found["logprobs"][1:], reference["logprobs"], log_prob_limit)
    largest("perplexity, logarithm", [math.log(found["perplexity"])], [reference["nll"]], log_prob_limit)
    largest("nll", [found["nll"]], [reference["nll"]], log_prob_limit)
    return worst, log_prob_error, limit


def main():
    program, folder, only = sys.argv[1:4]
    failed = n = 0
    print(f"{'model':36} {'cache':5} {'logits':>9} {'logprobs':>9} {'allowed':>9}")
    for file in sorted(glob.glob(f"{folder}/*.reference.json")):
        path = file.removesuffix(".reference.json")
        name = os.path.basename(path)
        if only not in name:
            continue
        for cache in ("f32", "f16"):
            n += 1
            try:
                worst, log_prob_error, limit = compare(program, path, cache)
                print(f"{name:36} {cache:5} {worst:9.1e} {log_prob_error:9.1e} {limit:9.1e}", flush=True)
            except (ValueError, KeyError, TypeError) as error:
                failed += 1
                print(f"{name:36} {cache:5} FAILED: {error!r}"[:400], flush=True)
    print(f"{n - failed} of {n} as expected")
    sys.exit(1 if failed or n == 0 else 0)


if __name__ == "__main__":
    main()
