#include "quatrain/data/phones.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "support/text.h"

namespace quatrain::data {
namespace {

struct Phone {
  const char *name, *folded;  // null: deleted
};

constexpr Phone kPhones[] = {
    {"aa", "aa"},   {"ae", "ae"},   {"ah", "ah"},   {"ao", "aa"},   {"aw", "aw"},   {"ax", "ah"},
    {"ax-h", "ah"}, {"axr", "er"},  {"ay", "ay"},   {"b", "b"},     {"bcl", "sil"}, {"ch", "ch"},
    {"d", "d"},     {"dcl", "sil"}, {"dh", "dh"},   {"dx", "dx"},   {"eh", "eh"},   {"el", "l"},
    {"em", "m"},    {"en", "n"},    {"eng", "ng"},  {"epi", "sil"}, {"er", "er"},   {"ey", "ey"},
    {"f", "f"},     {"g", "g"},     {"gcl", "sil"}, {"h#", "sil"},  {"hh", "hh"},   {"hv", "hh"},
    {"ih", "ih"},   {"ix", "ih"},   {"iy", "iy"},   {"jh", "jh"},   {"k", "k"},     {"kcl", "sil"},
    {"l", "l"},     {"m", "m"},     {"n", "n"},     {"ng", "ng"},   {"nx", "n"},    {"ow", "ow"},
    {"oy", "oy"},   {"p", "p"},     {"pau", "sil"}, {"pcl", "sil"}, {"q", nullptr}, {"r", "r"},
    {"s", "s"},     {"sh", "sh"},   {"t", "t"},     {"tcl", "sil"}, {"th", "th"},   {"uh", "uh"},
    {"uw", "uw"},   {"ux", "uw"},   {"v", "v"},     {"w", "w"},     {"y", "y"},     {"z", "z"},
    {"zh", "sh"},
};

}  // namespace

const std::vector<std::string>& timit_phones() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const auto& phone : kPhones) names.emplace_back(phone.name);
    return names;
  }();
  return all;
}

const std::vector<std::string>& folded_phones() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const auto& phone : kPhones)
      if (phone.folded) names.emplace_back(phone.folded);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }();
  return all;
}

int64_t timit_phone(std::string_view name) {
  const auto& all = timit_phones();
  const auto found = std::lower_bound(all.begin(), all.end(), name);
  TORCH_CHECK(found != all.end() && *found == name, "timit_phone: the phone must be one of TIMIT's 61 (",
              join(all), "), got ", quote(name));
  return found - all.begin();
}

const std::vector<int64_t>& phone_folding() {
  static const std::vector<int64_t> folding = [] {
    const auto& folded = folded_phones();
    std::vector<int64_t> all;
    for (const auto& phone : kPhones)
      all.push_back(
          phone.folded ? std::lower_bound(folded.begin(), folded.end(), phone.folded) - folded.begin() : -1);
    return all;
  }();
  return folding;
}

std::vector<int64_t> fold_phones(const std::vector<int64_t>& phones) {
  const auto& folding = phone_folding();
  std::vector<int64_t> folded;
  for (const int64_t phone : phones) {
    TORCH_CHECK(phone >= 0 && phone < std::ssize(folding), "fold_phones: a phone must be from 0 to ",
                folding.size() - 1, ", got ", phone);
    const int64_t to = folding[static_cast<size_t>(phone)];
    if (to >= 0) folded.push_back(to);
  }
  return folded;
}

std::vector<int64_t> phone_labels(const Utterance& utterance, int64_t frames, double shift, double centre) {
  TORCH_CHECK(frames >= 0 && shift >= 1 && centre >= 0,
              "phone_labels: frames and centre must be at least 0 and shift at least 1, got ", frames, ", ",
              centre, " and ", shift);
  TORCH_CHECK(!utterance.phones.empty(), "phone_labels: the utterance ", quote(utterance.id),
              " has no phones; only the timit reader knows them");
  std::vector<int64_t> labels(static_cast<size_t>(frames), timit_phone(kTimitSilence));
  for (const auto& [phone, begin, end] : utterance.phones) {
    const int64_t label = timit_phone(phone);
    // The first frame whose centre is not before the sample.
    const auto first_from = [&](int64_t sample) {
      const double t = std::ceil((static_cast<double>(sample) - centre) / shift);
      return static_cast<int64_t>(std::clamp(t, 0.0, static_cast<double>(frames)));
    };
    for (int64_t t = first_from(begin); t < first_from(end); ++t) labels[static_cast<size_t>(t)] = label;
  }
  return labels;
}

}  // namespace quatrain::data
