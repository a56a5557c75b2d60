// A checkpoint in a lower precision: matrices are converted while they are read. Norms stay, and so does a quantised matrix
// that has no more bits than what is asked for: converting it would only lose.
#include "model/checkpoint/checkpoint.h"

#include "tensor/quant_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>

namespace auspex {
namespace {

double bits_per_weight(DType type) {
    return 8.0 * dtype_info(type).block_bytes / dtype_info(type).block_elements;
}

class QuantizingCheckpoint : public Checkpoint {
  public:
    QuantizingCheckpoint(std::unique_ptr<Checkpoint> source, DType type)
        : source_(std::move(source)), type_(type), name_(source_->name()) {}

    const LlamaConfig& config() const override { return source_->config(); }
    const std::string& name() const override { return name_; }

    const TensorInfo* find(std::string_view tensor_name) const override {
        const auto known = converted_.find(tensor_name);
        if (known != converted_.end()) return &known->second;
        const TensorInfo* from = source_->find(tensor_name);
        if (!from || from->shape.size() != 2) return from;
        TensorInfo to = *from;
        to.dtype = fitting_type(type_, from->shape[1]);
        if (to.dtype == from->dtype) return from;
        if (is_quantized(from->dtype) && bits_per_weight(from->dtype) <= bits_per_weight(to.dtype)) return from;
        to.bytes = from->shape[0] * file_row_bytes(to.dtype, from->shape[1]); // no more than the source's elements × 4
        return &converted_.emplace(from->name, std::move(to)).first->second;
    }

    // Whole rows at a time; a range that begins or ends inside a row converts that row for it.
    Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
        const TensorInfo* from = source_->find(tensor.name);
        if (!from || converted_.find(tensor.name) == converted_.end()) return source_->read(tensor, offset, out);
        if (offset > tensor.bytes || out.size() > tensor.bytes - offset)
            return {Code::internal, name_ + ": read outside of tensor " + in_quotes(tensor.name)};
        try {
            const uint64_t cols = tensor.shape[1], from_row = file_row_bytes(from->dtype, cols), to_row = file_row_bytes(tensor.dtype, cols);
            std::vector<std::byte> raw(from_row), whole(to_row);
            std::vector<float> values(cols);
            while (!out.empty()) {
                const uint64_t row = offset / to_row, skip = offset % to_row;
                AUSPEX_TRY(source_->read(*from, row * from_row, raw));
                dequantize_blocks(from->dtype, raw, values);
                if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
                    return {Code::bad_file, name_ + ": tensor " + tensor.name + " holds a number that is not finite in row " +
                                                std::to_string(row) + ", expected finite weights to quantise"};
                const uint64_t n = std::min<uint64_t>(out.size(), to_row - skip);
                if (n == to_row) {
                    quantize_blocks(tensor.dtype, values, out.first(n));
                } else {
                    quantize_blocks(tensor.dtype, values, whole);
                    std::memcpy(out.data(), whole.data() + skip, n);
                }
                out = out.subspan(n);
                offset += n;
            }
            return ok_status();
        } catch (const std::bad_alloc&) {
            return {Code::out_of_host_memory, name_ + ": found no memory to quantise tensor " + in_quotes(tensor.name)};
        }
    }

    void release(const TensorInfo& tensor) const override {
        if (const TensorInfo* from = source_->find(tensor.name)) source_->release(*from);
    }

  private:
    std::unique_ptr<Checkpoint> source_;
    DType type_;
    std::string name_;
    mutable std::map<std::string, TensorInfo, std::less<>> converted_; // filled as tensors are asked for
};

} // namespace

// The wanted type, or the next one whose blocks fit the row (llama.cpp falls back the same way).
DType fitting_type(DType wanted, uint64_t cols) {
    if (cols % dtype_info(wanted).block_elements == 0) return wanted;
    if (wanted == DType::q4_k && cols % 32 == 0) return DType::q4_0;
    if (wanted == DType::q6_k && cols % 32 == 0) return DType::q8_0;
    return DType::f16;
}

Result<std::unique_ptr<Checkpoint>> quantize_checkpoint(std::unique_ptr<Checkpoint> source, DType type) {
    if (!can_quantize_to(type))
        return Status(Code::unsupported, source->name() + ": found no way to quantise to " + std::string(dtype_name(type)) +
                                             ", expected q8_0, q4_0, q4_k, q6_k, f16 or bf16");
    try {
        return std::unique_ptr<Checkpoint>(std::make_unique<QuantizingCheckpoint>(std::move(source), type));
    } catch (const std::exception&) {
        return Status(Code::out_of_host_memory, "found no memory to quantise a checkpoint");
    }
}

} // namespace auspex
