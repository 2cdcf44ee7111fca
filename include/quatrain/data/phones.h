#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/speech_corpus.h"

/// TIMIT's phones. Models tell 61 of them apart; errors are counted among 39, which goes back to Lee and Hon,
/// "Speaker-independent phone recognition using hidden Markov models" (1989).
namespace quatrain::data {

/// What TIMIT writes for the silence at both ends of an utterance.
inline constexpr std::string_view kTimitSilence = "h#";

/// All 61, in the order of their bytes; an index of a phone is its place here.
QUATRAIN_API const std::vector<std::string>& timit_phones();
/// The 39, in the order of their bytes.
QUATRAIN_API const std::vector<std::string>& folded_phones();

/// The index of one of the 61; an unknown name is an error (c10::Error).
QUATRAIN_API int64_t timit_phone(std::string_view name);
/// For each of the 61 the index of the one among the 39 that it is scored as, or -1 of the glottal stop q,
/// which is deleted.
QUATRAIN_API const std::vector<int64_t>& phone_folding();
/// The same phones among the 39, without q. Phones that become equal neighbours stay two. An index that is
/// none of the 61 is an error (c10::Error).
QUATRAIN_API std::vector<int64_t> fold_phones(const std::vector<int64_t>& phones);

/// For each frame t the index of the phone that holds the utterance's sample t * shift + centre, rounded
/// down; h# where no phone does, as after the last label. Shift and centre are in samples, and of a recording
/// that is heard at another rate no whole ones: the defaults are frames of 10 ms at 16 kHz. Negative frames
/// or centres, a shift below 1, an utterance without phones, a phone that is none of the 61: an error
/// (c10::Error).
QUATRAIN_API std::vector<int64_t> phone_labels(const Utterance& utterance, int64_t frames, double shift = 160,
                                               double centre = 80);

}  // namespace quatrain::data
