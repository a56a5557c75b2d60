// Quantised blocks of any content: decoding and packing write exactly what they should, and what was decoded can be
// encoded again. Byte 0 selects the type, byte 1 the blocks in a row; the rest is blocks.
#include "fuzz/fuzz_targets.h"
#include "tensor/device_format.h"
#include "tensor/quant_blocks.h"

#include <cmath>

namespace auspex::test {

void fuzz_blocks(FuzzInput input) {
    if (input.size() < 2) return;
    constexpr auto n_types = static_cast<uint32_t>(std::size(kDtypeInfos));
    const auto dtype = static_cast<DType>(std::to_integer<uint32_t>(input[0]) % n_types);
    const DTypeInfo& info = dtype_info(dtype);
    const uint32_t cols = (1 + std::to_integer<uint32_t>(input[1]) % 9) * info.block_elements;
    const uint64_t row_bytes = file_row_bytes(dtype, cols);
    const uint64_t n_rows = (input.size() - 2) / row_bytes;
    if (n_rows == 0) return;
    // Exact copies, so that a sanitizer sees the first byte too many.
    const std::vector<std::byte> rows(input.begin() + 2,
                                      input.begin() + 2 + static_cast<std::ptrdiff_t>(n_rows * row_bytes));

    const uint64_t device_bytes = device_row_bytes(dtype, cols);
    fuzz_check(device_bytes % 16 == 0 && device_bytes >= row_bytes / 2 && device_bytes <= 2 * row_bytes + 64,
               "a row on the device is about as long as in the file");
    fuzz_check(is_quantized(dtype) || device_bytes >= row_bytes, "a row of numbers fits on the device");
    std::vector<std::byte> packed(n_rows * device_bytes);
    pack_rows(dtype, cols, /*tiled=*/false, rows, packed);
    if (dtype == DType::u32) return; // not a weight

    std::vector<float> values(n_rows * cols);
    dequantize_blocks(dtype, rows, values);
    for (float& value : values)
        if (!std::isfinite(value)) value = 0.0f; // the caller's to refuse
    if (!can_quantize_to(dtype)) return;
    const size_t n = std::min<size_t>(values.size(), 256) / info.block_elements; // blocks; searching takes long
    std::vector<std::byte> encoded(n * info.block_bytes);
    quantize_blocks(dtype, std::span<const float>(values).first(n * info.block_elements), encoded);
}

} // namespace auspex::test
