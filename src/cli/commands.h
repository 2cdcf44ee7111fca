#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

/// The commands of the program. Each takes what was written on its command line and returns the exit code.
namespace quatrain::cli {

/// Exit codes, beside 128 + N of a signal N that stopped the work (130: SIGINT).
enum ExitCode { kSuccess = 0, kFailure = 1, kUsage = 2 };

/// What was asked for on the command line cannot be done: kUsage.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// What commands that read a recipe have in common.
struct RecipeArguments {
  std::string recipe;
  std::string data;
  std::string split;  ///< of one file of data: "80/10/10"
  std::string out;
  std::vector<std::string> settings;
};

/// What commands that set a recipe's twins beside each other have in common.
struct TwinsArguments : RecipeArguments {
  std::vector<std::string> twins;  ///< by name; none: all
};

struct TrainArguments : RecipeArguments {
  std::string twin;
  std::string from = "last";
  bool resume = false;
  bool overwrite = false;
};
int train_command(const TrainArguments& arguments);

struct EvaluateArguments {
  std::string run;
  std::string data;
  std::string split = "test";
  std::string out;                ///< a folder for the files of the evaluation; empty: none
  std::vector<std::string> with;  ///< runs that answer together with it
  std::string device = "cpu";
  std::string json;
  std::vector<std::string> settings;
};
int evaluate_command(const EvaluateArguments& arguments);

struct AverageArguments {
  std::string run;
  std::string data;
  std::string out;
  int64_t last = 0;  ///< at most so many checkpoints; 0: all
  int64_t best = 0;  ///< of all those that the dev set likes best, at most so many; 0: see `last`
  std::string device = "cpu";
};
int average_command(const AverageArguments& arguments);

struct CheckArguments {
  std::string run;
  bool accept = false;  ///< files that were changed on purpose and are good in themselves
};
int check_command(const CheckArguments& arguments);

struct RunsArguments {
  std::string folder = "runs";
  std::string json;
};
int runs_command(const RunsArguments& arguments);

struct PlotArguments {
  std::vector<std::string> runs;
  std::string out = "plot.svg";
  std::string figure;  ///< of the dev set; empty: the one that selects
  bool logarithmic = false;
};
int plot_command(const PlotArguments& arguments);

struct PredictArguments {
  std::string run;
  std::vector<std::string> lines;  ///< none: those of the standard input
  bool live = false;               ///< the standard input is sound
  int64_t rate = 0;                ///< of its samples; 0: the model's own
  std::vector<std::string> with;   ///< runs that answer together with it
  bool skip_bad = false;           ///< lines that cannot be read are left out
  std::string device = "cpu";
  std::vector<std::string> settings;
};
int predict_command(const PredictArguments& arguments);

struct ShortlistArguments {
  std::string run;
  std::string data;
  int64_t best = 50, frequent = 100;
};
int shortlist_command(const ShortlistArguments& arguments);

struct ScoreArguments {
  std::string hypotheses;
  std::vector<std::string> references;
  std::string metric = "bleu";
  std::optional<std::string> tokenize, alignment;  // of BLEU, and of error rates
  std::string confusions;
  std::string json;
};
int score_command(const ScoreArguments& arguments);

struct ConvertArguments {
  std::string in;
  std::string out;
  std::string algebra;
  std::string to;           ///< a format to write a run in for another program; empty: none
  std::string data, split;  ///< of a format that scores data
  std::vector<std::string> settings;
  std::vector<std::string> where;   ///< patterns of names; none: the rule of names
  std::vector<std::string> except;  ///< patterns of names that stay
  int64_t heads = 0;
  std::string json;
  bool overwrite = false;
};
int convert_command(const ConvertArguments& arguments);

struct CompareArguments : TwinsArguments {
  std::string seeds;  ///< a number of seeds, or a list "1,5,9"; empty: one
  std::string json;
};
int compare_command(const CompareArguments& arguments);

struct BenchLinearArguments {
  std::vector<std::string> algebras{"quaternion"};
  std::vector<std::string> sizes{"256", "512", "1024", "2048"};
  std::vector<int64_t> batches{1, 8, 32, 128, 1024};
  std::vector<std::string> dtypes{"float32"};
  std::vector<int> threads;  ///< none: torch's number
  std::vector<std::string> passes{"inference", "training"};
  double seconds = 1;
  std::string json;
};
int bench_linear_command(const BenchLinearArguments& arguments);

struct BenchEncoderArguments {
  std::vector<std::string> algebras{"quaternion"};
  int64_t width = 512, heads = 8, feed_forward = 2048, sequence = 64, batch = 16;
  double dropout = 0.1;
  std::vector<int> threads;  ///< none: torch's number
  double seconds = 2;
  std::string json;
};
int bench_encoder_command(const BenchEncoderArguments& arguments);

struct BenchRecurrentArguments {
  std::vector<std::string> algebras{"quaternion"}, cells{"lstm"}, gates{"packed"};
  std::vector<int64_t> widths{256, 512, 1024}, batches{1, 16};
  int64_t projection = 0, steps = 100;
  std::string lengths = "equal";
  std::vector<std::string> caches{"warm"};
  std::vector<int> threads;  ///< none: torch's number
  std::vector<std::string> passes{"inference", "training"};
  double seconds = 2;
  std::string json;
};
int bench_recurrent_command(const BenchRecurrentArguments& arguments);

struct BenchConvolutionArguments {
  std::vector<std::string> algebras{"quaternion"}, winograd{"auto"};
  std::vector<int64_t> channels{64, 128, 256, 512}, images, batches{16};
  int64_t in_channels = 0;  ///< 0: as many as channels
  int64_t axes = 0, depth = 0, kernel = 3, stride = 1, dilation = 1, groups = 1;
  std::string order = "last", dtype = "float32";
  std::vector<int> threads;  ///< none: torch's number
  std::vector<std::string> passes{"inference", "training"};
  double seconds = 2;
  std::string json;
};
int bench_convolution_command(const BenchConvolutionArguments& arguments);

struct BenchDecodingArguments {
  std::vector<std::string> algebras{"quaternion"};
  std::string output = "real", attention = "real", lengths = "equal";
  bool packed = false;
  int64_t width = 512, heads = 8, feed_forward = 2048, layers = 6, vocabulary = 32000, source = 24,
          target = 32;
  std::vector<int64_t> batches{1, 32}, beams{1, 4};
  bool exact = false;
  std::string projection = "float32";
  int64_t shortlist = 0;     ///< target tokens of a sentence; 0: all
  std::vector<int> threads;  ///< none: torch's number
  double seconds = 5;
  std::string json, write;
};
int bench_decoding_command(const BenchDecodingArguments& arguments);

struct BenchPairsArguments {
  std::vector<std::string> algebras{"quaternion"};
  std::string model = "attention", gates = "auto";
  std::vector<int64_t> widths{256, 512};
  int64_t word_width = 300, batch = 64, words = 30;
  std::vector<int> threads;  ///< none: torch's number
  std::vector<std::string> passes{"inference", "training"};
  double seconds = 2;
  std::string json;
};
int bench_pairs_command(const BenchPairsArguments& arguments);

struct BenchModelArguments : TwinsArguments {
  std::vector<int64_t> batches{32, 1};  ///< of inference
  double seconds = 5;
  std::string json;
};
int bench_model_command(const BenchModelArguments& arguments);

int info_command();
int info_algebras_command();

int recipes_list_command();
int recipes_show_command(const std::string& name);
int recipes_document_command();

/// Runs a command; what it throws becomes one sentence on standard error and an exit code.
int run_guarded(const std::function<int()>& command);

}  // namespace quatrain::cli
