// Each input that numbers something becomes a private variable of the same type, which main fills before all else (SPIR-V
// specification 1.6, sections 2.4 and 3.52).
#include "order/reordered.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace auspex::test {
namespace {

enum : uint32_t { // instructions, storage classes, decorations
    kEntryPoint = 15, kExecutionMode = 16, kCapability = 17,
    kTypeBool = 20, kTypeInt = 21, kTypeVector = 23, kTypePointer = 32, kTypeFirst = 19,
    kConstant = 43, kConstantComposite = 44, kFunction = 54, kVariable = 59, kLoad = 61, kStore = 62, kAccessChain = 65, kInBoundsAccessChain = 66, kDecorate = 71,
    kCompositeConstruct = 80, kCompositeExtract = 81, kIAdd = 128, kISub = 130, kIMul = 132, kUDiv = 134, kUMod = 137, kSelect = 169, kIEqual = 170, kLabel = 248,
    kInput = 1, kPrivate = 6,
    kBuiltIn = 11, kLocalSize = 17, kGroupNonUniform = 61,
};
enum BuiltIn : uint32_t {
    kNumWorkgroups = 24, kWorkgroupSize = 25, kWorkgroupId = 26, kLocalInvocationId = 27, kGlobalInvocationId = 28, kLocalInvocationIndex = 29,
    kSubgroupSize = 36, kNumSubgroups = 38, kSubgroupId = 40, kSubgroupInvocation = 41,
};
constexpr BuiltIn kNumbers[] = {kWorkgroupId, kLocalInvocationId, kGlobalInvocationId, kLocalInvocationIndex, kSubgroupId};
bool is_vector(uint32_t built_in) { return built_in <= kGlobalInvocationId; }

using Words = std::vector<uint32_t>;
void put(Words& to, uint32_t op, std::initializer_list<uint32_t> operands) {
    to.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
    to.insert(to.end(), operands);
}

template <typename F> void each_instruction(std::span<const uint32_t> spirv, const F& then) {
    for (size_t at = 5; at < spirv.size();) {
        const uint32_t n = spirv[at] >> 16;
        if (n == 0 || n > spirv.size() - at) throw std::runtime_error("a module ends within an instruction");
        then(spirv[at] & 0xffff, spirv.subspan(at, n));
        at += n;
    }
}

// What is there, and what has to be.
struct Module {
    uint32_t bound = 0, local_size = 0; // local_size: along x, where no constant says it
    std::map<uint32_t, uint32_t> built_ins; // id of the variable (of WorkgroupSize: the constant), by BuiltIn
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> pointers; // by storage class and pointee
    std::map<uint32_t, uint32_t> privates;  // id of the private variable, by that of the input
    uint32_t uint_type = 0, vector_type = 0, bool_type = 0;
    bool has_subgroups = false;
    Words decorations, globals, inputs; // new ones; inputs: ids for the entry point

    uint32_t next() { return bound++; }
    uint32_t type_of(uint32_t built_in) const { return is_vector(built_in) ? vector_type : uint_type; }
    uint32_t pointer_to(uint32_t type, uint32_t storage) {
        uint32_t& id = pointers[{storage, type}];
        if (id == 0) {
            id = next();
            put(globals, kTypePointer, {id, storage, type});
        }
        return id;
    }
    uint32_t variable(uint32_t type, uint32_t storage) {
        const uint32_t pointer = pointer_to(type, storage), id = next();
        put(globals, kVariable, {pointer, id, storage});
        return id;
    }
    uint32_t input(uint32_t built_in) {
        uint32_t& id = built_ins[built_in];
        if (id == 0) {
            id = variable(type_of(built_in), kInput);
            put(decorations, kDecorate, {id, kBuiltIn, built_in});
            inputs.push_back(id);
        }
        return id;
    }
};

Module read(std::span<const uint32_t> spirv) {
    Module m;
    m.bound = spirv[3];
    each_instruction(spirv, [&](uint32_t op, std::span<const uint32_t> words) {
        switch (op) {
        case kCapability: m.has_subgroups |= words[1] == kGroupNonUniform; break;
        case kExecutionMode:
            if (words[2] != kLocalSize) break;
            if (words[4] != 1 || words[5] != 1) throw std::runtime_error("a workgroup extends along y or z");
            m.local_size = words[3];
            break;
        case kDecorate:
            if (words[2] == kBuiltIn) m.built_ins[words[3]] = words[1];
            break;
        case kTypeBool: m.bool_type = words[1]; break;
        case kTypeInt:
            if (words[2] == 32 && words[3] == 0) m.uint_type = words[1];
            break;
        case kTypeVector:
            if (words[2] == m.uint_type && words[3] == 3) m.vector_type = words[1];
            break;
        case kTypePointer: m.pointers[{words[2], words[3]}] = words[1]; break;
        default: break;
        }
    });
    if (m.uint_type == 0) throw std::runtime_error("a module without unsigned integers");
    if (m.vector_type == 0) {
        m.vector_type = m.next();
        put(m.globals, kTypeVector, {m.vector_type, m.uint_type, 3});
    }
    if (m.bool_type == 0) {
        m.bool_type = m.next();
        put(m.globals, kTypeBool, {m.bool_type});
    }
    return m;
}

// Computes the new numbers and stores them: the first words of main.
Words prologue(Module& m) {
    Words code;
    const auto value = [&](uint32_t op, uint32_t type, uint32_t a, uint32_t b) {
        const uint32_t id = m.next();
        put(code, op, {type, id, a, b});
        return id;
    };
    const auto load = [&](uint32_t built_in) {
        const uint32_t from = m.input(built_in), id = m.next();
        put(code, kLoad, {m.type_of(built_in), id, from});
        return id;
    };
    const auto constant = [&](uint32_t number) {
        const uint32_t id = m.next();
        put(m.globals, kConstant, {m.uint_type, id, number});
        return id;
    };
    const auto vector = [&](uint32_t x, uint32_t y, uint32_t z) {
        const uint32_t id = m.next();
        put(code, kCompositeConstruct, {m.vector_type, id, x, y, z});
        return id;
    };
    const uint32_t zero = constant(0), one = constant(1);
    uint32_t size = m.built_ins[kWorkgroupSize];
    if (size == 0) {
        const uint32_t x = constant(m.local_size);
        size = m.next();
        put(m.globals, kConstantComposite, {m.vector_type, size, x, one, one});
    }

    const uint32_t last_group = value(kISub, m.vector_type, load(kNumWorkgroups), vector(one, one, one));
    const uint32_t group = value(kISub, m.vector_type, last_group, load(kWorkgroupId));
    uint32_t index = 0, subgroup = 0;
    if (m.has_subgroups) { // invocations of a subgroup stay together, in their order
        subgroup = value(kISub, m.uint_type, value(kISub, m.uint_type, load(kNumSubgroups), one), load(kSubgroupId));
        index = value(kIAdd, m.uint_type, value(kIMul, m.uint_type, subgroup, load(kSubgroupSize)), load(kSubgroupInvocation));
    } else {
        const uint32_t n = m.next(), spread = m.next(), eight = constant(8), given = load(kLocalInvocationIndex);
        put(code, kCompositeExtract, {m.uint_type, n, size, 0});
        const uint32_t column = value(kIMul, m.uint_type, value(kUMod, m.uint_type, given, eight), value(kUDiv, m.uint_type, n, eight));
        const uint32_t transposed = value(kIAdd, m.uint_type, column, value(kUDiv, m.uint_type, given, eight));
        const uint32_t is_whole = value(kIEqual, m.bool_type, value(kUMod, m.uint_type, n, eight), zero);
        put(code, kSelect, {m.uint_type, spread, is_whole, transposed, given});
        index = value(kISub, m.uint_type, value(kISub, m.uint_type, n, one), spread);
    }
    const uint32_t local = vector(index, zero, zero);
    const uint32_t global = value(kIAdd, m.vector_type, value(kIMul, m.vector_type, group, size), local);

    const std::map<uint32_t, uint32_t> values = {{kWorkgroupId, group}, {kLocalInvocationId, local}, {kGlobalInvocationId, global}, {kLocalInvocationIndex, index}, {kSubgroupId, subgroup}};
    for (const BuiltIn number : kNumbers)
        if (const auto to = m.privates.find(m.built_ins[number]); to != m.privates.end()) put(code, kStore, {to->second, values.at(number)});
    return code;
}

PFN_vkCreateShaderModule create_next = nullptr;

VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* callbacks, VkShaderModule* out) {
    const Words words = reordered({info->pCode, info->codeSize / 4});
    VkShaderModuleCreateInfo other = *info;
    other.pCode = words.data();
    other.codeSize = 4 * words.size();
    return create_next(device, &other, callbacks, out);
}

} // namespace

std::vector<uint32_t> reordered(std::span<const uint32_t> spirv) {
    Module m = read(spirv);
    for (const BuiltIn number : kNumbers)
        if (const uint32_t from = m.built_ins[number]) m.privates[from] = m.variable(m.type_of(number), kPrivate);
    const uint32_t part = m.pointer_to(m.uint_type, kPrivate); // to a component
    const Words first = prologue(m);

    Words out(spirv.begin(), spirv.begin() + 5);
    bool annotated = false, in_functions = false, filled = false, in_main = false;
    uint32_t main_function = 0;
    each_instruction(spirv, [&](uint32_t op, std::span<const uint32_t> given) {
        Words words(given.begin(), given.end());
        if (op == kEntryPoint) {
            main_function = words[2];
            words.insert(words.end(), m.inputs.begin(), m.inputs.end());
            words[0] = static_cast<uint32_t>(words.size()) << 16 | op;
        }
        if (!annotated && op >= kTypeFirst && op <= 39) { // the first type, after all annotations
            out.insert(out.end(), m.decorations.begin(), m.decorations.end());
            annotated = true;
        }
        if (op == kFunction) {
            if (!in_functions) out.insert(out.end(), m.globals.begin(), m.globals.end());
            in_functions = true;
            in_main = words[2] == main_function;
        } else if (in_main && !filled && op != kLabel && op != kVariable) { // behind the function's own variables
            out.insert(out.end(), first.begin(), first.end());
            filled = true;
        }
        const bool reads = op == kLoad || op == kAccessChain || op == kInBoundsAccessChain;
        if (const auto found = reads ? m.privates.find(words[3]) : m.privates.end(); found != m.privates.end()) {
            words[3] = found->second;
            if (op != kLoad) words[1] = part;
        }
        out.insert(out.end(), words.begin(), words.end());
    });
    out[3] = m.bound;
    return out;
}

VkHook reordering(VkHook then) {
    return [then](VkFunctions& vk) {
        if (then) then(vk);
        if (vk.CreateShaderModule && vk.CreateShaderModule != create_module) {
            create_next = vk.CreateShaderModule;
            vk.CreateShaderModule = create_module;
        }
    };
}

bool process_is_reordered() {
    static const bool is_reordered = [] {
        const char* order = std::getenv("AUSPEX_TEST_ORDER");
        if (!order || !*order) return false;
        if (std::string_view(order) == "other") return true;
        std::fprintf(stderr, "AUSPEX_TEST_ORDER is \"%s\", expected other\n", order);
        std::exit(2);
    }();
    return is_reordered;
}

} // namespace auspex::test
