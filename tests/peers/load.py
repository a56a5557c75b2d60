#!/usr/bin/env python3
"""Time and host memory from the start of the program to one generated token, ours and llama.cpp's in turn on the same GGUF file.

    load.py PROGRAM FOLDER [MODEL…]    PROGRAM: auspex. FOLDER gets the models, once. MODEL: names of speed.py; "small f16" and
                                       "small q4_0" unless told. LLAMA_BENCH names another llama-bench, REPETITIONS another 5.

Both skip their warm-up. On a device that is a CPU, memory holds the weights of the device too, and the pages of the file.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import time

import speed


def measured(command, env=None):
    """Seconds, and peak MiB resident."""
    begin = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def main(program, folder, names):
    repetitions = int(os.environ.get("REPETITIONS", "5"))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    print("| model | s, ours | s, llama.cpp | ratio | MiB, ours | MiB, llama.cpp | ratio |\n|---|---:|---:|---:|---:|---:|---:|")
    for name in names:
        model = speed.gguf_of(program, folder, name)
        sides = [([program, "run", "-m", model, "--no-draft", "--tokens", "1", "--no-stop", "-n", 1, "-c", 512], None),
                 ([os.environ.get("LLAMA_BENCH", "llama-bench"), "-m", model, "-ngl", 99, "-p", 0, "-n", 1, "-r", 1, "--no-warmup"],
                  {**os.environ, "GGML_VK_VISIBLE_DEVICES": "0"})]
        for side in sides:
            measured(*side)  # shader caches, and the file's pages
        samples = [[measured(*side) for side in sides] for _ in range(repetitions)]
        (ours_s, ours_mib), (peer_s, peer_mib) = ([statistics.median(column) for column in zip(*side)] for side in zip(*samples))
        print(f"| {name} | {ours_s:.2f} | {peer_s:.2f} | {ours_s / peer_s:.2f} | {ours_mib:.0f} | {peer_mib:.0f} | {ours_mib / peer_mib:.2f} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= set(speed.PEER_MODELS):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:] or ["small f16", "small q4_0"])
