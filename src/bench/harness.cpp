#include "bench/harness.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>

#include "bench/pass.h"
#include "bench/peak_memory.h"
#include "quatrain/ops.h"
#include "support/numbers.h"

namespace quatrain::bench {
namespace {

using Peaks = std::map<std::string, int64_t>;

// A first call of each, for what it keeps; then all in turns.
Found figures_of(const std::vector<Candidate>& candidates, const Peaks& peaks, const TimingOptions& timing) {
  Found found;
  std::vector<Call> calls;
  for (const auto& candidate : candidates) {
    Figures& figures = found[candidate.name];
    const int64_t before = ops::prepared_size().bytes;
    candidate.call();
    figures.prepared_bytes = std::max<int64_t>(0, ops::prepared_size().bytes - before);
    figures.parameters = candidate.parameters;
    if (const auto peak = peaks.find(candidate.name); peak != peaks.end()) figures.peak_bytes = peak->second;
    calls.push_back(candidate.call);
  }
  const auto times = interleaved(calls, timing);
  for (size_t i = 0; i < times.size(); ++i) {
    const auto parts = static_cast<double>(candidates[i].parts);
    found[candidates[i].name].time = {times[i].median / parts, times[i].low / parts, times[i].high / parts};
  }
  return found;
}

}  // namespace

Field field(const std::string& key, const std::string& value) {
  return {.key = key, .value = value, .title = key, .text = value, .left = true};
}

Field field(const std::string& key, int64_t value) {
  return {.key = key, .value = value, .title = key, .text = std::to_string(value)};
}

Field hidden(const std::string& key, decltype(Field::value) value) {
  return {.key = key, .value = std::move(value)};
}

Field column(const std::string& title, const std::string& text, bool left) {
  return {.title = title, .text = text, .left = left};
}

Field ratio_to(const Found& found, const std::string& candidate, const std::string& title) {
  const auto other = found.find(candidate);
  if (other == found.end()) return column("to " + title, "-");
  const double ratio = found.at("ours").time.median / other->second.time.median;
  return {.key = "ratio_" + candidate, .value = ratio, .title = "to " + title, .text = fixed(ratio, 2)};
}

Field share_column(const std::string& title, double ours, double real) {
  return real > 0 ? Field{.title = title, .text = fixed(ours / real, 2), .share = ours / real}
                  : column(title, "-");
}

std::string Row::asked_for(const std::string& key) const {
  for (const auto& one : asked)
    if (one.key == key) {
      if (const auto* number = std::get_if<int64_t>(&one.value)) return std::to_string(*number);
      return std::get<std::string>(one.value);
    }
  throw std::logic_error("bench: a row has no field '" + key + "'");
}

void empty_caches() {
  static const at::Tensor other = at::zeros({int64_t{1} << 25});  // 128 MB
  other.add_(1);
}

void measure(const Subject& subject, std::vector<Row>& rows, bool with_memory, const Watch& watch) {
  size_t steps = subject.cases.size(), step = 0;
  if (with_memory)
    for (const auto& one : subject.cases) steps += one.memory.size();
  std::vector<Peaks> peaks(subject.cases.size());
  for (size_t i = 0; with_memory && i < subject.cases.size(); ++i) {
    const Threads threads(subject.cases[i].threads);
    for (const auto& [name, make] : subject.cases[i].memory) {
      watch.step(step++, steps);
      peaks[i][name] = peak_memory(make);
    }
  }
  TimingOptions timing = subject.timing;
  timing.between = watch.round;
  for (size_t i = 0; i < subject.cases.size(); ++i) {
    watch.step(step++, steps);
    const Case& one = subject.cases[i];
    timing.before = one.before;
    const Threads threads(one.threads);
    const Contest contest = one.make();
    const Found found = figures_of(contest.candidates, peaks[i], timing);
    for (const auto& contender : contest.contenders)
      rows.push_back({.group = i,
                      .threads = one.threads,
                      .training = one.training,
                      .asked = contender.asked,
                      .ours = found.at(contender.ours),
                      .real = found.at(contender.real),
                      .more = contender.more(found)});
  }
}

}  // namespace quatrain::bench
