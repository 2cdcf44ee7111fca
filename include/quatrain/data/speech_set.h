#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/filter_bank.h"
#include "quatrain/data/sequence_store.h"
#include "quatrain/data/speech_corpus.h"

namespace quatrain::data {

/// Utterances with their energies, which are in a mapped file.
class QUATRAIN_API SpeechSet {
 public:
  using AfterUtterance = std::function<void(int64_t done, const at::Tensor& read)>;

  /// Reads the audio of all utterances: the mean of the channels, at the filter bank's rate, as fast as each
  /// of `speeds` says (change_speed). `after_utterance` is called after each with how many are done and with
  /// what was read; what it throws ends the work. Errors are those of read_audio and FilterBank.
  SpeechSet(std::vector<Utterance> utterances, const FilterBank& bank,
            const std::vector<double>& speeds = {1}, const AfterUtterance& after_utterance = {});
  /// The same of the utterances' stored features, which have so many columns.
  SpeechSet(std::vector<Utterance> utterances, int64_t columns, const AfterUtterance& after_utterance = {});

  /// Each utterance at each speed; those of one speed one after the other.
  int64_t size() const { return energies_.size(); }
  const Utterance& utterance(int64_t i) const {
    return utterances_[static_cast<size_t>(i) % utterances_.size()];
  }
  double speed(int64_t i) const { return speeds_[static_cast<size_t>(i) / utterances_.size()]; }
  int64_t frames(int64_t i) const { return energies_.length(i) / bands_; }
  /// (frames, bands), float32, read-only; valid while the set lives.
  at::Tensor energies(int64_t i) const;
  const std::vector<Utterance>& utterances() const { return utterances_; }

 private:
  std::vector<Utterance> utterances_;
  std::vector<double> speeds_;
  int64_t bands_;
  SequenceStore<float> energies_;
};

}  // namespace quatrain::data
