#include "quatrain/models/beam_search.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/next_tokens.h"
#include "support/enum_names.h"

namespace quatrain::models {
namespace {

constexpr EnumNames<LengthPenalty, 2> kPenalties{
    {{LengthPenalty::power, "power"}, {LengthPenalty::wu, "wu"}}};

constexpr int64_t kNone = -1;

// A token of a hypothesis, and where the one before it stands: hypotheses share their beginnings.
struct Node {
  int64_t before, token;
  double score;
};

// A target that is not finished.
struct Live {
  int64_t last = kNone;  // its last token's node
  double sum = 0;
};

// A way on from a row.
struct Candidate {
  int64_t row, token;
  double score, sum;  // of the token; of the hypothesis with it
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  return a.row != b.row ? a.row < b.row : a.token < b.token;
}

struct Sentence {
  int64_t number = 0;  // kNone: it has left
  std::vector<Live> live;
  std::vector<Hypothesis> finished;  // the best first
};

// Adds what would make these tokens end with a sequence that they have already.
void add_repeats(const std::vector<int64_t>& tokens, int64_t length, std::vector<int64_t>& banned) {
  if (length <= 0 || static_cast<int64_t>(tokens.size()) < length) return;
  const auto last = tokens.end() - (length - 1);
  for (auto begin = tokens.begin(); begin + (length - 1) != tokens.end(); ++begin)
    if (std::equal(last, tokens.end(), begin)) banned.push_back(*(begin + (length - 1)));
}

// Adds the last token of a sequence where these tokens end with all the others.
void add_last(const std::vector<int64_t>& tokens, const std::vector<int64_t>& sequence,
              std::vector<int64_t>& banned) {
  if (sequence.size() <= tokens.size() + 1 &&
      std::equal(sequence.rbegin() + 1, sequence.rend(), tokens.rbegin()))
    banned.push_back(sequence.back());
}

void check_banned(const std::vector<std::vector<int64_t>>& sequences) {
  for (const auto& sequence : sequences)
    TORCH_CHECK_VALUE(!sequence.empty(), "beam_search: a banned sequence must have a token, got none");
}

constexpr size_t kMostBanned = 64;  // banned tokens that each row has memory for at once

class Search {
 public:
  Search(const std::vector<SearchTask>& tasks, const SearchOptions& options)
      : tasks_(tasks), options_(options), results_(tasks.size()) {
    constexpr int64_t kMostFirst = 1 << 20;  // what memory is taken for at once
    const int64_t beam = std::min(options.beam, kMostFirst);
    int64_t nodes = 0, longest = 0;
    for (size_t i = 0; i < tasks.size(); ++i) {
      Sentence& sentence = sentences_.emplace_back();
      sentence.number = static_cast<int64_t>(i);
      sentence.live.reserve(static_cast<size_t>(beam));
      sentence.live.resize(1);
      tokens_.push_back(options.begin);
      parents_.push_back(sentence.number);
      const int64_t most = std::min(tasks[i].longest, kMostFirst);
      longest = std::max(longest, most);
      nodes = std::min(kMostFirst, nodes + beam * most);
    }
    nodes_.reserve(static_cast<size_t>(nodes));
    living_.reserve(static_cast<size_t>(beam));
    tokens_so_far_.reserve(static_cast<size_t>(longest));
  }

  std::vector<std::vector<Hypothesis>> run(const Step& step) {
    while (!sentences_.empty()) {
      const at::Tensor logits = step(tokens_, parents_);
      TORCH_CHECK(logits.dim() == 2 && logits.size(0) == static_cast<int64_t>(tokens_.size()),
                  "beam_search: a step must return scores (", tokens_.size(), ", vocabulary), got ",
                  logits.sizes());
      TORCH_CHECK_VALUE(options_.beam <= logits.size(1),
                        "beam_search: beam must be at most the vocabulary's ", logits.size(1),
                        " tokens, got ", options_.beam);
      if (length_ == 0) check_tokens(logits.size(1));
      find_banned();
      advance(NextTokens(logits, 2 * options_.beam, banned_, buffers_));
    }
    return std::move(results_);
  }

 private:
  const SearchTask& task(const Sentence& sentence) const {
    return tasks_[static_cast<size_t>(sentence.number)];
  }

  void check_tokens(int64_t vocabulary) const {
    const auto check = [&](int64_t token) {
      TORCH_CHECK_VALUE(token >= 0 && token < vocabulary,
                        "beam_search: marks, prefixes and banned tokens must be of the ", vocabulary,
                        " tokens of the vocabulary, got ", token);
    };
    for (const int64_t mark : {options_.begin, options_.end, options_.pad}) check(mark);
    const auto check_all = [&](const std::vector<std::vector<int64_t>>& sequences) {
      for (const auto& sequence : sequences) std::for_each(sequence.begin(), sequence.end(), check);
    };
    check_all(options_.banned);
    for (const SearchTask& task : tasks_) {
      check_all(task.banned);
      check_all({task.prefix});
      for (const int64_t token : task.prefix)
        TORCH_CHECK_VALUE(token != options_.begin && token != options_.end && token != options_.pad,
                          "beam_search: a prefix must not have marks, got ", token);
    }
  }

  // Writes the tokens that end with a node to `tokens_so_far_`.
  void trace(int64_t last) {
    tokens_so_far_.clear();
    for (int64_t node = last; node != kNone; node = nodes_[static_cast<size_t>(node)].before)
      tokens_so_far_.push_back(nodes_[static_cast<size_t>(node)].token);
    std::reverse(tokens_so_far_.begin(), tokens_so_far_.end());
  }

  // Of each row the tokens that may not follow it.
  void find_banned() {
    banned_.resize(tokens_.size());
    size_t row = 0;
    for (const Sentence& sentence : sentences_)
      for (const Live& live : sentence.live) {
        auto& tokens = banned_[row++];
        const auto& own = task(sentence).banned;
        tokens.reserve(3 + std::min(options_.banned.size() + own.size(), kMostBanned));
        tokens.assign({options_.begin, options_.pad});
        if (length_ < options_.shortest) tokens.push_back(options_.end);
        if (options_.no_repeat == 0 && options_.banned.empty() && own.empty()) continue;
        trace(live.last);
        add_repeats(tokens_so_far_, options_.no_repeat, tokens);
        for (const auto& sequence : options_.banned) add_last(tokens_so_far_, sequence, tokens);
        for (const auto& sequence : own) add_last(tokens_so_far_, sequence, tokens);
      }
  }

  void advance(const NextTokens& next) {
    tokens_.clear(), parents_.clear();
    int64_t row = 0;
    for (Sentence& sentence : sentences_) {
      const auto rows = static_cast<int64_t>(sentence.live.size());
      extend(sentence, row, next);
      row += rows;
      if (!done(sentence)) continue;
      auto& finished = sentence.finished;
      if (static_cast<int64_t>(finished.size()) > options_.best)
        finished.resize(static_cast<size_t>(options_.best));
      results_[static_cast<size_t>(std::exchange(sentence.number, kNone))] = std::move(finished);
    }
    std::erase_if(sentences_, [](const Sentence& sentence) { return sentence.number == kNone; });
    ++length_;
  }

  // What may follow the rows of a sentence, the best first.
  void collect(const Sentence& sentence, int64_t first_row, const NextTokens& next) {
    candidates_.clear();
    const auto& prefix = task(sentence).prefix;
    const bool last = length_ >= task(sentence).longest;
    for (size_t i = 0; i < sentence.live.size(); ++i) {
      const int64_t row = first_row + static_cast<int64_t>(i);
      const double sum = sentence.live[i].sum;
      const bool given = length_ < static_cast<int64_t>(prefix.size());
      const auto possible = [&](int64_t j) { return std::isfinite(next.log_probability(row, j)); };
      if (last || given || !possible(0)) {
        const int64_t token = given ? prefix[static_cast<size_t>(length_)] : options_.end;
        const double score = next.log_probability_of(row, token);
        candidates_.push_back({row, token, score, sum + score});
        continue;
      }
      for (int64_t j = 0; j < next.count() && possible(j); ++j) {
        const double score = next.log_probability(row, j);
        candidates_.push_back({row, next.token(row, j), score, sum + score});
      }
    }
    const size_t most = std::min(candidates_.size(), static_cast<size_t>(2 * options_.beam));
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(most),
                      candidates_.end(), better);
    candidates_.resize(most);
  }

  // The hypothesis that ends with a node, and with the end mark's score.
  Hypothesis hypothesis(int64_t last, double end_score, double sum) const {
    Hypothesis made{{}, {end_score}, sum, sum / length_penalty(options_, length_ + 1)};
    while (last != kNone) {
      const Node& node = nodes_[static_cast<size_t>(last)];
      made.tokens.push_back(node.token);
      made.token_scores.push_back(node.score);
      last = node.before;
    }
    std::reverse(made.tokens.begin(), made.tokens.end());
    std::reverse(made.token_scores.begin(), made.token_scores.end());
    return made;
  }

  // Puts it in its place: equal scores in the order of their ends. Where their number ends no search, none is
  // kept that will not be returned.
  void finish(Sentence& sentence, Hypothesis made) const {
    auto& finished = sentence.finished;
    const auto place =
        std::upper_bound(finished.begin(), finished.end(), made,
                         [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    finished.insert(place, std::move(made));
    if (options_.patience == 0 && std::ssize(finished) > options_.best) finished.pop_back();
  }

  void extend(Sentence& sentence, int64_t first_row, const NextTokens& next) {
    for (int64_t row = first_row; row < first_row + std::ssize(sentence.live); ++row)
      if (!next.is_finite(row)) throw NotFiniteError(static_cast<size_t>(sentence.number));
    collect(sentence, first_row, next);
    living_.clear();
    const size_t begin_of_rows = tokens_.size();
    for (size_t rank = 0; rank < candidates_.size(); ++rank) {
      const Candidate& candidate = candidates_[rank];
      const int64_t last = sentence.live[static_cast<size_t>(candidate.row - first_row)].last;
      const bool ends = candidate.token == options_.end;
      if (ends && rank >= static_cast<size_t>(options_.beam)) continue;
      if (!ends && living_.size() == static_cast<size_t>(options_.beam)) continue;
      if (ends) {
        finish(sentence, hypothesis(last, candidate.score, candidate.sum));
        continue;
      }
      living_.push_back({static_cast<int64_t>(nodes_.size()), candidate.sum});
      nodes_.push_back({last, candidate.token, candidate.score});
      tokens_.push_back(candidate.token);
      parents_.push_back(candidate.row);
    }
    sentence.live.swap(living_);
    if (!done(sentence)) return;
    tokens_.resize(begin_of_rows), parents_.resize(begin_of_rows);
  }

  bool done(const Sentence& sentence) const {
    const auto& finished = sentence.finished;
    if (sentence.live.empty()) return true;
    const double patience = options_.beam == 1 ? 1 : options_.patience;  // the likeliest token, no other
    const auto count = static_cast<double>(finished.size());
    if (patience > 0 && count >= static_cast<double>(options_.beam) * patience) return true;
    if (static_cast<int64_t>(finished.size()) < options_.best) return false;
    // The most that a living one can reach: no further loss, and the kindest length.
    const double kindest =
        std::max(length_penalty(options_, length_ + 2), length_penalty(options_, task(sentence).longest + 1));
    double most = -std::numeric_limits<double>::infinity();
    for (const Live& live : sentence.live) most = std::max(most, live.sum / kindest);
    return finished[static_cast<size_t>(options_.best - 1)].score >= most;
  }

  const std::vector<SearchTask>& tasks_;
  const SearchOptions& options_;
  std::vector<std::vector<Hypothesis>> results_;
  std::vector<Sentence> sentences_;        // those that are not done
  std::vector<int64_t> tokens_, parents_;  // of their rows
  std::vector<Node> nodes_;                // of all hypotheses that live or lived
  // Kept from step to step for their memory.
  std::vector<Candidate> candidates_;
  std::vector<Live> living_;
  std::vector<std::vector<int64_t>> banned_;
  std::vector<int64_t> tokens_so_far_;
  NextTokens::Buffers buffers_;
  int64_t length_ = 0;  // tokens of every living hypothesis
};

}  // namespace

const char* name(LengthPenalty penalty) {
  return name_of(kPenalties, penalty);
}

LengthPenalty parse_length_penalty(std::string_view text) {
  return parse_name(kPenalties, "length_penalty", text);
}

double length_penalty(const SearchOptions& options, int64_t length) {
  const auto tokens = static_cast<double>(length);
  return std::pow(options.penalty == LengthPenalty::wu ? (5 + tokens) / 6 : tokens, options.alpha);
}

std::vector<std::vector<Hypothesis>> beam_search(const Step& step, const std::vector<SearchTask>& sentences,
                                                 const SearchOptions& options) {
  TORCH_CHECK_VALUE(options.beam >= 1, "beam_search: beam must be at least 1, got ", options.beam);
  TORCH_CHECK_VALUE(options.best >= 1 && options.best <= options.beam,
                    "beam_search: best must be from 1 to beam = ", options.beam, ", got ", options.best);
  TORCH_CHECK_VALUE(std::isfinite(options.alpha), "beam_search: alpha must be a finite number, got ",
                    options.alpha);
  TORCH_CHECK_VALUE(options.patience == 0 || options.patience >= 1,
                    "beam_search: patience must be 0 or at least 1, got ", options.patience);
  TORCH_CHECK_VALUE(options.no_repeat >= 0, "beam_search: no_repeat must be at least 0, got ",
                    options.no_repeat);
  check_banned(options.banned);
  for (const SearchTask& task : sentences) {
    check_banned(task.banned);
    TORCH_CHECK_VALUE(task.longest >= 0 && options.shortest <= task.longest &&
                          static_cast<int64_t>(task.prefix.size()) <= task.longest,
                      "beam_search: longest must be at least shortest = ", options.shortest,
                      " and the prefix's ", task.prefix.size(), " tokens, got ", task.longest);
  }
  return Search(sentences, options).run(step);
}

}  // namespace quatrain::models
