# Prints the digests of gguf-py's dequantize and quantize that tests/tensor/quant_blocks_test.cpp holds our blocks to.
# Run: python3 tests/peers/quant_digests.py    (needs numpy and gguf; Debian: python3-gguf). Paste the output.
# Blocks and floats come from splitmix64, counted, so that the C++ test makes the same ones.
import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize, quantize

np.seterr(all="ignore")
U64 = np.uint64
N_BLOCKS, CHUNK = 208000, 16000  # CHUNK is a multiple of 16
N_ENCODED = 48000
SPECIAL_HALVES = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF,
                           0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x3C00, 0xBC00, 0x0200, 0x83FF], np.uint16)
HALF_OFFSETS = {T.F32: [], T.F16: [], T.BF16: [], T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0],
                T.Q5_1: [0, 2], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}


def mix(z):
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


def random_words(seed, first, count):  # words first … first + count - 1 of the stream
    return mix(U64(seed) + np.arange(first + 1, first + count + 1, dtype=U64) * U64(0x9E3779B97F4A7C15))


def digest(words, first):  # of unsigned words, the first of which has the number `first`; parts add up
    numbered = (np.arange(first, first + words.size, dtype=U64) << U64(32)) | words.astype(U64)
    return int(mix(numbered).sum(dtype=U64))


def random_blocks(dtype, first, count):
    block_bytes = GGML_QUANT_SIZES[dtype][1]
    words_per_block = (block_bytes + 7) // 8
    words = random_words(int(dtype), first * words_per_block, count * words_per_block)
    blocks = words.view(np.uint8).reshape(count, -1)[:, :block_bytes].copy()
    number = np.arange(first, first + count)
    for k, offset in enumerate(HALF_OFFSETS[dtype]):  # one block in eight has special scales
        special = SPECIAL_HALVES[(number // 8 >> (4 * k)) % 16].reshape(-1, 1).view(np.uint8)
        blocks[:, offset:offset + 2] = np.where((number % 8 == 0)[:, None], special, blocks[:, offset:offset + 2])
    return blocks


def decode_digest(dtype):
    total = 0
    elements = GGML_QUANT_SIZES[dtype][0]
    for first in range(0, N_BLOCKS, CHUNK):
        values = dequantize(random_blocks(dtype, first, CHUNK), dtype).reshape(-1)
        bits = np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))
        total += digest(bits, first * elements)
    return total % 2**64


def encode_input(first, count):  # blocks of 32
    words = random_words(1000, first * 32, count * 32).reshape(count, 32)
    bell = sum(((words >> U64(16 * k)) & U64(0xFFFF)).astype(np.int64) for k in range(4)) - 131070
    number = np.arange(first, first + count)
    kind = number % 16
    scale = np.ldexp(np.float32(1), (number // 16 % 36 - 40).astype(np.int32)).astype(np.float32)[:, None]
    x = bell.astype(np.float32)
    x[kind == 0] = 0
    x[kind == 1] = x[kind == 1][:, :1]  # constant
    x[kind == 2, 1:] = 0  # one spike
    x[kind == 3] = np.where(x[kind == 3] < 0, -3, 3)  # ties for the largest
    # Multiples of 0.5 below 127, which is there too: ties in rounding.
    halves = (words % U64(509)).astype(np.int64) - 254
    x[kind == 4] = halves[kind == 4].astype(np.float32) * np.float32(0.5)
    x[kind == 4, 7] = 127
    x[kind == 5] = (halves[kind == 5] // 32).astype(np.float32) * np.float32(0.5)
    x[kind == 5, 9] = -8
    scale[(kind == 4) | (kind == 5)] = 1
    return (x * scale).astype(np.float32)


def encode_digest(dtype):
    return digest(quantize(encode_input(0, N_ENCODED), dtype).reshape(-1), 0)


def narrow_digest(dtype):  # every kind of f32 but NaN and infinity
    bits = (random_words(2000, 0, 400000) >> U64(32)).astype(np.uint32)
    bits = np.where((bits & 0x7F800000) == 0x7F800000, bits & np.uint32(0x807FFFFF), bits)
    bits[::2] = (bits[::2] & np.uint32(0x8FFFFFFF)) + np.uint32(0x30000000)  # half of them near f16's range
    return digest(quantize(bits.view(np.float32).reshape(1, -1), dtype).reshape(-1).view(np.uint16), 0)


for dtype in HALF_OFFSETS:
    print(f"    {{DType::{dtype.name.lower()}, 0x{decode_digest(dtype):016x}}},", flush=True)
for dtype in (T.Q8_0, T.Q4_0):
    print(f"    encoded {{DType::{dtype.name.lower()}, 0x{encode_digest(dtype):016x}}},", flush=True)
for dtype in (T.F16, T.BF16):
    print(f"    narrowed {{DType::{dtype.name.lower()}, 0x{narrow_digest(dtype):016x}}},", flush=True)
