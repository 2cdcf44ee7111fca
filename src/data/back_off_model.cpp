#include "quatrain/data/back_off_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "data/line_file.h"
#include "data/text_file.h"
#include "support/parse_number.h"

namespace quatrain::data {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();  // a back-off weight

// The parts between blanks and tabs.
void split_blanks(std::string_view line, std::vector<std::string_view>& parts) {
  parts.clear();
  for (size_t begin = line.find_first_not_of(" \t"); begin != line.npos;) {
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    parts.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(" \t", end);
  }
}

std::string section(int64_t order) {
  return "\\" + std::to_string(order) + "-grams:";
}

}  // namespace

class BackOffModelReader {
 public:
  BackOffModelReader(const std::filesystem::path& file, BackOffModel& model) : lines_(file), model_(model) {}

  void read() {
    do {
      next("\\data\\");
    } while (line_ != "\\data\\");
    read_counts();
    TORCH_CHECK(line_ == section(1), lines_.place(), ": ", section(1), " must follow \\data\\, got ",
                quote(line_));
    model_.order_ = static_cast<int64_t>(counts_.size());
    add_root();
    for (int64_t order = 1; order <= model_.order_; ++order) {
      read_section(order);
      add_order(order);
    }
    TORCH_CHECK(!advance_line(), lines_.place(), ": the file must end after \\end\\, got ", quote(line_),
                "; does it hold more than one model?");
    // Those that no n-gram goes on from need no weight.
    std::replace_if(
        model_.back_off_.begin(), model_.back_off_.end(), [](float x) { return std::isnan(x); }, 0.F);
    for (const char* mark : {"<s>", "</s>"})
      TORCH_CHECK(model_.numbers_.count(mark), "data: ", lines_.file().string(), " has no unigram ", mark,
                  ", so that the ", mark[1] == 's' ? "beginning" : "end",
                  " of a text has no probability; train it with marks of sentences");
    model_.end_word_ = model_.numbers_.at("</s>");
    // Unigrams alone have one state.
    if (model_.order_ > 1) model_.start_ = model_.find(0, model_.numbers_.at("<s>"));
    const auto unknown = model_.numbers_.find("<unk>");
    if (unknown != model_.numbers_.end()) model_.unknown_ = unknown->second;
  }

 private:
  struct NGram {
    int32_t history, word;  // a node, a number
    float log10, back_off;
    int64_t line;
  };

  // The next line that is not empty, without blanks around it; false at the end of the file.
  bool advance_line() {
    for (std::string_view line; lines_.next(line);) {
      const std::string problem = line_problem(line);
      TORCH_CHECK(problem.empty(), lines_.place(), ": ", problem);
      const size_t begin = line.find_first_not_of(" \t");
      if (begin == line.npos) continue;
      line_ = line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
      return true;
    }
    return false;
  }

  // The same where the file may not end.
  void next(const std::string& wanted) {
    TORCH_CHECK(advance_line(), "data: ", lines_.file().string(), " ends at line ", lines_.number(),
                " without ", wanted, "; is it an ARPA file, and whole?");
  }

  void read_counts() {
    for (next(section(1)); line_.front() != '\\'; next(section(1))) {
      const size_t equal = line_.find('=');
      split_blanks(line_.substr(0, equal), parts_);
      const auto order = parts_.size() == 2 ? whole_number(parts_[1]) : std::nullopt;
      const bool is_count = equal != line_.npos && parts_.size() == 2 && parts_[0] == "ngram" && order;
      if (is_count) split_blanks(line_.substr(equal + 1), parts_);
      const auto count = is_count && parts_.size() == 1 ? whole_number(parts_[0]) : std::nullopt;
      const auto wanted = static_cast<int64_t>(counts_.size()) + 1;
      TORCH_CHECK(count && *count >= 0 && *order == wanted, lines_.place(),
                  ": \\data\\ must go on with ngram ", wanted, "=COUNT or end, got ", quote(line_));
      counts_.push_back(*count);
    }
    TORCH_CHECK(!counts_.empty(), lines_.place(),
                ": \\data\\ must hold lines ngram ORDER=COUNT, but there is none");
    int64_t left = std::numeric_limits<int32_t>::max() - 1;
    for (const int64_t count : counts_) {
      TORCH_CHECK(count <= left, lines_.place(),
                  ": a model may have 2147483646 n-grams, but \\data\\ counts more; prune it");
      left -= count;
    }
  }

  void add_root() {
    model_.words_ = {-1};
    model_.log10_ = {0};
    model_.suffixes_ = {0};
    model_.back_off_ = {0};
    model_.first_child_ = {1};
  }

  float number(std::string_view text, const char* what) const {
    const auto value = static_cast<float>(parse_number<double>(text).value_or(NAN));
    TORCH_CHECK(std::isfinite(value), lines_.place(), ": the ", what, " must be a finite number, got ",
                quote(text));
    return value;
  }

  // Reads the n-grams of an order into ngrams_, and the line behind them.
  void read_section(int64_t order) {
    const auto words = static_cast<size_t>(order);
    const bool highest = order == model_.order_;
    const std::string behind = highest ? "\\end\\" : section(order + 1);
    const int64_t header = lines_.number();
    ngrams_.clear();
    for (next(behind); line_ != behind; next(behind)) {
      TORCH_CHECK(line_.front() != '\\', lines_.place(), ": ", behind, " must follow ", section(order),
                  ", got ", quote(line_), "; \\data\\ promises n-grams up to order ", model_.order_);
      split_blanks(line_, parts_);
      TORCH_CHECK(parts_.size() == words + 1 || parts_.size() == words + 2, lines_.place(),
                  ": a line must have a log-probability, ", order, order == 1 ? " word" : " words",
                  " and perhaps a back-off weight, got ", quote(line_));
      NGram ngram{0, 0, number(parts_[0], "log-probability"), kMissing, lines_.number()};
      TORCH_CHECK(ngram.log10 <= 0, lines_.place(), ": a log-probability must be at most 0, got ",
                  quote(parts_[0]));
      if (parts_.size() == words + 2) {
        ngram.back_off = number(parts_.back(), "back-off weight");
        TORCH_CHECK(!highest || ngram.back_off == 0, lines_.place(),
                    ": n-grams of the highest order have no back-off weight, got ", quote(parts_.back()),
                    "; \\data\\ promises n-grams up to order ", model_.order_);
      }
      if (order == 1) {
        ngram.word = static_cast<int32_t>(model_.names_.size());
        const bool added = model_.numbers_.emplace(parts_[1], ngram.word).second;
        TORCH_CHECK(added, lines_.place(), ": the n-gram ", quote(parts_[1]), " comes twice");
        model_.names_.emplace_back(parts_[1]);
      } else {
        find_history(words, ngram);
      }
      ngrams_.push_back(ngram);
    }
    const auto count = static_cast<int64_t>(ngrams_.size()), promised = counts_[words - 1];
    TORCH_CHECK(count == promised, lines_.place(), ": the section ", section(order), " of line ", header,
                " has ", count, " n-grams, but \\data\\ promises ", promised, "; is the file whole?");
  }

  void find_history(size_t words, NGram& ngram) const {
    for (size_t i = 1; i <= words; ++i) {
      const auto found = model_.numbers_.find(std::string(parts_[i]));
      TORCH_CHECK(found != model_.numbers_.end(), lines_.place(), ": the word ", quote(parts_[i]),
                  " is not among the unigrams; add it there or remove its n-grams");
      if (i == words) {
        ngram.word = found->second;
        return;
      }
      ngram.history = model_.find(ngram.history, found->second);
      const auto history = [&] {
        std::string text(parts_[1]);
        for (size_t j = 2; j <= i; ++j) text += " " + std::string(parts_[j]);
        return text;
      };
      TORCH_CHECK(ngram.history > 0, lines_.place(), ": the beginning ", quote(history()),
                  " of this n-gram must be an n-gram too, but is none; write the model with it");
      TORCH_CHECK(i + 1 < words || !std::isnan(model_.back_off_[static_cast<size_t>(ngram.history)]),
                  lines_.place(), ": this n-gram's beginning ", quote(history()),
                  " must have a back-off weight, but has none; 0 stands for a weight of 1");
    }
  }

  // Makes nodes of them.
  void add_order(int64_t order) {
    std::sort(ngrams_.begin(), ngrams_.end(), [](const NGram& a, const NGram& b) {
      return a.history != b.history ? a.history < b.history : a.word < b.word;
    });
    const bool highest = order == model_.order_;
    const size_t histories = model_.words_.size();
    const size_t nodes = histories + ngrams_.size();
    model_.words_.reserve(nodes);
    model_.log10_.reserve(nodes);
    model_.suffixes_.reserve(nodes);
    model_.first_child_.reserve(histories + 1);
    if (!highest) model_.back_off_.reserve(nodes);
    for (size_t i = 0; i < ngrams_.size(); ++i) {
      const NGram& ngram = ngrams_[i];
      const bool again =
          i > 0 && ngrams_[i - 1].history == ngram.history && ngrams_[i - 1].word == ngram.word;
      TORCH_CHECK(!again, place(lines_.file(), std::max(ngram.line, ngrams_[again ? i - 1 : i].line)),
                  ": this n-gram comes twice");
      while (model_.first_child_.size() <= static_cast<size_t>(ngram.history))
        model_.first_child_.push_back(static_cast<int32_t>(model_.words_.size()));
      int32_t suffix = 0;
      for (int32_t end = ngram.history; end > 0 && suffix == 0;) {
        end = model_.suffixes_[static_cast<size_t>(end)];
        suffix = model_.find(end, ngram.word);
      }
      model_.words_.push_back(ngram.word);
      model_.log10_.push_back(ngram.log10);
      model_.suffixes_.push_back(suffix);
      if (!highest) model_.back_off_.push_back(ngram.back_off);
    }
    while (model_.first_child_.size() <= histories)
      model_.first_child_.push_back(static_cast<int32_t>(model_.words_.size()));
  }

  LineFile lines_;
  BackOffModel& model_;
  std::string_view line_;
  std::vector<std::string_view> parts_;
  std::vector<int64_t> counts_;
  std::vector<NGram> ngrams_;
};

BackOffModel::BackOffModel(const std::filesystem::path& file) {
  BackOffModelReader(file, *this).read();
}

int64_t BackOffModel::word(std::string_view name) const {
  const auto found = numbers_.find(std::string(name));
  return found == numbers_.end() ? unknown_ : found->second;
}

const std::string& BackOffModel::name(int64_t word) const {
  TORCH_CHECK_INDEX(word >= 0 && word < words(), "BackOffModel: a word must be from 0 to ", words() - 1,
                    ", got ", word);
  return names_[static_cast<size_t>(word)];
}

// The n-gram that is this word longer, or 0.
int32_t BackOffModel::find(int32_t history, int32_t word) const {
  const auto* child = first_child_.data() + history;
  const auto begin = words_.begin() + child[0], end = words_.begin() + child[1];
  const auto found = std::lower_bound(begin, end, word);
  return found != end && *found == word ? static_cast<int32_t>(found - words_.begin()) : 0;
}

double BackOffModel::advance(State& state, int64_t word) const {
  TORCH_CHECK_INDEX(word >= 0 && word < words(), "BackOffModel: a word must be from 0 to ", words() - 1,
                    ", got ", word, "; a word that the model does not know has no number without <unk>");
  const auto states = static_cast<int64_t>(back_off_.size());
  TORCH_CHECK_INDEX(state >= 0 && state < states, "BackOffModel: a state must be from 0 to ", states - 1,
                    ", got ", state, "; take it from start() or advance()");
  auto history = static_cast<int32_t>(state);
  double log10 = 0;
  int32_t found = find(history, static_cast<int32_t>(word));
  while (found == 0) {  // each word is a unigram
    log10 += back_off_[static_cast<size_t>(history)];
    history = suffixes_[static_cast<size_t>(history)];
    found = find(history, static_cast<int32_t>(word));
  }
  log10 += log10_[static_cast<size_t>(found)];
  state = found < states ? found : suffixes_[static_cast<size_t>(found)];
  return log10 * std::numbers::ln10;
}

double BackOffModel::end(State state) const {
  return advance(state, end_word_);
}

}  // namespace quatrain::data
