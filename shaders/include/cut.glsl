// What a row's truncation keeps: the one comparison that every reader of a cut row makes.
#ifndef CUT_GLSL
#define CUT_GLSL
#include "shared/slot_state.h"

const float kLowest = -3.402823466e38; // below every key that was found

const Cut kKeepAll = Cut(-1.0 / 0.0, 0xffffffffu);

bool is_kept(float logit, uint id, float cut_logit, uint cut_last_id) {
    return logit > cut_logit || (logit == cut_logit && id <= cut_last_id);
}
#endif
