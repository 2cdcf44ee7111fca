#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/data/kaldi_archive.h"
#include "quatrain/train/session.h"
#include "support/atomic_folder.h"
#include "tasks/speech/data.h"

namespace quatrain::tasks {

std::vector<std::string> SpeechModel::export_to(const std::string& format,
                                                const std::filesystem::path& folder) const {
  if (format != "kaldi") return Model::export_to(format, folder);
  if (own().objective != Objective::frames)
    throw RecipeError(
        "Kaldi's decoders take the scores of frames' classes: train with task.objective = frames, this run "
        "has " +
        std::string(name(own().objective)));
  const torch::NoGradGuard no_grad;
  AtomicFolder made(folder);
  std::string written;
  for (const char* set : {"dev", "test"}) {
    const auto split = load_speech_split(set, *this);
    if (!split) continue;
    const std::string file = std::string(set) + ".ark";
    data::KaldiArchiveWriter archive(made.path() / file, made.path() / (std::string(set) + ".scp"),
                                     folder / file);
    const SpeechRows rows_of(*split, *this);
    for (const int64_t i : split->usable) {
      const at::Tensor rows = rows_of(i).to(train::device_of(*network));
      models::RecurrentNetwork layers = network;
      const at::Tensor scores = layers->forward(rows.unsqueeze(1)).squeeze(1).to(torch::kFloat);
      archive.write(split->set->utterance(i).id,
                    models::scaled_likelihoods(scores.log_softmax(1).cpu(), *parts.transitions,
                                               own().decode.prior_scale));
    }
    archive.close();
    written += (written.empty() ? "" : " and ") + file;
  }
  if (written.empty()) throw RecipeError("the data of this run have neither a dev nor a test set to score");
  parts.classes.save(made.path());
  made.commit();
  const char* hold = written.find(' ') == written.npos ? " holds" : " hold";
  return {
      written + hold + " the log posteriors of " + std::to_string(parts.classes.size()) +
      " classes less their log priors, for Kaldi's decoders, such as latgen-faster-mapped; classes.txt names "
      "them, a line for each column"};
}

}  // namespace quatrain::tasks
