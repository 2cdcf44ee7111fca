#include "quatrain/data/speech_set.h"

#include <torch/torch.h>

#include "quatrain/data/audio.h"
#include "quatrain/data/augmentation.h"

namespace quatrain::data {

SpeechSet::SpeechSet(std::vector<Utterance> utterances, const FilterBank& bank,
                     const std::vector<double>& speeds, const AfterUtterance& after_utterance)
    : utterances_(std::move(utterances)), speeds_(speeds), bands_(bank.options().bands) {
  TORCH_CHECK(!speeds_.empty(), "SpeechSet: speeds must hold at least one factor, got none");
  int64_t done = 0;
  for (const double speed : speeds_)
    for (const Utterance& utterance : utterances_) {
      const Audio audio = read_audio(utterance);
      at::Tensor samples = resample(mix_channels(audio.samples), audio.rate, bank.options().rate);
      if (speed != 1) samples = change_speed(samples, speed);
      const at::Tensor energies = bank(samples).contiguous();
      energies_.append({energies.data_ptr<float>(), static_cast<size_t>(energies.numel())});
      if (after_utterance) after_utterance(++done, audio.samples);
    }
  energies_.finish();
}

SpeechSet::SpeechSet(std::vector<Utterance> utterances, int64_t columns,
                     const AfterUtterance& after_utterance)
    : utterances_(std::move(utterances)), speeds_{1}, bands_(columns) {
  int64_t done = 0;
  for (const Utterance& utterance : utterances_) {
    const at::Tensor stored = read_stored_features(utterance).contiguous();
    TORCH_CHECK(stored.size(1) == columns, "SpeechSet: the stored features of ", utterance.id, " must have ",
                columns, " columns, got ", stored.size(1));
    energies_.append({stored.data_ptr<float>(), static_cast<size_t>(stored.numel())});
    if (after_utterance) after_utterance(++done, stored);
  }
  energies_.finish();
}

at::Tensor SpeechSet::energies(int64_t i) const {
  const auto values = energies_[i];
  if (values.empty()) return torch::empty({0, bands_});
  return torch::from_blob(const_cast<float*>(values.data()), {frames(i), bands_}, torch::kFloat);
}

}  // namespace quatrain::data
