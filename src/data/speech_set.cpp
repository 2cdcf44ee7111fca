#include "quatrain/data/speech_set.h"

#include <torch/types.h>

#include "quatrain/data/audio.h"
#include "quatrain/data/augmentation.h"
#include "support/text.h"

namespace quatrain::data {

SpeechSet::SpeechSet(std::vector<Utterance> utterances, const FilterBank& bank,
                     const std::vector<double>& speeds, const AfterUtterance& after_utterance,
                     const Unreadable& unreadable)
    : utterances_(std::move(utterances)), speeds_(speeds), bands_(bank.options().bands) {
  TORCH_CHECK(!speeds_.empty(), "SpeechSet: speeds must hold at least one factor, got none");
  const auto read = [&](const Utterance& utterance) {
    const Audio audio = read_audio(utterance);
    const at::Tensor samples = resample(mix_channels(audio.samples), audio.rate, bank.options().rate);
    Read of_one{audio.samples, {}};
    for (const double speed : speeds_)
      of_one.energies.push_back(bank(speed == 1 ? samples : change_speed(samples, speed)));
    return of_one;
  };
  add_all(read, after_utterance, unreadable);
  energies_.finish();
}

SpeechSet::SpeechSet(std::vector<Utterance> utterances, int64_t columns,
                     const AfterUtterance& after_utterance, const Unreadable& unreadable)
    : utterances_(std::move(utterances)), speeds_{1}, bands_(columns) {
  const auto read = [&](const Utterance& utterance) {
    const at::Tensor stored = read_stored_features(utterance);
    TORCH_CHECK(stored.size(1) == columns, "SpeechSet: the stored features must have ", columns,
                " columns, got ", stored.size(1));
    return Read{stored, {stored}};
  };
  add_all(read, after_utterance, unreadable);
  energies_.finish();
}

void SpeechSet::add_all(const std::function<Read(const Utterance&)>& read,
                        const AfterUtterance& after_utterance, const Unreadable& unreadable) {
  std::vector<Utterance> good;
  for (Utterance& utterance : utterances_) {
    Read of_one;
    try {
      of_one = read(utterance);
    } catch (const c10::Error& error) {
      const std::string why = error.what_without_backtrace();
      TORCH_CHECK(unreadable, "the utterance ", quote(utterance.id), ": ", why);
      unreadable(utterance, why);
      continue;
    }
    for (const at::Tensor& of_speed : of_one.energies) {
      const at::Tensor energies = of_speed.contiguous();
      energies_.append({energies.data_ptr<float>(), static_cast<size_t>(energies.numel())});
    }
    good.push_back(std::move(utterance));
    if (after_utterance) after_utterance(std::ssize(good), of_one.read);
  }
  utterances_ = std::move(good);
}

at::Tensor SpeechSet::energies(int64_t i) const {
  const auto values = energies_[stored(i)];
  if (values.empty()) return torch::empty({0, bands_});
  return torch::from_blob(const_cast<float*>(values.data()), {frames(i), bands_}, torch::kFloat);
}

}  // namespace quatrain::data
