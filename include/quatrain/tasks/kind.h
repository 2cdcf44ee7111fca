#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/tasks/about.h"
#include "quatrain/tasks/recipe.h"
#include "quatrain/train/task.h"

/// Kinds of tasks. A kind is one folder of src/tasks: its keys of recipes, data, model, figures, and what
/// `predict` reads and answers. Everything else (training, comparing, timing, drawing, Python) uses only this
/// interface.
namespace quatrain::tasks {

/// The tensors of one call of a model.
struct QUATRAIN_API Input {
  std::vector<at::Tensor> tensors;
  int64_t units = 0;  ///< About::unit, padding not counted
};

/// Thrown for a line that a model cannot answer.
class QUATRAIN_API LineError : public std::runtime_error {
 public:
  LineError(size_t line, const std::string& why) : std::runtime_error(why), line_(line) {}
  size_t line() const { return line_; }  ///< from 0

 private:
  size_t line_;
};

/// Throws a LineError where a row of what is computed for lines is not finite.
QUATRAIN_API void require_finite(const at::Tensor& rows);

/// What is to be written for another program.
struct QUATRAIN_API ExportRequest {
  std::string format;            ///< one of About::exports
  std::filesystem::path folder;  ///< that is made; it must not exist
  std::string data = {};         ///< of formats that score data: their folder; empty: the run's own
  std::string split = {};        ///< the only set of these; empty: dev and test
  /// Called after each item that is scored; what it throws ends the writing, and nothing is left of it.
  std::function<void()> after_each = {};
};

/// Answers to a recording that is still being made.
class QUATRAIN_API Live {
 public:
  virtual ~Live() = default;
  /// Takes the next samples of one channel, (samples) in [-1, 1]; returns the lines that there are to tell:
  /// the words that are new in the answer so far, or "= " and that answer where words that were told have
  /// changed or vanished. Where the model ends utterances by itself, the whole answer and an empty line
  /// follow each.
  virtual std::vector<std::string> push(const at::Tensor& samples) = 0;
  /// Ends the recording: returns the whole answer, of its last utterance.
  virtual std::string finish() = 0;
};

/// A model together with what gives its numbers a meaning, such as words and labels: the content of a
/// checkpoint.
class QUATRAIN_API Model {
 public:
  explicit Model(Recipe recipe) : recipe_(std::move(recipe)) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Recipe& recipe() const { return recipe_; }
  /// The same object for the model's life. Whoever uses the model sets its mode, gradients and autocast.
  virtual torch::nn::Module& module() = 0;
  virtual at::Tensor forward(const std::vector<at::Tensor>& input) = 0;

  /// Why a line cannot be answered; empty where it can. A line is UTF-8, or where lines name files any bytes
  /// but NUL. A RecipeError where none can.
  virtual std::string line_problem(const std::string& line) const;
  /// An answer, without its line's end, for each line; a LineError where one has none.
  virtual std::vector<std::string> predict(const std::vector<std::string>& lines) = 0;

  /// The tensors of `forward` for at least one line, as predict() makes them of lines. A LineError where a
  /// line has none, a RecipeError where the kind has none.
  virtual std::vector<at::Tensor> inputs(const std::vector<std::string>& lines);
  /// The texts that numbers of pieces stand for, marks left out. A RecipeError where the kind writes no
  /// pieces.
  virtual std::vector<std::string> texts(const std::vector<std::vector<int64_t>>& numbers) const;

  /// True where lines name files: one that has no answer is told of, and those behind it are still answered.
  virtual bool answers_the_rest() const { return false; }

  /// From now on answers with the mean of both models' probabilities. A RecipeError says why where they
  /// cannot answer together, as kinds without such answers cannot.
  virtual void answer_with(const Model& other);

  /// Answers to sound as it comes, with `rate` samples in a second; 0: at the model's own rate. The model
  /// must live as long. A RecipeError where the kind or the model cannot.
  virtual std::unique_ptr<Live> listen(int64_t rate);

  /// What there is to say of all answers so far (how fast they were, what was cut); empty: nothing.
  virtual std::string summary() const { return {}; }

  /// Writes into a checkpoint's folder what is needed beside the weights and the recipe.
  virtual void store(const std::filesystem::path& folder) const;
  /// The modules that keep the weights they were made with where training starts from those of this
  /// checkpoint, in which they mean something else: the head of other labels. A RecipeError where all do
  /// (other features).
  virtual std::vector<std::string> keeps_own(const std::filesystem::path& checkpoint) const;
  /// Where that checkpoint has the same labels in another order: the row that each of ours has in its module
  /// `head`. Else none.
  virtual std::vector<int64_t> head_rows(const std::filesystem::path& checkpoint) const;
  /// A new model of the same structure over another algebra, to which real weights can be converted; an error
  /// where the kind has none.
  virtual std::unique_ptr<Model> in_algebra(const std::string& algebra) const;
  /// Writes the model for another program; what to know of its use, a sentence each. A RecipeError where the
  /// kind has no such format, or the format no such model.
  virtual std::vector<std::string> export_to(const ExportRequest& request) const;
  /// How many lines are best answered together.
  virtual size_t portion() const { return 2048; }

 protected:
  /// The recipe without twins, and without where its keys were given: to make another model of.
  Recipe recipe_alone() const;

  Recipe recipe_;
};

/// The data of a recipe: tasks for it and for its twins are made of them.
class QUATRAIN_API Data {
 public:
  explicit Data(Recipe recipe) : recipe_(std::move(recipe)) {}
  virtual ~Data() = default;
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  /// The recipe with the reader and the folder that were used. Stored with a run, it says all that evaluation
  /// and prediction need.
  const Recipe& recipe() const { return recipe_; }
  /// "train", "dev", "test".
  virtual bool has(std::string_view split) const = 0;
  /// The first `count` batches of at most `size` examples: of "train" as a first epoch gives them by this
  /// recipe, of another split in a fixed order, the same for every twin.
  virtual std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                    int64_t count) const = 0;
  /// A model with random weights for this recipe, which may be a twin's, drawn from torch's default
  /// generator.
  virtual std::unique_ptr<Model> make_model(const Recipe& recipe) const = 0;
  /// The task that trains and scores a model, which the task keeps alive; by the model's own recipe.
  virtual std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const = 0;
  /// What whoever reads the data should know, a sentence each: examples that were left out.
  virtual std::vector<std::string> notes() const { return {}; }
  /// What tells the files or sets that were read from all others, by name ("test.tsv", "test.pictures"). A
  /// run keeps it with its checkpoints; what is generated has none.
  virtual std::map<std::string, std::string> checksums() const { return {}; }

 protected:
  Recipe recipe_;
};

/// Which data are asked for.
struct QUATRAIN_API DataRequest {
  std::string folder = "";       ///< `--data`; empty: the recipe's own, then QUATRAIN_DATA
  std::string split = "";        ///< the only split that is prepared, to be scored; empty: all
  const Model* model = nullptr;  ///< a trained one, whose words and labels they shall have
  /// Is told what is being done where that takes long.
  std::function<void(const std::string&)> tell = {};
  /// A checkpoint whose vocabulary is taken where kinds would learn one, and whatever else goes with its
  /// weights: classes of speech, the scale of pixels, words' vectors. Empty: that of the run that
  /// `train.weights` names, if it names one.
  std::filesystem::path vocabulary = {};
  bool resumes = false;  ///< that checkpoint is the run's own: there is nothing to say of it
};

/// A kind of task.
class QUATRAIN_API Kind {
 public:
  virtual ~Kind() = default;
  virtual const About& about() const = 0;
  /// Its tables of a recipe, with the defaults.
  virtual std::unique_ptr<Options> options() const = 0;
  /// Reads or generates data. Where none can be found: RecipeError.
  virtual std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const = 0;
  /// The model of a checkpoint's folder, with its weights.
  virtual std::unique_ptr<Model> load_model(Recipe recipe, const std::filesystem::path& checkpoint) const = 0;
};

/// All kinds, those of the library first.
QUATRAIN_API const std::vector<const Kind*>& kinds();
/// Adds a user's kind; its name must not be taken. To be called before threads are started.
QUATRAIN_API void add_kind(std::unique_ptr<const Kind> kind);

}  // namespace quatrain::tasks
