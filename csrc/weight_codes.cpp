// Weights as codes in the groups of panels: see gemm.h and packing.h.
//
// A panel has the codes of 32 columns side by side, so each lane of a vector finds those of one column. No multiply-add
// is fused here (see flags.mk): every instruction set finds the same codes.

#include "packing.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

// The rows, counted from the first one given, whose weights are the columns of a panel; -1 for none of them.
struct Columns {
    int64_t rows[kPanelColumns];
    bool any;
};

Columns columns_of(const PackedMatrix& matrix, int64_t panel, int64_t first_row, int64_t num_rows) {
    constexpr int64_t half = kPanelColumns / 2;
    const int64_t gates = matrix.num_outputs / 2;
    Columns columns{};
    for (int64_t within = 0; within < kPanelColumns; ++within) {
        int64_t row = panel * kPanelColumns + within;
        if (matrix.layout == kGated) {
            const int64_t place = panel * half + within % half;
            row = place >= gates ? -1 : within < half ? place : gates + place;
        }
        const bool given = row >= first_row && row < first_row + num_rows;
        columns.rows[within] = given ? row - first_row : -1;
        columns.any |= given;
    }
    return columns;
}

// The panels that may have some of the rows.
Share panels_of(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows) {
    const int64_t gates = matrix.num_outputs / 2, last = first_row + num_rows - 1;
    if (num_rows == 0) return {0, 0};
    if (matrix.layout == kGated && first_row < gates && last >= gates) return {0, num_panels(matrix)};
    return {packed_column(matrix, first_row) / kPanelColumns, packed_column(matrix, last) / kPanelColumns + 1};
}

// What the columns of a panel have in a group. Codes are as products read them, unsigned, in a byte each.
struct GroupCodes {
    alignas(64) uint32_t words[kGroupUnits][kPanelColumns];
    alignas(64) float scales[kPanelColumns], minimums[kPanelColumns];
};

// Puts those columns into the panel that some rows were given for; others stay what they are.
void store_group(const PackedMatrix& matrix, uint32_t* group, const Columns& columns, const GroupCodes& codes) {
    const int64_t width = matrix.dtype == DType::i8 ? kPanelColumns : kPanelColumns / 2;
    uint32_t kept[kPanelColumns];
    for (int64_t i = 0; i < width; ++i) kept[i] = columns.rows[i] < 0 ? 0xffffffffU : 0;
    if (has_4_bits(matrix.dtype)) {
        for (int64_t i = 0; i < width; ++i) {
            kept[i] = (kept[i] & 0x0f0f0f0fU) | (columns.rows[i + width] < 0 ? 0xf0f0f0f0U : 0);
        }
    }
    for (int64_t unit = 0; unit < kGroupUnits; ++unit) {
        uint32_t* to = group + unit * width;
        const uint32_t* from = codes.words[unit];
        if (matrix.dtype == DType::i8) {
            for (int64_t i = 0; i < kPanelColumns; ++i) to[i] = (to[i] & kept[i]) | (from[i] & ~kept[i]);
        } else {
            for (int64_t i = 0; i < kPanelColumns / 2; ++i) {
                to[i] = (to[i] & kept[i]) | ((from[i] | from[i + kPanelColumns / 2] << 4) & ~kept[i]);
            }
        }
    }
    uint16_t* scales = reinterpret_cast<uint16_t*>(group + code_words(matrix.dtype));
    for (int64_t i = 0; i < kPanelColumns; ++i) {
        if (columns.rows[i] < 0) continue;
        scales[i] = to_half(codes.scales[i] * kScaleFactor);
        if (matrix.dtype == DType::u4) scales[i + kPanelColumns] = to_half(codes.minimums[i] * kScaleFactor);
    }
}

// Calls `find(columns, group, first_input, count, codes)` for this thread's share of the groups that have some of the
// rows, and stores the codes.
template <class Find>
void pack_groups(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, int thread, int num_threads,
                 Find find) {
    const Share panels = panels_of(matrix, first_row, num_rows);
    const int64_t groups = num_groups(matrix), words = group_words(matrix.dtype);
    const Share share = share_of((panels.end - panels.first) * groups, thread, num_threads);
    GroupCodes codes{};
    Columns columns{};
    for (int64_t item = share.first; item < share.end; ++item) {
        const int64_t panel = panels.first + item / groups, group = item % groups;
        if (item == share.first || group == 0) columns = columns_of(matrix, panel, first_row, num_rows);
        if (!columns.any) continue;
        const int64_t input = group * kGroupInputs;
        find(columns, group, input, at_most(matrix.num_inputs - input, kGroupInputs), codes);
        store_group(matrix, static_cast<uint32_t*>(matrix.panels) + (panel * groups + group) * words, columns, codes);
    }
}

BOUGH_INLINE Vec choose(Ints which, Vec a, Vec b) { return which ? a : b; }

typedef float Numbers[kGroupInputs][kPanelColumns];

struct Found {
    Vec inverse;  // codes are weights times this, rounded
    Vec scale;
};

// Codes from -`most` - 1 to `most` and the scale with which they come nearest to the weights, by squared error: the
// largest weight becomes one of several numbers near the end of the range, the others are rounded accordingly, and the
// best scale for what came out follows by least squares.
BOUGH_INLINE Found search(const float* numbers, Vec extreme, const float (&ends)[9], float most) {
    Vec best = splat(0.0F);
    Found found = {best, best};
    for (const float end : ends) {
        const Vec inverse = div(splat(-end), extreme);
        Vec products[4] = {}, squares[4] = {};
        BOUGH_UNROLL for (int64_t i = 0; i < kGroupInputs; ++i) {
            const Vec weight = load(numbers + i * kPanelColumns);
            const Vec step = min(max(round(mul(weight, inverse)), splat(-most - 1.0F)), splat(most));
            products[i % 4] = add(products[i % 4], mul(weight, step));
            squares[i % 4] = add(squares[i % 4], mul(step, step));
        }
        // What the squared error is smaller by than that of zeros.
        const Vec product = add(add(products[0], products[2]), add(products[1], products[3]));
        const Vec square = add(add(squares[0], squares[2]), add(squares[1], squares[3]));
        const Vec scale = div(product, square), gain = mul(scale, product);
        const Ints better = (Ints)(gain > best);
        best = choose(better, gain, best);
        found = {choose(better, inverse, found.inverse), choose(better, scale, found.scale)};
    }
    return found;
}

// The codes of kLanes columns from `column` on.
template <DType dtype>
BOUGH_INLINE void quantize_columns(const Numbers& weights, int64_t column, int64_t count, GroupCodes& codes) {
    constexpr float kEndsI4[] = {8.0F, 7.0F, 7.25F, 7.5F, 7.75F, 8.25F, 8.5F, 8.75F, 9.0F};
    constexpr float kEndsI8[] = {127.0F, 128.0F, 127.5F, 126.25F, 125.5F, 124.75F, 124.0F, 123.25F, 122.5F};
    constexpr float most = dtype == DType::i8 ? 127.0F : 7.0F;
    constexpr int32_t offset = code_offset(dtype), mask = dtype == DType::i8 ? 255 : 15;
    const float* numbers = &weights[0][column];
    const Vec zero = splat(0.0F);
    Vec extreme = zero, low = load(numbers), high = low, finite_sum = zero;
    for (int64_t i = 0; i < count; ++i) {
        const Vec weight = load(numbers + i * kPanelColumns);
        extreme = choose((Ints)(absolute(weight) > absolute(extreme)), weight, extreme);
        low = min(weight, low);
        high = max(weight, high);
        // Not a number once one of them is infinite or not a number.
        finite_sum = add(finite_sum, mul(weight, zero));
    }
    const Ints finite = (Ints)(finite_sum == zero);
    const Vec nan = splat(__builtin_nanf(""));
    // Scales that become zero in half precision: of numbers too small for one nothing is left.
    const auto vanishes = [](Vec scale) {
        return (Ints)(mul(mul(scale, splat(kScaleFactor)), splat(0x1p-112F)) <= splat(0x1p-137F));
    };
    Ints found[kGroupInputs];
    if (dtype == DType::u4) {
        const Vec range = sub(high, low), scale = div(range, splat(15.0F));
        const Vec inverse = choose(vanishes(scale), zero, div(splat(15.0F), range));
        for (int64_t i = 0; i < kGroupInputs; ++i) {
            found[i] = nearest(mul(sub(load(numbers + i * kPanelColumns), low), inverse));
            found[i] = finite ? found[i] : Ints{} + offset;
        }
        store(codes.scales + column, choose(finite, scale, nan));
        store(codes.minimums + column, choose(finite, low, nan));
    } else {
        const Ints vanished = vanishes(div(absolute(extreme), splat(127.0F)));
        Found best = search(numbers, extreme, dtype == DType::i8 ? kEndsI8 : kEndsI4, most);
        for (int64_t i = 0; i < kGroupInputs; ++i) {
            const Vec step = round(mul(load(numbers + i * kPanelColumns), best.inverse));
            const Ints code = nearest(min(max(step, splat(-most - 1.0F)), splat(most)));
            found[i] = ((finite & ~vanished) ? code : Ints{}) + offset;
        }
        store(codes.scales + column, choose(finite, choose(vanished, zero, best.scale), nan));
    }
    for (int64_t unit = 0; unit < kGroupUnits; ++unit) {
        Ints word = {};
        for (int64_t i = 0; i < 4 && unit * 4 + i < count; ++i) word |= (found[unit * 4 + i] & mask) << (8 * i);
        store_bits(&codes.words[unit][column], (Bits)word);
    }
}

// The weights of a group, zeros where there are none.
template <class Element>
void load_weights(const Element* rows, int64_t stride, const Columns& columns, int64_t count, Numbers& numbers) {
    for (int64_t column = 0; column < kPanelColumns; ++column) {
        const int64_t row = columns.rows[column];
        const int64_t present = row < 0 ? 0 : count;
        const Element* from = rows + (row < 0 ? 0 : row * stride);
        if (present == kGroupInputs) {
            for (int64_t i = 0; i < kGroupInputs; ++i) {
                if constexpr (sizeof(Element) == 2) {
                    numbers[i][column] = as_float(from[i]);
                } else {
                    numbers[i][column] = from[i];
                }
            }
            continue;
        }
        for (int64_t i = 0; i < kGroupInputs; ++i) {
            float weight = 0.0F;
            if (i < present) {
                if constexpr (sizeof(Element) == 2) {
                    weight = as_float(from[i]);
                } else {
                    weight = from[i];
                }
            }
            numbers[i][column] = weight;
        }
    }
}

template <DType dtype, class Element>
void quantize(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const Element* rows, int thread,
              int num_threads) {
    pack_groups(matrix, first_row, num_rows, thread, num_threads,
                [&](const Columns& columns, int64_t, int64_t input, int64_t count, GroupCodes& codes) {
                    alignas(64) Numbers numbers;
                    load_weights(rows + input, matrix.num_inputs, columns, count, numbers);
                    for (int64_t column = 0; column < kPanelColumns; column += kLanes) {
                        quantize_columns<dtype>(numbers, column, count, codes);
                    }
                });
}

template <class Element>
void quantize_as(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const void* rows, int thread,
                 int num_threads) {
    const Element* weights = static_cast<const Element*>(rows);
    if (matrix.dtype == DType::i8) {
        quantize<DType::i8>(matrix, first_row, num_rows, weights, thread, num_threads);
    } else if (matrix.dtype == DType::u4) {
        quantize<DType::u4>(matrix, first_row, num_rows, weights, thread, num_threads);
    } else {
        quantize<DType::i4>(matrix, first_row, num_rows, weights, thread, num_threads);
    }
}

void quantize_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const void* rows, DType rows_dtype,
                   int thread, int num_threads) {
    if (rows_dtype == DType::bf16) {
        quantize_as<uint16_t>(matrix, first_row, num_rows, rows, thread, num_threads);
    } else {
        quantize_as<float>(matrix, first_row, num_rows, rows, thread, num_threads);
    }
}

void pack_codes(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const int8_t* codes,
                const float* scales, const float* minimums, int thread, int num_threads) {
    const int64_t groups = num_groups(matrix);
    uint8_t stored[256] = {};  // by code as a byte
    for (int code = -128; code < 128; ++code) {
        const int number = minimums != nullptr ? code : code + code_offset(matrix.dtype);
        stored[code & 255] = static_cast<uint8_t>(matrix.dtype == DType::i8 ? number : number & 15);
    }
    // From the end: 0 is that of the first of its two codes.
    for (int code = 15; matrix.dtype == DType::f4 && code >= 0; --code) {
        stored[kDoubledE2M1[code] & 255] = static_cast<uint8_t>(code);
    }
    pack_groups(matrix, first_row, num_rows, thread, num_threads,
                [&](const Columns& columns, int64_t group, int64_t input, int64_t count, GroupCodes& found) {
                    for (int64_t column = 0; column < kPanelColumns; ++column) {
                        const int64_t row = columns.rows[column];
                        if (row < 0) continue;
                        const int8_t* from = codes + row * matrix.num_inputs + input;
                        uint8_t bytes[kGroupInputs] = {};
                        for (int64_t i = 0; i < count; ++i) bytes[i] = stored[static_cast<uint8_t>(from[i])];
                        for (int64_t unit = 0; unit < kGroupUnits; ++unit) {
                            std::memcpy(&found.words[unit][column], bytes + unit * 4, 4);
                        }
                        const float scale = scales[row * groups + group];
                        found.scales[column] = scale;
                        found.minimums[column] = minimums != nullptr ? minimums[row * groups + group] : -8.0F * scale;
                    }
                });
}

}  // namespace

extern const PackingKernels packing_kernels = {quantize_rows, pack_codes};

}  // namespace BOUGH_ISA
}  // namespace bough
