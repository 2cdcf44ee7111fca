#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/data/kaldi_archive.h"
#include "quatrain/train/session.h"
#include "support/atomic_folder.h"
#include "tasks/speech/data.h"
#include "train/autocast.h"

namespace quatrain::tasks {

std::vector<std::string> SpeechModel::export_to(const ExportRequest& request) const {
  if (request.format != "kaldi") return Model::export_to(request);
  if (own().objective != Objective::frames)
    throw RecipeError(
        "Kaldi's decoders take the scores of frames' classes: train with task.objective = frames, this run "
        "has " +
        std::string(name(own().objective)));
  const torch::NoGradGuard no_grad;
  const auto device = train::device_of(*network);
  const train::Autocast autocast(recipe_.train.bf16, device.type());
  AtomicFolder made(request.folder);
  std::vector<std::string> notes;
  std::string written;
  const std::vector<std::string> both{"dev", "test"};
  for (const auto& set : request.split.empty() ? both : std::vector{request.split}) {
    const auto [split, of_set] = load_sound(set, request.data, *this);
    notes.insert(notes.end(), of_set.begin(), of_set.end());
    if (!split) continue;
    const std::string file = set + ".ark";
    data::KaldiArchiveWriter archive(made.path() / file, made.path() / (set + ".scp"), request.folder / file);
    const SpeechRows rows_of(*split, *this);
    for (const int64_t i : split->usable) {
      const at::Tensor rows = rows_of(i).to(device);
      models::RecurrentNetwork layers = network;
      const at::Tensor scores = layers->forward(rows.unsqueeze(1)).squeeze(1).to(torch::kFloat);
      archive.write(split->set->utterance(i).id,
                    models::scaled_likelihoods(scores.log_softmax(1).cpu(), *parts.transitions,
                                               own().decode.prior_scale));
      if (request.after_each) request.after_each();
    }
    archive.close();
    written += (written.empty() ? "" : " and ") + file;
  }
  if (written.empty())
    throw RecipeError(
        "the data in '" + (request.data.empty() ? own().source.folder.string() : request.data) + "' have " +
        (request.split.empty() ? "neither a dev nor a test set" : "no " + request.split + " set") +
        " to score: name another set with --split, or other data with --data");
  parts.classes.save(made.path());
  made.commit();
  const char* hold = written.find(' ') == written.npos ? " holds" : " hold";
  notes.push_back(
      written + hold + " the log posteriors of " + std::to_string(parts.classes.size()) +
      " classes less their log priors, for Kaldi's decoders, such as latgen-faster-mapped; classes.txt names "
      "them, a line for each column");
  return notes;
}

}  // namespace quatrain::tasks
