// Reads constants, types and variables of a module (SPIR-V specification 1.6, section 3.52).
#include "profiles/module_sizes.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace auspex::test {
namespace {

enum Op : uint32_t {
    kExecutionModeLocalSize = 17, // of OpExecutionMode
    kStorageClassWorkgroup = 4,
    kDecorationSpecId = 1,
    kDecorationBuiltIn = 11,
    kBuiltInWorkgroupSize = 25,

    kExecutionMode = 16,
    kTypeBool = 20,
    kTypeInt = 21,
    kTypeFloat = 22,
    kTypeVector = 23,
    kTypeArray = 28,
    kTypeStruct = 30,
    kTypePointer = 32,
    kConstantTrue = 41,
    kConstantFalse = 42,
    kConstant = 43,
    kConstantComposite = 44,
    kSpecConstantTrue = 48,
    kSpecConstantFalse = 49,
    kSpecConstant = 50,
    kSpecConstantComposite = 51,
    kSpecConstantOp = 52,
    kFunction = 54,
    kVariable = 59,
    kDecorate = 71,
    kExecutionModeId = 331,
};

std::runtime_error unknown(uint32_t op) { return std::runtime_error("instruction " + std::to_string(op) + " is not known"); }

// OpSpecConstantOp on 32 bits.
uint32_t fold(uint32_t op, const std::vector<uint32_t>& x) {
    const auto s = [&](size_t i) { return static_cast<int32_t>(x[i]); };
    if (op >= 134 && op <= 139 && x[1] == 0) return 0; // as it may be in a constant that nobody needs
    switch (op) {
    case 126: return 0 - x[0];
    case 128: return x[0] + x[1];
    case 130: return x[0] - x[1];
    case 132: return x[0] * x[1];
    case 134: return x[0] / x[1];
    case 135: return static_cast<uint32_t>(s(0) / s(1));
    case 137: return x[0] % x[1];
    case 138: return static_cast<uint32_t>(s(0) % s(1));
    case 139: return static_cast<uint32_t>(((s(0) % s(1)) + s(1)) % s(1));
    case 164: return x[0] == x[1]; // of bool
    case 165: return x[0] != x[1];
    case 166: return x[0] || x[1];
    case 167: return x[0] && x[1];
    case 168: return !x[0];
    case 169: return x[0] ? x[1] : x[2];
    case 170: return x[0] == x[1];
    case 171: return x[0] != x[1];
    case 172: return x[0] > x[1];
    case 173: return s(0) > s(1);
    case 174: return x[0] >= x[1];
    case 175: return s(0) >= s(1);
    case 176: return x[0] < x[1];
    case 177: return s(0) < s(1);
    case 178: return x[0] <= x[1];
    case 179: return s(0) <= s(1);
    case 194: return x[0] >> x[1];
    case 195: return static_cast<uint32_t>(s(0) >> x[1]);
    case 196: return x[0] << x[1];
    case 197: return x[0] | x[1];
    case 198: return x[0] ^ x[1];
    case 199: return x[0] & x[1];
    case 200: return ~x[0];
    default: throw unknown(op);
    }
}

} // namespace

ModuleSizes sizes_of(std::span<const uint32_t> spirv, const std::map<uint32_t, uint32_t>& constants) {
    ModuleSizes sizes;
    std::map<uint32_t, uint32_t> spec_ids, values; // by id
    std::map<uint32_t, uint64_t> bytes;            // of types
    std::map<uint32_t, uint32_t> pointees;
    std::map<uint32_t, std::vector<uint32_t>> composites;
    uint32_t workgroup_size = 0;
    const auto chosen = [&](uint32_t id, uint32_t otherwise) {
        const auto spec = spec_ids.find(id);
        if (spec == spec_ids.end()) return otherwise;
        const auto value = constants.find(spec->second);
        return value == constants.end() ? otherwise : value->second;
    };
    for (size_t at = 5; at < spirv.size();) {
        const uint32_t op = spirv[at] & 0xffff, n = spirv[at] >> 16;
        const std::span<const uint32_t> words = spirv.subspan(at, n);
        at += n;
        switch (op) {
        case kExecutionMode:
            if (words[2] == kExecutionModeLocalSize)
                for (int i = 0; i < 3; ++i) sizes.local_size[i] = words[3 + i];
            break;
        case kExecutionModeId: throw unknown(op); // glslang writes these for Vulkan 1.3 only
        case kDecorate:
            if (words[2] == kDecorationSpecId) spec_ids[words[1]] = words[3];
            if (words[2] == kDecorationBuiltIn && words[3] == kBuiltInWorkgroupSize) workgroup_size = words[1];
            break;
        case kTypeBool: bytes[words[1]] = 4; break;
        case kTypeInt:
        case kTypeFloat: bytes[words[1]] = words[2] / 8; break;
        case kTypeVector: bytes[words[1]] = bytes[words[2]] * words[3]; break;
        case kTypeArray: bytes[words[1]] = bytes[words[2]] * values.at(words[3]); break;
        case kTypeStruct:
            for (const uint32_t member : words.subspan(2)) bytes[words[1]] += bytes[member];
            break;
        case kTypePointer: pointees[words[1]] = words[3]; break;
        case kConstantTrue: values[words[2]] = 1; break;
        case kConstantFalse: values[words[2]] = 0; break;
        case kConstant: values[words[2]] = words[3]; break;
        case kSpecConstantTrue: values[words[2]] = chosen(words[2], 1); break;
        case kSpecConstantFalse: values[words[2]] = chosen(words[2], 0); break;
        case kSpecConstant: values[words[2]] = chosen(words[2], words[3]); break;
        case kConstantComposite:
        case kSpecConstantComposite: composites[words[2]].assign(words.begin() + 3, words.end()); break;
        case kSpecConstantOp: {
            if (words[3] == 81) { // OpCompositeExtract
                values[words[2]] = values.at(composites.at(words[4]).at(words[5]));
                break;
            }
            std::vector<uint32_t> operands;
            for (const uint32_t id : words.subspan(4)) operands.push_back(values.at(id));
            values[words[2]] = fold(words[3], operands);
            break;
        }
        case kVariable:
            if (words[3] == kStorageClassWorkgroup) sizes.shared_bytes += bytes.at(pointees.at(words[1]));
            break;
        case kFunction: at = spirv.size(); break; // all of the above comes before
        default: break;
        }
    }
    if (workgroup_size != 0)
        for (int i = 0; i < 3; ++i) sizes.local_size[i] = values.at(composites.at(workgroup_size).at(i));
    return sizes;
}

} // namespace auspex::test
