#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "models/ctc_search.h"
#include "models/frames.h"

namespace quatrain::models {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b)).
double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kImpossible ? a : a + std::log1p(std::exp(b - a));
}

// A node of the tree of prefixes, which tells equal ones. Each keeps those it begins with; with the last that
// needs it, it leaves the tree.
struct Prefix : std::enable_shared_from_this<Prefix> {
  Prefix(int64_t token, std::shared_ptr<Prefix> parent) : token(token), parent(std::move(parent)) {
    if (this->parent) this->parent->children[token] = this;
  }
  ~Prefix() {
    leave();
    // One by one: a long prefix would otherwise need a deep stack.
    while (parent && parent.use_count() == 1) {
      parent->leave();
      parent = std::exchange(parent->parent, nullptr);
    }
  }
  Prefix(const Prefix&) = delete;
  Prefix& operator=(const Prefix&) = delete;

  void leave() {
    if (parent) parent->children.erase(token);
  }

  int64_t token;  // the last; -1: none
  std::shared_ptr<Prefix> parent;
  std::unordered_map<int64_t, Prefix*> children = {};
  int64_t place = -1;  // in the beam; -1: not in it
};

// A prefix of the beam. Its paths end with the blank, or with its last token.
struct Beamed {
  std::shared_ptr<Prefix> prefix;
  double blank = kImpossible, token = kImpossible;  // logarithms of the sums over paths
  Path best_blank = {kImpossible}, best_token = {kImpossible};
  double extra = 0;   // what language model and bonus add
  int64_t state = 0;  // of the language model

  double sum() const { return log_add(blank, token); }
  const Path& best() const { return best_blank.score < best_token.score ? best_token : best_blank; }
  double sum_before(int64_t next) const { return next == prefix->token ? blank : sum(); }
  const Path& best_before(int64_t next) const { return next == prefix->token ? best_blank : best(); }
};

// What a prefix may be at the next frame: the same, or longer by a token.
struct Grown {
  int64_t from;        // in the beam
  int64_t token = -1;  // -1: the same
  double blank = kImpossible, last = kImpossible;
  double extra = 0;
  int64_t state = 0;
  int64_t joined = -1;  // of the same: what it is longer than by its last token, if this grew to it
  double score = 0;
};

class PrefixSearch : public CtcDecoder::Search {
 public:
  explicit PrefixSearch(const CtcDecoderOptions& options) : options_(options) {
    Beamed& empty = beam_.emplace_back();
    empty.prefix = std::make_shared<Prefix>(-1, nullptr);
    empty.prefix->place = 0;
    empty.blank = 0;
    empty.best_blank.score = 0;
    if (options.language) empty.state = options.language->start();
  }

  void advance(const double* frame, int64_t classes) override {
    grow(frame, classes);
    const auto kept = std::min(grown_.size(), static_cast<size_t>(options_.beam));
    std::partial_sort(grown_.begin(), grown_.begin() + static_cast<std::ptrdiff_t>(kept), grown_.end(),
                      [](const Grown& a, const Grown& b) {
                        if (a.score != b.score) return a.score > b.score;
                        return a.from != b.from ? a.from < b.from : a.token < b.token;
                      });
    grown_.resize(kept);
    std::vector<Beamed> next;
    next.reserve(kept);
    for (const Grown& grown : grown_) next.push_back(make(grown, frame));
    for (const Beamed& old : beam_) old.prefix->place = -1;
    for (size_t i = 0; i < kept; ++i) next[i].prefix->place = static_cast<int64_t>(i);
    beam_ = std::move(next);
    ++frames_;
  }

  std::vector<Recognition> result(bool ended, int64_t most) const override {
    std::vector<std::pair<double, const Beamed*>> ranked;
    for (const Beamed& one : beam_) {
      double score = one.sum() + one.extra;
      if (ended && options_.language) score += options_.language_weight * options_.language->end(one.state);
      ranked.emplace_back(score, &one);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (std::ssize(ranked) > most) ranked.resize(static_cast<size_t>(most));
    std::vector<Recognition> best;
    for (const auto& [score, one] : ranked) best.push_back({one->best().tokens(), score});
    return best;
  }

 private:
  const Beamed& at(int64_t place) const { return beam_[static_cast<size_t>(place)]; }

  // Fills grown_: first what stays the same, in the beam's order, then what is longer.
  void grow(const double* frame, int64_t classes) {
    grown_.clear();
    const auto count = static_cast<int64_t>(beam_.size());
    for (int64_t i = 0; i < count; ++i) {
      Grown& same = grown_.emplace_back(Grown{i});
      same.blank = at(i).sum() + frame[options_.blank];
      if (at(i).prefix->token >= 0) same.last = at(i).token + frame[at(i).prefix->token];
      same.extra = at(i).extra;
      same.state = at(i).state;
    }
    const double least = *std::max_element(frame, frame + classes) - options_.token_threshold;
    for (int64_t token = 0; token < classes; ++token) {
      if (token == options_.blank || frame[token] < least) continue;
      for (int64_t i = 0; i < count; ++i) lengthen(i, token, frame[token]);
    }
    for (Grown& grown : grown_) grown.score = log_add(grown.blank, grown.last) + grown.extra;
  }

  void lengthen(int64_t i, int64_t token, double log_probability) {
    const Beamed& from = at(i);
    const double last = from.sum_before(token) + log_probability;
    if (last == kImpossible) return;
    const auto child = from.prefix->children.find(token);
    if (child != from.prefix->children.end() && child->second->place >= 0) {
      Grown& same = grown_[static_cast<size_t>(child->second->place)];
      same.last = log_add(same.last, last);
      same.joined = i;
      return;
    }
    Grown& longer = grown_.emplace_back(Grown{i, token, kImpossible, last, from.extra, from.state});
    longer.extra += options_.insertion_bonus;
    if (!options_.language) return;
    const int64_t word = options_.words[static_cast<size_t>(token)];
    longer.extra += options_.language_weight * options_.language->advance(longer.state, word);
  }

  // The path of `from` with a token more in this frame.
  Path longer_path(const Beamed& from, int64_t token, double log_probability) const {
    Path path = from.best_before(token).with(token, frames_, std::exp(log_probability));
    path.score += log_probability;
    return path;
  }

  Beamed make(const Grown& grown, const double* frame) const {
    const Beamed& from = at(grown.from);
    Beamed made;
    made.blank = grown.blank;
    made.token = grown.last;
    made.extra = grown.extra;
    made.state = grown.state;
    if (grown.token >= 0) {
      const auto child = from.prefix->children.find(grown.token);
      // One that left the beam, and that longer prefixes in it keep, returns.
      made.prefix = child == from.prefix->children.end() ? std::make_shared<Prefix>(grown.token, from.prefix)
                                                         : child->second->shared_from_this();
      made.best_token = longer_path(from, grown.token, frame[grown.token]);
      return made;
    }
    made.prefix = from.prefix;
    made.best_blank = from.best();
    made.best_blank.score += frame[options_.blank];
    const int64_t token = from.prefix->token;
    if (token < 0) return made;
    made.best_token = from.best_token;
    made.best_token.score += frame[token];
    made.best_token.stay(frames_, std::exp(frame[token]));
    if (grown.joined < 0) return made;
    const Beamed& shorter = at(grown.joined);
    if (shorter.best_before(token).score + frame[token] > made.best_token.score)
      made.best_token = longer_path(shorter, token, frame[token]);
    return made;
  }

  const CtcDecoderOptions& options_;
  std::vector<Beamed> beam_;  // the best first
  std::vector<Grown> grown_;
  int64_t frames_ = 0;
};

}  // namespace

std::unique_ptr<CtcDecoder::Search> make_prefix_search(const CtcDecoderOptions& options) {
  return std::make_unique<PrefixSearch>(options);
}

}  // namespace quatrain::models
