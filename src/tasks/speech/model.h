#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/audio.h"
#include "quatrain/data/back_off_model.h"
#include "quatrain/data/normalisation.h"
#include "quatrain/models/ctc_decoder.h"
#include "quatrain/models/frame_viterbi.h"
#include "quatrain/models/recurrent_network.h"
#include "quatrain/tasks/kind.h"
#include "tasks/speech/classes.h"
#include "tasks/speech/options.h"

namespace quatrain::tasks {

/// What a recogniser has beside its weights.
struct SpeechParts {
  SpeechClasses classes;
  std::optional<models::FrameTransitions> transitions;  ///< of the classes of frames

  /// classes.txt, transitions.safetensors.
  void save(const std::filesystem::path& folder) const;
  static SpeechParts load(const SpeechTaskOptions& options, const std::filesystem::path& folder);
};

/// A token that was heard.
struct HeardToken {
  std::string text;
  int64_t begin = 0, end = 0;  ///< rows of the network, one past the last
  double confidence = 0;

  /// Of characters: what stands between words.
  bool is_gap() const { return text == SpeechClasses::kSpace; }
};

/// One of the answers to a recording.
struct HeardAnswer {
  std::vector<HeardToken> tokens;
  double score = 0;  ///< of ctc: a logarithm, by which answers are ranked
};

std::vector<std::string> texts_of(std::span<const HeardToken> tokens);

/// What has a time of its own: each token, or of characters each word, with the mean of their confidences.
std::vector<HeardToken> timed_of(const SpeechTaskOptions& options, std::span<const HeardToken> tokens);

/// Recurrent layers that hear.
class QUATRAIN_API SpeechModel : public Model {
 public:
  /// `training`: the mean and scale of the training set's features. They become buffers of the network.
  SpeechModel(Recipe recipe, SpeechParts parts, const data::Normalisation& training);

  torch::nn::Module& module() override { return *network; }
  /// {rows (N, inputs), batch_sizes}, of a packed sequence: the scores of classes (N, classes). The order of
  /// its utterances may follow, two tensors that change no score.
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  /// A recording may take long: answers do not wait for the next one's.
  size_t portion() const override { return 1; }
  std::string line_problem(const std::string& line) const override;
  bool answers_the_rest() const override { return own().answers_lines(); }
  /// Paths of audio files in, what is said in them out.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  /// A packed sequence of recordings: rows, batch_sizes, sorted_indices, unsorted_indices.
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) override;
  std::unique_ptr<Live> listen(int64_t rate) override;
  /// Throws a c10::Error where sound in which nothing was heard must have a class.
  void require_heard(const std::string& what, int64_t samples) const;
  std::string summary() const override;
  void store(const std::filesystem::path& folder) const override { parts.save(folder); }
  std::vector<std::string> keeps_own(const std::filesystem::path& checkpoint) const override;
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;
  std::vector<std::string> export_to(const ExportRequest& request) const override;

  const SpeechTaskOptions& own() const { return recipe_.own<SpeechTaskOptions>(); }
  /// No frames yet, by the sizes and the scale of the recipe.
  static data::Normalisation empty_normalisation(const SpeechTaskOptions& options);
  /// That of the training set, as the network's buffers hold it.
  data::Normalisation training_normalisation() const;
  /// Normalised features (frames, components * bands) as rows that the network reads.
  at::Tensor stacked(const at::Tensor& features) const;
  /// What an answer says, with the seconds of its tokens where decode.times asks for them. `length`: the
  /// seconds of the recording, behind which the last row can end.
  std::string written(std::span<const HeardToken> tokens, double length) const;
  /// All answers, with their scores where decode.scores asks for them.
  std::string written(std::span<const HeardAnswer> answers, double length) const;
  /// Counts seconds of a recording, and of the work that its answer took, for summary().
  void count(double heard, double worked);
  /// The decoder of ctc by [decode], or the best path.
  models::CtcDecoderOptions ctc_options(bool best_path) const;

  SpeechParts parts;
  models::RecurrentNetwork network;

 private:
  std::string answer(const std::string& path);
  /// Of a recording whose rate can be resampled to the run's.
  data::AudioInfo info_of(const std::string& path) const;
  /// Gives the features of a recording with this rate, portion by portion.
  void hear(const std::string& path, int64_t rate, const std::function<void(const at::Tensor&)>& take) const;
  /// By which a recording's features are normalised; none where they are not.
  std::optional<data::Normalisation> normalisation_of(const std::string& path, int64_t rate) const;
  /// What the network reads of a recording, at least one row.
  at::Tensor rows_of(const std::string& path) const;

  std::shared_ptr<const data::BackOffModel> language_;
  double heard_ = 0, worked_ = 0;  // seconds, of recordings and of work
};

}  // namespace quatrain::tasks
