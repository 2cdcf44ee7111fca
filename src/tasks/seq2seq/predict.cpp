#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "quatrain/data/line_pair_loader.h"
#include "quatrain/data/tokenizer.h"
#include "quatrain/train/session.h"
#include "support/numbers.h"
#include "support/stopwatch.h"
#include "support/text.h"
#include "tasks/seq2seq/model.h"

namespace quatrain::tasks {
namespace {

using data::Pieces;

// "0-0 1-1": places of a source's tokens and of a target's.
std::string pairs_of(const std::vector<int64_t>& places) {
  std::string text;
  for (size_t i = 0; i < places.size(); ++i)
    text += (i == 0 ? "" : " ") + std::to_string(places[i]) + "-" + std::to_string(i);
  return text;
}

// A beginning as an answer has it: without a space that its pieces do not have, and in one line.
std::string beginning_of(std::string text, const Pieces& pieces) {
  if (pieces.kind() != data::PieceKind::characters) text.resize(text.find_last_not_of(kSpace) + 1);
  return data::in_one_line(std::move(text));
}

// Of such a line nothing was learned.
bool has_word(const std::string& text) {
  return data::word_problem(text, data::Tokenizer::whitespace).empty();
}

constexpr const char* kNotFinite = "the model's scores are not finite";

constexpr int kDigits = 4;  // of scores

}  // namespace

// Lines as decode.reads has them, without those whose sources are empty.
struct Seq2SeqModel::Asked {
  size_t count = 0;                                // of all lines
  int64_t cut = 0;                                 // of the sources
  std::vector<size_t> places = {};                 // among them
  std::vector<std::string> lines = {};             // the sources as text
  std::vector<Tokens> sources = {}, targets = {};  // targets: given ones, or their beginnings
  std::vector<Beginning> beginnings = {};          // where those are given
};

int64_t Seq2SeqModel::most_places() const {
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const auto& network : ensemble().models)
    if (network->options.positions() == models::Positions::learned)
      most = std::min(most, network->options.max_length() - 1);
  return most;
}

int64_t Seq2SeqModel::longest_source() const {
  const int64_t most = most_places();
  return own().limits.max_source > 0 ? std::min(most, own().limits.max_source) : most;
}

std::pair<int64_t, const char*> Seq2SeqModel::longest_given() const {
  const auto& limits = own().limits;
  std::pair most(own().translation.longest, "decode.longest");
  // Of a pair nothing is searched for: what could be learned can be scored.
  if (own().reads == Reads::pair && limits.max_target > most.first)
    most = {limits.max_target, "task.max_target"};
  if (own().reads == Reads::pair && limits.max_target == 0) most.first = std::numeric_limits<int64_t>::max();
  const int64_t places = most_places();
  return places < most.first ? std::pair(places, "model.max_positions") : most;
}

Seq2SeqModel::Source Seq2SeqModel::encode(const std::string& line) const {
  const auto ids = pieces.source.encode(line);
  const auto count = static_cast<int64_t>(ids.size()), most = std::min(count, longest_source());
  Source source{{ids.begin(), ids.begin() + most}, count == 0, most < count};
  source.tokens.push_back(Pieces::kEnd);
  return source;
}

std::vector<at::Tensor> Seq2SeqModel::inputs(const std::vector<std::string>& lines) {
  std::vector<std::vector<int32_t>> sources, targets;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t tab = std::min(lines[i].find('\t'), lines[i].size());
    const std::string text = lines[i].substr(0, tab);
    if (tab < lines[i].size() && lines[i].find('\t', tab + 1) != std::string::npos)
      throw LineError(i, "a line must be a source, or a source, a tab and a target, this one has more tabs");
    const Source source = encode(text);
    if (source.empty || !has_word(text)) throw LineError(i, "the source is empty");
    sources.emplace_back(source.tokens.begin(), source.tokens.end() - 1);  // the mark is put there again
    targets.push_back(
        pieces.target.encode(std::string_view(lines[i]).substr(std::min(tab + 1, lines[i].size()))));
    if (std::ssize(targets.back()) > most_places())
      throw LineError(i, "a target may have at most " + counted(most_places(), "token") +
                             " (model.max_positions), this one has " + grouped(std::ssize(targets.back())));
  }
  const auto batch = data::collate_line_pairs(sources, targets).to(train::device_of(*network));
  return {batch.source, batch.target, batch.source_padding, batch.target_padding};
}

std::vector<std::string> Seq2SeqModel::texts(const std::vector<std::vector<int64_t>>& numbers) const {
  std::vector<std::string> all;
  for (const auto& ids : numbers) all.push_back(whole_words(pieces.target.decode(ids)));
  return all;
}

std::vector<std::vector<models::Hypothesis>> Seq2SeqModel::translate(
    const std::vector<Tokens>& sources, const models::TranslationOptions& asked,
    const std::vector<Tokens>& prefixes, const std::function<void()>& after_batch) {
  models::TranslationOptions options = asked;
  options.search.banned = banned_;
  options.shortlist = shortlist;
  options.longest = std::min(options.longest, most_places());
  return models::translate(ensemble(), sources, options, prefixes, after_batch);
}

std::string Seq2SeqModel::whole_words(std::string text) const {
  return data::whole_words(std::move(text), own().source.text.value_or(data::TextForm::raw));
}

std::vector<Seq2SeqModel::Written> Seq2SeqModel::write(const std::vector<std::string>& lines,
                                                       const std::vector<Tokens>& sources,
                                                       const std::vector<Tokens>& targets,
                                                       const std::vector<Beginning>& beginnings) const {
  std::vector<Written> all(targets.size());
  if (own().alignments || own().replace_unknown) {
    const auto places = models::align_targets(ensemble(), sources, targets, own().translation);
    for (size_t i = 0; i < all.size(); ++i) all[i].places = places[i];
  }
  const bool of_words = data::is_of_words(pieces.target.kind());
  for (size_t i = 0; i < all.size(); ++i) {
    const Beginning beginning = beginnings.empty() ? Beginning{} : beginnings[i];
    const Tokens rest(targets[i].begin() + static_cast<std::ptrdiff_t>(beginning.tokens), targets[i].end());
    std::string text;
    if (own().replace_unknown && std::find(rest.begin(), rest.end(), Pieces::kUnknown) != rest.end()) {
      const auto words = pieces.source.cut(lines[i]);
      for (size_t j = 0; j < rest.size(); ++j)
        text += (j == 0 ? "" : " ") + (rest[j] == Pieces::kUnknown
                                           ? words[static_cast<size_t>(all[i].places[beginning.tokens + j])]
                                           : pieces.target.piece(rest[j]));
    } else {
      text = beginning.tokens == 0 ? pieces.target.decode(rest) : pieces.target.decode_following(rest);
    }
    const bool apart = of_words && !beginning.text.empty() && !text.empty();
    all[i].text = whole_words(beginning.text + (apart ? " " : "") + text);
  }
  return all;
}

Seq2SeqModel::Asked Seq2SeqModel::read(const std::vector<std::string>& lines) {
  Asked asked;
  asked.count = lines.size();
  const Reads reads = own().reads;
  const auto [most, key] = longest_given();
  const std::string second = reads == Reads::pair ? "target" : "beginning";
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t tab = reads == Reads::source ? lines[i].size() : lines[i].find('\t');
    if (tab == std::string::npos && !has_word(lines[i])) continue;  // an empty line has an empty answer
    if (tab == std::string::npos)
      throw LineError(i, "a line must have a source, a tab and a " + second +
                             " (decode.reads = " + name(reads) + "), this one has no tab");
    if (tab < lines[i].size() && lines[i].find('\t', tab + 1) != std::string::npos)
      throw LineError(
          i, "a line must have one tab (decode.reads = " + std::string(name(reads)) + "), this one has more");
    std::string text = lines[i].substr(0, tab);
    Source source = encode(text);
    Tokens target;
    if (reads != Reads::source) {
      const auto ids = pieces.target.encode(std::string_view(lines[i]).substr(tab + 1));
      target.assign(ids.begin(), ids.end());
    }
    if (static_cast<int64_t>(target.size()) > most)
      throw LineError(i, "a " + second + " may have at most " + counted(most, "token") + " (" + key +
                             "), this one has " + grouped(static_cast<int64_t>(target.size())));
    if (source.empty || !has_word(text)) continue;
    asked.cut += source.cut;
    asked.places.push_back(i);
    asked.lines.push_back(std::move(text));
    asked.sources.push_back(std::move(source.tokens));
    if (reads == Reads::beginning)
      asked.beginnings.push_back({beginning_of(lines[i].substr(tab + 1), pieces.target), target.size()});
    asked.targets.push_back(std::move(target));
  }
  return asked;
}

std::vector<std::string> Seq2SeqModel::search(const Asked& asked) {
  const auto found = [&] {
    try {
      return translate(asked.sources, own().translation, asked.targets);
    } catch (const models::NotFiniteError& error) {
      throw LineError(asked.places[error.sentence()], kNotFinite);
    }
  }();
  std::vector<std::string> lines;  // of each hypothesis, as all that follows
  std::vector<Tokens> sources, targets;
  std::vector<Beginning> beginnings;
  for (size_t i = 0; i < found.size(); ++i) {
    tokens_ += static_cast<int64_t>(found[i].front().tokens.size()) + 1;
    for (const auto& hypothesis : found[i]) {
      lines.push_back(asked.lines[i]);
      sources.push_back(asked.sources[i]);
      targets.push_back(hypothesis.tokens);
      if (!asked.beginnings.empty()) beginnings.push_back(asked.beginnings[i]);
    }
  }
  const auto written = write(lines, sources, targets, beginnings);
  std::vector<std::string> answers(asked.count);
  auto next = written.begin();
  for (size_t i = 0; i < found.size(); ++i) {
    std::string& answer = answers[asked.places[i]];
    for (const auto& hypothesis : found[i]) {
      if (&hypothesis != &found[i].front()) answer += '\t';
      if (own().scores) answer += fixed(hypothesis.score, kDigits) + "\t";
      answer += next->text;
      if (own().alignments) answer += "\t" + pairs_of(next->places);
      ++next;
    }
  }
  return answers;
}

std::vector<std::string> Seq2SeqModel::score(const Asked& asked) {
  const auto scores = models::score_targets(ensemble(), asked.sources, asked.targets, own().translation);
  std::vector<Tokens> places;
  if (own().alignments)
    places = models::align_targets(ensemble(), asked.sources, asked.targets, own().translation);
  std::vector<std::string> answers(asked.count);
  for (size_t i = 0; i < scores.size(); ++i) {
    const double sum = std::accumulate(scores[i].begin(), scores[i].end(), 0.0);
    if (!std::isfinite(sum)) throw LineError(asked.places[i], kNotFinite);
    std::string& answer = answers[asked.places[i]];
    answer = fixed(sum, kDigits) + "\t" + std::to_string(scores[i].size());
    if (own().alignments) answer += "\t" + pairs_of(places[i]);
    tokens_ += static_cast<int64_t>(scores[i].size());
  }
  return answers;
}

std::vector<std::string> Seq2SeqModel::predict(const std::vector<std::string>& lines) {
  const Stopwatch work;
  const Asked asked = read(lines);
  const auto answers = own().reads == Reads::pair ? score(asked) : search(asked);
  cut_ += asked.cut;
  seconds_ += work.seconds();
  return answers;
}

std::string Seq2SeqModel::summary() const {
  if (tokens_ == 0) return {};
  std::string text = counted(tokens_, "token") + (own().reads == Reads::pair ? " scored, " : " written, ") +
                     std::to_string(std::llround(static_cast<double>(tokens_) / seconds_)) + " a second";
  if (cut_ > 0)
    text += "; " + counted(cut_, "line") + " cut at " + std::to_string(longest_source()) + " tokens";
  return text;
}

}  // namespace quatrain::tasks
