// Every field is fetched by the number of its first bit in the block, counted from the lowest bit of the first byte.
#include "reference/quants.h"

#include "reference/half.h"

#include <bit>

namespace auspex::reference {
namespace {

// One block as a row of bits.
class Bits {
  public:
    explicit Bits(std::span<const std::byte> block) : block_(block) {}

    uint32_t operator()(size_t first, size_t count) const {
        uint32_t value = 0;
        for (size_t i = 0; i < count; ++i) {
            const size_t bit = first + i;
            value |= (std::to_integer<uint32_t>(block_[bit / 8]) >> bit % 8 & 1u) << i;
        }
        return value;
    }
    double number(size_t first, size_t count) const { return (*this)(first, count); }
    double half(size_t byte) const { return half_to_float(static_cast<uint16_t>((*this)(byte * 8, 16))); }

  private:
    std::span<const std::byte> block_;
};

// The first bit of field e of `width` bits, where `lanes` bytes in a row hold one field each of as many consecutive
// elements, the next `lanes` elements take the next higher bits of the same bytes, and full bytes are followed by the
// next group.
size_t interleaved(size_t e, size_t lanes, size_t width) {
    const size_t per_byte = 8 / width, group = lanes * per_byte;
    const size_t byte = e / group * lanes + e % lanes, place = e % group / lanes;
    return byte * 8 + place * width;
}

// Scales of q4_k and q5_k begin at byte 4.
double small_scale(const Bits& bits, size_t sub) {
    const size_t base = 4 * 8;
    if (sub < 4) return bits.number(base + sub * 8, 6);
    return bits.number(base + (4 + sub) * 8, 4) + 16 * bits.number(base + (sub - 4) * 8 + 6, 2);
}
double small_min(const Bits& bits, size_t sub) {
    const size_t base = 4 * 8;
    if (sub < 4) return bits.number(base + (4 + sub) * 8, 6);
    return bits.number(base + (4 + sub) * 8 + 4, 4) + 16 * bits.number(base + sub * 8 + 6, 2);
}

// Two's complement.
double signed_number(const Bits& bits, size_t first, size_t count) {
    const double value = bits.number(first, count), limit = static_cast<double>(uint64_t{1} << (count - 1));
    return value >= limit ? value - 2 * limit : value;
}

double q3_k(const Bits& bits, size_t e) {
    const size_t sub = e / 16;
    const double scale = bits.number(96 * 8 + sub % 8 * 8 + sub / 8 * 4, 4) +
                         16 * bits.number(104 * 8 + sub % 4 * 8 + sub / 4 * 2, 2) - 32;
    const double value = bits.number(32 * 8 + interleaved(e, 32, 2), 2);
    return bits.half(108) * scale * (bits(interleaved(e, 32, 1), 1) ? value : value - 4);
}

double element(DType dtype, const Bits& bits, size_t e) {
    switch (dtype) {
    case DType::f32:
        return std::bit_cast<float>(bits(0, 32));
    case DType::f16:
        return bits.half(0);
    case DType::bf16:
        return bfloat_to_float(static_cast<uint16_t>(bits(0, 16)));
    case DType::q8_0:
        return bits.half(0) * signed_number(bits, 16 + e * 8, 8);
    case DType::q4_0:
        return bits.half(0) * (bits.number(16 + interleaved(e, 16, 4), 4) - 8);
    case DType::q4_1:
        return bits.half(0) * bits.number(32 + interleaved(e, 16, 4), 4) + bits.half(2);
    case DType::q5_0:
        return bits.half(0) * (bits.number(48 + interleaved(e, 16, 4), 4) + 16 * bits.number(16 + e, 1) - 16);
    case DType::q5_1:
        return bits.half(0) * (bits.number(64 + interleaved(e, 16, 4), 4) + 16 * bits.number(32 + e, 1)) + bits.half(2);
    case DType::q2_k:
        return bits.half(80) * bits.number(e / 16 * 8, 4) * bits.number(16 * 8 + interleaved(e, 32, 2), 2) -
               bits.half(82) * bits.number(e / 16 * 8 + 4, 4);
    case DType::q3_k:
        return q3_k(bits, e);
    case DType::q4_k:
        return bits.half(0) * small_scale(bits, e / 32) * bits.number(16 * 8 + interleaved(e, 32, 4), 4) -
               bits.half(2) * small_min(bits, e / 32);
    case DType::q5_k:
        return bits.half(0) * small_scale(bits, e / 32) *
                   (bits.number(48 * 8 + interleaved(e, 32, 4), 4) +
                    16 * bits.number(16 * 8 + interleaved(e, 32, 1), 1)) -
               bits.half(2) * small_min(bits, e / 32);
    case DType::q6_k:
        return bits.half(208) * signed_number(bits, 192 * 8 + e / 16 * 8, 8) *
               (bits.number(interleaved(e, 64, 4), 4) + 16 * bits.number(128 * 8 + interleaved(e, 32, 2), 2) - 32);
    case DType::u32:
        break;
    }
    return 0;
}

} // namespace

std::vector<double> dequantize(DType dtype, std::span<const std::byte> blocks) {
    const DTypeInfo& info = dtype_info(dtype);
    std::vector<double> out;
    for (size_t at = 0; at + info.block_bytes <= blocks.size(); at += info.block_bytes)
        for (size_t e = 0; e < info.block_elements; ++e)
            out.push_back(element(dtype, Bits(blocks.subspan(at, info.block_bytes)), e));
    return out;
}

} // namespace auspex::reference
