// Counter-based random bits: Philox4x32-10, Salmon et al. 2011. One source text for both languages.
// counter = (absolute position, purpose, candidate, token / 4), key = seed; one purpose per use.
#ifndef PHILOX_H
#define PHILOX_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kPurposeDraft = 1u;  // noise the draft token is drawn with
SHARED_CONST uint kPurposeAccept = 2u; // the uniform of the acceptance test
SHARED_CONST uint kPurposeResidual = 3u; // noise the correction, bonus or plain token is drawn with
SHARED_CONST uint kPurposeCoupled = 4u;  // noise that target and draft share, where acceptance is coupled
SHARED_CONST uint kPurposeSimulate = 5u; // the uniform of an acceptance that is simulated

SHARED_CONST uint kPhiloxM0 = 0xD2511F53u;
SHARED_CONST uint kPhiloxM1 = 0xCD9E8D57u;
SHARED_CONST uint kPhiloxW0 = 0x9E3779B9u;
SHARED_CONST uint kPhiloxW1 = 0xBB67AE85u;

SHARED_END
#endif
