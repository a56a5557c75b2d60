// Where 16 bytes of weights lie, in rows or in tiles: shared/weight_format.h. Declare the constant WEIGHT_LAYOUT before including.
const uint FORMAT = WEIGHT_LAYOUT & kFormatMask;
const bool kInTiles = (WEIGHT_LAYOUT & kTiled) != 0u;

// Where a row of row_vectors times 16 bytes begins, and where one of them lies from there; both in 16 bytes.
uint row_place(uint row, uint row_vectors) { return kInTiles ? TILED_ROW(FORMAT, row, row_vectors) : row * row_vectors; }
uint vector_place(uint vector) { return kInTiles ? TILED_VECTOR(FORMAT, vector) : vector; }
