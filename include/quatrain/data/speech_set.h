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
  using Unreadable = std::function<void(const Utterance& utterance, const std::string& why)>;

  /// Reads the audio of all utterances, each once: the mean of the channels, at the filter bank's rate, as
  /// fast as each of `speeds` says (change_speed). `after_utterance` is called after each with how many are
  /// done and with what was read; what it throws ends the work. `unreadable` is called for an utterance that
  /// cannot be read or brought to the rate, as a FLAC file that is cut off, and leaves it out; without it
  /// that is an error (c10::Error) that names the utterance.
  SpeechSet(std::vector<Utterance> utterances, const FilterBank& bank,
            const std::vector<double>& speeds = {1}, const AfterUtterance& after_utterance = {},
            const Unreadable& unreadable = {});
  /// The same of the utterances' stored features, which have so many columns.
  SpeechSet(std::vector<Utterance> utterances, int64_t columns, const AfterUtterance& after_utterance = {},
            const Unreadable& unreadable = {});

  /// Each utterance at each speed; those of one speed one after the other.
  int64_t size() const { return energies_.size(); }
  const Utterance& utterance(int64_t i) const {
    return utterances_[static_cast<size_t>(i) % utterances_.size()];
  }
  double speed(int64_t i) const { return speeds_[static_cast<size_t>(i) / utterances_.size()]; }
  int64_t frames(int64_t i) const { return energies_.length(stored(i)) / bands_; }
  /// (frames, bands), float32, read-only; valid while the set lives.
  at::Tensor energies(int64_t i) const;
  const std::vector<Utterance>& utterances() const { return utterances_; }

 private:
  struct Read {
    at::Tensor read;
    std::vector<at::Tensor> energies;  // at each speed
  };
  /// Where energies lie: the speeds of an utterance one after the other.
  int64_t stored(int64_t i) const {
    const auto utterances = std::ssize(utterances_), speeds = std::ssize(speeds_);
    return i % utterances * speeds + i / utterances;
  }
  void add_all(const std::function<Read(const Utterance&)>& read, const AfterUtterance& after_utterance,
               const Unreadable& unreadable);

  std::vector<Utterance> utterances_;
  std::vector<double> speeds_;
  int64_t bands_;
  SequenceStore<float> energies_;
};

}  // namespace quatrain::data
