#include "quatrain/data/line_pairs.h"

#include <c10/util/Exception.h>

#include "support/enum_names.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

constexpr EnumNames<TextForm, 3> kTextFormNames{
    {{TextForm::raw, "raw"}, {TextForm::tokenised, "tokenised"}, {TextForm::bpe, "bpe"}}};

}  // namespace

const char* name(TextForm form) {
  return name_of(kTextFormNames, form);
}
TextForm parse_text_form(std::string_view text) {
  return parse_name(kTextFormNames, "text:", text);
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

LinePairReader::~LinePairReader() = default;

}  // namespace quatrain::data
