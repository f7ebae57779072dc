// How products are cut into chunks, and which thread each of these belongs to.
#pragma once

#include "gemm.h"
#include "gemm_tile.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

constexpr int kMaxTileRows = 12;

// Units of a block along the inputs: a block of 12 rows (29 KB) stays in the first-level cache.
constexpr int64_t kBlockUnits = 608;

// Panels of a block along the inputs whose product with all rows is computed before the next ones: they stay in the
// second-level cache (2 MB where there is AMX), beside as many that are asked for meanwhile where there is AVX-512;
// elsewhere most tiles ask for nothing.
#if defined(__AMX_BF16__)
constexpr int64_t kGroupBytes = 512 << 10;
#else
constexpr int64_t kGroupBytes = (kAvx2Alone ? 256 : 192) << 10;
#endif

// Threads that share the panels; the others share the rows. Panels first, since splitting rows reads weights twice.
int threads_along_panels(int64_t panels, int64_t rows, int num_threads) {
    int best = num_threads;
    int64_t least = -1;
    for (int along = num_threads; along >= 1; --along) {
        if (num_threads % along != 0) continue;
        const int64_t others = num_threads / along;
        if (others > 1 && rows < others * 2 * kMaxTileRows) break;
        const int64_t work = ((panels + along - 1) / along) * ((rows + others - 1) / others);
        // A split of rows must be worth a tenth.
        if (least < 0 || work * 10 < least * 9) {
            least = work;
            best = along;
        }
    }
    return best;
}

// About what a chunk of few rows takes of weights, in bytes: some microseconds.
constexpr int64_t kChunkBytes = 128 << 10;
// Up to so many rows products wait for weights rather than multipliers.
constexpr int64_t kRowsPerRead = 8;
// Up to so many rows chunks may be as small as that; those of more are groups of panels.
constexpr int64_t kFewRows = 32;
// Multiplications in a chunk of many rows: a few tenths of a millisecond.
constexpr int64_t kChunkProducts = 24 << 20, kMostChunkProducts = 80 << 20;
// A whole number of tiles.
#if defined(__AMX_BF16__)
constexpr int64_t kPieceRows = 128;
#else
constexpr int64_t kPieceRows = kMaxPieceRows;
#endif

int64_t few_rows_panels(const GemmCall& call, int64_t panels, int64_t rows) {
    const int64_t bytes = panel_words(call.weights, num_units(call.weights)) * 4;
    const int64_t cost = bytes * at_least(rows, kRowsPerRead) / kRowsPerRead;
    const int64_t wanted = at_least(kChunkBytes, cost * panels / kManyPieces);
    return at_least((wanted + cost - 1) / cost, rows == 1 ? 1 : 4);
}

int64_t group_panels(const GemmCall& call) {
    const int64_t units = at_most(num_units(call.weights), kBlockUnits);
    return at_least(kGroupBytes / (panel_words(call.weights, units) * 4), 1);
}

GemmShare share_of_thread(const GemmCall& call, int owner, int num_threads) {
    const int64_t panels = num_panels(call.weights);
    const int along = call.epilogue == kChoose ? num_threads : threads_along_panels(panels, call.num_rows, num_threads);
    const int across = num_threads / along;
    const int64_t panel_share = owner / across, row_share = owner % across;
    GemmShare share{};
    share.first_panel = panels * panel_share / along;
    share.end_panel = panels * (panel_share + 1) / along;
    share.first_row = call.num_rows * row_share / across;
    share.end_row = call.num_rows * (row_share + 1) / across;
    const int64_t rows = share.end_row - share.first_row, width = share.end_panel - share.first_panel;
    if (rows == 0 || width == 0) return share;
    share.piece_rows = at_most(rows, kPieceRows);
    int64_t piece = 0;
    if (rows <= kFewRows) {
        piece = few_rows_panels(call, width, rows);
    } else {
        const int64_t column = kPanelColumns * call.weights.num_inputs;
        piece = at_least(group_panels(call), at_most(8, kChunkProducts / (share.piece_rows * column)));
        if (piece * share.piece_rows * column > kMostChunkProducts && rows > kPieceRows) {
            share.piece_rows = kPieceRows / 2;
        }
        if (call.epilogue == kChoose) piece = kChunkRowPanels;  // fewer choices to keep
    }
    piece = at_most(piece, kChunkRowPanels / share.piece_rows);
    share.row_pieces = (rows + share.piece_rows - 1) / share.piece_rows;
    share.panel_pieces = (width + piece - 1) / piece;
    return share;
}

struct Rectangle {
    int64_t first_panel, end_panel, first_row, end_row;
};

Rectangle chunk_of(const GemmShare& share, int64_t chunk) {
    const int64_t piece = chunk / share.row_pieces, width = share.end_panel - share.first_panel;
    const int64_t row = share.first_row + chunk % share.row_pieces * share.piece_rows;
    return {share.first_panel + width * piece / share.panel_pieces,
            share.first_panel + width * (piece + 1) / share.panel_pieces, row,
            at_most(row + share.piece_rows, share.end_row)};
}

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
