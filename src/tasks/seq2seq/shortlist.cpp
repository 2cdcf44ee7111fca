#include "tasks/seq2seq/shortlist.h"

#include <algorithm>
#include <numeric>

#include "data/ibm_model1.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/checkpoint.h"
#include "support/numbers.h"
#include "support/shell_word.h"
#include "tasks/seq2seq/data.h"
#include "tasks/seq2seq/shortlist_file.h"
#include "train/run_files.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using data::EncodedLinePairs, data::Pieces;

// The marks, and the tokens that targets have most often.
std::vector<int64_t> of_every_sentence(const EncodedLinePairs& pairs, int64_t targets, int64_t frequent) {
  std::vector<int64_t> counts(static_cast<size_t>(targets));
  for (int64_t i = 0; i < pairs.size(); ++i)
    for (const int32_t token : pairs.target[i]) ++counts[static_cast<size_t>(token)];
  std::vector<int64_t> tokens(static_cast<size_t>(targets));
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](int64_t a, int64_t b) {
    return counts[static_cast<size_t>(a)] > counts[static_cast<size_t>(b)];
  });
  tokens.resize(static_cast<size_t>(std::min(frequent, targets)));
  for (const int64_t mark : {Pieces::kPad, Pieces::kUnknown, Pieces::kBegin, Pieces::kEnd})
    tokens.push_back(mark);
  return tokens;
}

models::Shortlist shortlist_of(const EncodedLinePairs& pairs, const PairPieces& pieces,
                               const ShortlistRequest& request) {
  const int64_t sources = pieces.source.size(), targets = pieces.target.size();
  data::Model1Options options;
  options.best = request.best;
  options.after_pairs = request.after_pairs;
  if (request.tell)
    options.tell = [&](int64_t iteration) {
      request.tell("iteration " + std::to_string(iteration) + " of " + std::to_string(options.iterations));
    };
  auto lists = data::likely_targets(pairs, sources, targets, options);
  if (pieces.source == pieces.target)  // names and numbers are copied
    for (size_t token = 0; token < lists.size(); ++token) lists[token].push_back(static_cast<int64_t>(token));
  return {lists, of_every_sentence(pairs, targets, request.frequent), targets};
}

void measure(const models::Shortlist& shortlist, const EncodedLinePairs& dev, ShortlistReport& report) {
  int64_t tokens = 0, found = 0, whole = 0, sizes = 0;
  for (int64_t i = 0; i < dev.size(); ++i) {
    const auto source = dev.source[i], target = dev.target[i];
    const auto list = shortlist.tokens({source.begin(), source.end()});
    const auto listed = std::count_if(target.begin(), target.end(), [&](int32_t token) {
      return std::binary_search(list.begin(), list.end(), token);
    });
    sizes += static_cast<int64_t>(list.size());
    tokens += static_cast<int64_t>(target.size());
    found += listed;
    whole += listed == static_cast<int64_t>(target.size());
  }
  const auto share = [](int64_t part, int64_t all) {
    return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(all, 1));
  };
  report.has_dev = true;
  report.mean_size = share(sizes, dev.size());
  report.recall = share(found, tokens);
  report.whole = share(whole, dev.size());
}

// The model with its pieces, without the list that it may ask for.
std::unique_ptr<Model> load(const fs::path& run) {
  if (train::has_checkpoint(run, "best")) {
    const Recipe recipe = read_recipe((train::find_checkpoint(run, "best") / "recipe.toml").string());
    if (recipe.about().name != "seq2seq")
      throw RecipeError("the run '" + run.string() + "' is of the kind '" + recipe.about().name +
                        "': only runs that turn lines into lines (seq2seq) have a shortlist");
  }
  auto model = load_run(run, {Setting::parse("decode.shortlist=false")});
  const auto& own = model->recipe().own<Seq2SeqTaskOptions>();
  if (!has_real_output(own.model))
    throw RecipeError("the run '" + run.string() +
                      "' scores tokens by an output layer in its algebra, of which no rows can be taken for "
                      "a shortlist");
  return model;
}

}  // namespace

ShortlistReport make_shortlist(const fs::path& run, const ShortlistRequest& request) {
  const auto model = load(run);
  const auto& own = dynamic_cast<const Seq2SeqModel&>(*model);
  const auto loaded = load_data(model->recipe(), {request.data, "", model.get(), request.tell});
  const auto& data = dynamic_cast<const PairData&>(*loaded);
  if (!data.has("train"))
    throw RecipeError(
        "the data have no training set, which a shortlist is made from: name others with --data");
  const EncodedLinePairs& pairs = *data.set("train").encoded;
  const auto shortlist = shortlist_of(pairs, own.pieces, request);
  ShortlistReport report{
      .pairs = pairs.size(), .vocabulary = own.pieces.target.size(), .notes = data.notes()};
  if (data.has("dev")) measure(shortlist, *data.set("dev").encoded, report);
  write_shortlist(shortlist, PairPieces::checksum(train::find_checkpoint(run, "best"), own.own().joint),
                  run / train::kShortlistFile);
  return report;
}

std::shared_ptr<const models::Shortlist> read_shortlist(const fs::path& run, const fs::path& checkpoint,
                                                        bool joint) {
  const fs::path file = run / train::kShortlistFile;
  const std::string command = "quatrain shortlist " + shell_word(run);
  if (!fs::exists(file))
    throw RecipeError("decode.shortlist = true needs the file '" + file.string() + "': make it with " +
                      command);
  return std::make_shared<models::Shortlist>(
      read_shortlist_file(file, PairPieces::checksum(checkpoint, joint), "make it again with " + command));
}

}  // namespace quatrain::tasks
