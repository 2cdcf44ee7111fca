#include "quatrain/data/pairs.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>

#include "support/enum_names.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

constexpr EnumNames<TextForm, 3> kTextFormNames{
    {{TextForm::raw, "raw"}, {TextForm::tokenised, "tokenised"}, {TextForm::bpe, "bpe"}}};

}  // namespace

const char* name(TextForm form) {
  return find_name(kTextFormNames, form);
}
TextForm parse_text_form(std::string_view text) {
  const TextForm* form = find_value(kTextFormNames, text);
  TORCH_CHECK(form, "text: must be one of ", list_names(kTextFormNames), ", got ", quote(text));
  return *form;
}

std::string whole_words(std::string text, TextForm form) {
  if (form != TextForm::bpe) return text;
  constexpr std::string_view kGoesOn = "@@";
  const std::string between = std::string(kGoesOn) + " ";
  std::string whole;
  for (size_t at = 0, next; at < text.size(); at = next + between.size()) {
    next = std::min(text.find(between, at), text.size());
    whole.append(text, at, next - at);
  }
  if (whole.ends_with(kGoesOn))
    whole.resize(whole.size() - kGoesOn.size());  // of a text that was cut off there
  return whole;
}

PairReader::~PairReader() = default;

int64_t BadPairs::count() const {
  return std::accumulate(reasons.begin(), reasons.end(), int64_t{0},
                         [](int64_t sum, const Reason& reason) { return sum + reason.count; });
}

void BadPairs::add(std::string_view set, std::string_view reason, const std::string& place) {
  const auto known = std::find_if(reasons.begin(), reasons.end(), [&](const Reason& other) {
    return other.set == set && other.reason == reason;
  });
  if (known != reasons.end()) {
    ++known->count;
  } else {
    reasons.push_back({std::string(set), std::string(reason), place, 1});
  }
}

}  // namespace quatrain::data
