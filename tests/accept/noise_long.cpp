// The design's figure with enough draws to see bad noise in it: 0.75 % of a random token would be 20 σ.
#include "accept/full_vocabulary.h"

namespace auspex::noise_long {
namespace {

class FullVocabularyLong : public FullVocabulary {};

TEST_F(FullVocabularyLong, drafts_take_a_tenth_from_the_rest) {
    draw_drafts(0.9, 2500);
}
TEST_F(FullVocabularyLong, next_tokens_take_a_tenth_from_the_rest) {
    draw_next_tokens(0.9, 10000);
}

} // namespace
} // namespace auspex::noise_long
