#include "tasks/speech/classes.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "quatrain/data/phones.h"
#include "support/atomic_file.h"
#include "support/characters.h"
#include "support/text.h"

namespace quatrain::tasks {
namespace {

// Characters as UTF-8 has them.
std::vector<std::string> characters_of(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const auto& word : words) {
    if (!all.empty()) all.emplace_back(SpeechClasses::kSpace);
    for (const auto& character : characters(word, "speech")) all.emplace_back(character.bytes);
  }
  return all;
}

std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const auto& token : tokens) text += (text.empty() ? "" : " ") + token;
  return text;
}

std::vector<std::string> phones_of(const data::Utterance& utterance) {
  std::vector<int64_t> phones;
  for (const auto& segment : utterance.phones) phones.push_back(data::timit_phone(segment.phone));
  std::vector<std::string> names;
  for (const int64_t phone : data::fold_phones(phones))
    names.push_back(data::folded_phones()[static_cast<size_t>(phone)]);
  return names;
}

}  // namespace

SpeechClasses::SpeechClasses(const SpeechTaskOptions& options, const std::vector<data::Utterance>& utterances,
                             const std::map<int32_t, std::string>& names) {
  if (options.objective == Objective::frames && options.is_timit()) {
    for (const auto& phone : data::timit_phones()) add(phone);
    return;
  }
  if (options.objective == Objective::frames) {
    constexpr int32_t kMost = 1 << 14;  // Viterbi's search counts each pair of them
    int32_t last = 0;
    for (const auto& utterance : utterances)
      for (const int32_t label : utterance.labels) {
        TORCH_CHECK(
            label < kMost, "speech: the alignment of ", utterance.id, " has the class ", label,
            ", but at most ", kMost,
            " can be told apart; if these are transition ids, Kaldi's ali-to-pdf makes classes of them");
        last = std::max(last, label);
      }
    for (int32_t i = 0; i <= last; ++i) {
      const auto named = names.find(i);
      add(named == names.end() ? std::to_string(i) : named->second);
    }
    return;
  }
  std::set<std::string> all;
  for (const auto& utterance : utterances)
    for (const auto& token : tokens_of(options, utterance)) all.insert(token);
  if (options.objective == Objective::ctc) {
    TORCH_CHECK(!all.contains(kBlankName), "speech: the texts have the word ", kBlankName,
                ", as ctc calls what is no word; write it in another way");
    add(kBlankName);
  }
  for (const auto& token : all) add(token);
}

void SpeechClasses::add(std::string name) {
  ids_.try_emplace(name, size());
  names_.push_back(std::move(name));
}

bool SpeechClasses::are_named() const {
  for (int64_t i = 0; i < size(); ++i)
    if (name(i) != std::to_string(i)) return true;
  return false;
}

std::vector<std::string> SpeechClasses::phones_of_alignment(const data::Utterance& utterance) const {
  std::vector<std::string> phones;
  int32_t before = -1;
  for (const int32_t label : utterance.labels) {
    if (label != before) phones.push_back(label < size() ? name(label) : std::to_string(label));
    before = label;
  }
  return phones;
}

std::vector<std::string> SpeechClasses::tokens_of(const SpeechTaskOptions& options,
                                                  const data::Utterance& utterance) const {
  if (options.objective == Objective::utterance) return {joined(utterance.tokens)};
  if (options.objective == Objective::frames) {
    if (options.is_timit()) return phones_of(utterance);
    return options.classes_named ? phones_of_alignment(utterance) : std::vector<std::string>{};
  }
  if (options.units == Units::phones) return phones_of(utterance);
  return options.units == Units::characters ? characters_of(utterance.tokens) : utterance.tokens;
}

std::string SpeechClasses::scored(const SpeechTaskOptions& options, const std::string& name) {
  if (options.objective != Objective::frames || !options.is_timit()) return name;
  const int64_t folded = data::phone_folding()[static_cast<size_t>(data::timit_phone(name))];
  return folded < 0 ? "" : data::folded_phones()[static_cast<size_t>(folded)];
}

int64_t SpeechClasses::id(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? -1 : found->second;
}

void SpeechClasses::save(const std::filesystem::path& folder) const {
  std::string text;
  for (const auto& name : names_) text += name + "\n";
  write_text(folder / kFile, text);
}

SpeechClasses SpeechClasses::load(const std::filesystem::path& folder) {
  SpeechClasses classes;
  std::ifstream file = open_named(folder / kFile);
  for (std::string line; std::getline(file, line);) classes.add(line);
  return classes;
}

std::vector<int64_t> frame_classes(const SpeechTaskOptions& options, const data::Utterance& utterance,
                                   int64_t frames) {
  if (options.is_timit()) {
    // Phones have their places at the recording's own rate, frames at that of the filter bank.
    const auto place = [&](int64_t samples) {
      return static_cast<double>(samples * utterance.rate) / static_cast<double>(options.bank.rate);
    };
    const int64_t shift = options.bank.shift_samples();
    const int64_t centre = (options.bank.snip_edges ? options.bank.length_samples() : shift) / 2;
    return data::phone_labels(utterance, frames, place(shift), place(centre));
  }
  const char* const other_framing = options.source.stored_features ? ""
                                    : options.bank.snip_edges
                                        ? "; frames up to the edges are features.snip_edges = false"
                                        : "; Kaldi's own framing is features.snip_edges = true";
  TORCH_CHECK(static_cast<int64_t>(utterance.labels.size()) == frames,
              "its alignment must have a label for each of its ", frames, " frames, got ",
              utterance.labels.size(), other_framing);
  return {utterance.labels.begin(), utterance.labels.end()};
}

std::string text_of(const SpeechTaskOptions& options, const std::vector<std::string>& tokens) {
  if (!options.of_characters()) return joined(tokens);
  std::string text;
  for (const auto& token : tokens) text += token == SpeechClasses::kSpace ? " " : token;
  return text;
}

}  // namespace quatrain::tasks
