// Every op of a Llama forward pass in double, one row at a time, as the papers write them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace auspex::reference {

using Vector = std::vector<double>;

// table: (n, width). Rows beyond the table are zeros.
Vector embed(std::span<const float> table, uint32_t width, uint32_t token);

// x / sqrt(mean(x²) + eps) · weight
Vector rmsnorm(const Vector& x, std::span<const float> weight, double eps);

// weight: (n_out, x.size()) row-major.
Vector matvec(std::span<const float> weight, const Vector& x);

// Rotates one head in place, element i with element i + head_dim / 2, by position · theta^(-2i / head_dim) / divisors[i];
// no divisors are ones.
void rope(std::span<double> head, uint32_t position, double theta, std::span<const double> divisors = {});

// What Llama 3.1 divides the frequencies of a head by (transformers' "llama3", wavelength by wavelength).
struct Llama3Rope {
    double factor, low_freq_factor, high_freq_factor, original_max_position;
};
Vector llama3_divisors(uint32_t head_dim, double theta, const Llama3Rope& scaling);

// One query head over its keys in order of position. keys, values: (n, head_dim) each.
Vector attention(std::span<const double> query, std::span<const double> keys, std::span<const double> values,
                 double scale);

// silu(gate) · up
Vector swiglu(const Vector& gate, const Vector& up);

// exp(logit / temperature) normalised; temperature > 0. Logits of -inf have probability zero.
Vector softmax(std::span<const double> logits, double temperature = 1.0);

// The natural logarithm of softmax at temperature 1. A logit that is NaN has no part in the sum, and NaN for an answer; without a largest
// one that is finite all answers are NaN.
Vector log_softmax(std::span<const double> logits);

// The n largest values by index, or all: the largest first, equal ones by lowest index, NaN last.
std::vector<uint32_t> largest(std::span<const double> values, size_t n);

// Lowest index of the largest value.
uint32_t argmax(std::span<const double> values);

} // namespace auspex::reference
