#include "quatrain/data/text_pairs.h"

#include <algorithm>
#include <optional>

#include "data/readers.h"
#include "data/split_files.h"
#include "data/text_pair_readers.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct Format {
  Reader reader;
  std::vector<std::string> folders, files;  // where to look, and what for, below the folder
  Tokenizer tokenizer;
  void (*read)(const TextPairFiles&, const TextPairReading&);  // null: generated
  bool ranked = false;
  bool apart = false;  // each set has one file, SET.tsv, and can be read without the others
};

std::vector<std::string> answer_files(const std::vector<std::string>& sets) {
  std::vector<std::string> files;
  for (const auto& set : sets)
    for (const char* name : {"a.toks", "b.toks", "sim.txt", "id.txt"}) files.push_back(set + "/" + name);
  return files;
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {{"entailment", "entailment in generated sentences", false}, {}, {}, Tokenizer::whitespace, nullptr},
      {{"snli",
        "Stanford Natural Language Inference: trained on a part of its dev set, its first 1,024 pairs and "
        "counterfactual ones (snli_dev.tsv, snli_test.tsv, snli_train_1024.tsv, cad/all_combined)",
        true},
       {"", "nli", "nli/nli"},
       {"snli_dev.tsv", "snli_test.tsv", "snli_train_1024.tsv", "cad/all_combined/train.tsv",
        "cad/all_combined/dev.tsv"},
       Tokenizer::simple,
       read_snli},
      {{"sick", "SICK's entailment (SICK_train.txt, SICK_trial.txt, SICK_test_annotated.txt)", true},
       {"", "nli", "nli/nli"},
       {"SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"},
       Tokenizer::simple,
       read_sick},
      {{"wikiqa", "WikiQA's answers to questions (train, dev, test: a.toks, b.toks, sim.txt, id.txt)", true},
       {"", "WikiQA", "answer_sel/WikiQA", "answer_sel/answer_sel/WikiQA"},
       answer_files({"train", "dev", "test"}),
       Tokenizer::lowercase,
       read_wikiqa,
       true},
      {{"trecqa", "TrecQA's answers, the clean sets (train, clean-dev, clean-test: files as of wikiqa)",
        true},
       {"", "TrecQA", "answer_sel/TrecQA", "answer_sel/answer_sel/TrecQA"},
       answer_files({"train", "clean-dev", "clean-test"}),
       Tokenizer::lowercase,
       read_trecqa,
       true},
      {{"msrp", "Microsoft's paraphrases (msr-para-train.tsv, msr-para-val.tsv, msr-para-test.tsv)", true},
       {"", "para", "paraphrase/para"},
       {"msr-para-train.tsv", "msr-para-val.tsv", "msr-para-test.tsv"},
       Tokenizer::simple,
       read_msrp},
      {{"twitter_url", "paraphrases of Twitter, split 70/10/20 (Twitter_URL_Corpus_test.txt)", true},
       {"", "para", "paraphrase/para"},
       {"Twitter_URL_Corpus_test.txt"},
       Tokenizer::simple,
       read_twitter_url},
      {{"tsv", "your pairs (train.tsv, dev.tsv, test.tsv: label, tab, text, tab, text)", true},
       {""},
       {"train.tsv", "dev.tsv", "test.tsv"},
       Tokenizer::simple,
       read_text_pair_tsv,
       false,
       true},
  };
  return all;
}

const Format& find_format(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& format : formats()) {
    known.emplace_back(format.reader.name);
    if (name == format.reader.name) return format;
  }
  TORCH_CHECK(false, "data: the reader must be one of ", join(known), ", got ", quote(name));
}

// Nothing where it is unknown.
std::optional<int64_t> number_of(const WrittenLabels& labels, std::string_view label) {
  if (labels.empty()) return 0;
  for (const auto& [name, number] : labels)
    if (name == label) return number;
  return {};
}

std::string shown(const WrittenLabels& labels) {
  std::vector<std::string> names;
  for (const auto& label : labels) names.push_back(label.first);
  return shorten(join(names));
}

}  // namespace

const std::vector<Reader>& text_pair_readers() {
  static const std::vector<Reader> all = [] {
    std::vector<Reader> list;
    for (const auto& format : formats()) list.push_back(format.reader);
    return list;
  }();
  return all;
}

bool reads_ranked(const std::string& reader) {
  return find_format(reader).ranked;
}

std::vector<fs::path> text_pair_files(const TextPairSource& source) {
  const Format& format = find_format(source.reader);
  std::vector<fs::path> files;
  if (!format.read) return files;
  std::vector<std::string> names = format.files;
  if (format.apart && !source.only.empty()) names = {needed_set(source.only, "pairs") + ".tsv"};
  const fs::path here = find_folder(source.reader, source.folder, format.folders, names);
  for (const auto& name : names) files.push_back(here / name);
  return files;
}

TextPairSplits load_text_pairs(const TextPairSource& source) {
  const Format& format = find_format(source.reader);
  TextPairSplits splits;
  if (format.read) {
    splits.tokenizer = source.tokenizer.value_or(format.tokenizer);
    const auto bad = std::make_shared<BadExamples>();
    splits.ranked = format.ranked;
    if (format.apart) splits.labels = source.labels;
    format.read(text_pair_files(source), {splits, bad, source.skip_bad});
    splits.bad = *bad;
  } else {
    splits = generate_entailment(source.entailment);
    if (source.tokenizer) splits.tokenizer = *source.tokenizer;
  }
  return splits;
}

void for_each_pair(
    const fs::path& path, const PairColumns& format, const WrittenLabels& labels, const BadPairRule& rule,
    const std::function<void(TextPair, const std::vector<std::string_view>&, const std::string&)>& take) {
  LineFile file(path);
  PairGate gate(rule);
  for (std::string_view line; file.next(line);) {
    if (format.blank_lines && trimmed(line).empty()) continue;
    if (!gate.fits(line, file) || !gate.is_text(line, file)) continue;
    auto fields = columns(line);
    if (fields.size() != format.names.size()) {
      gate.refuse("a line has another number of columns",
                  "a line must have " + std::to_string(format.names.size()) + " columns (" +
                      join(format.names) + ") separated by tabs, got " + std::to_string(fields.size()) +
                      " in " + quote(line),
                  file);
      continue;
    }
    fields[format.label] = trimmed(fields[format.label]);
    if (file.number() == 1 && !format.header.empty()) {
      const bool named = is_header(fields[format.label], format.header);
      TORCH_CHECK(named || format.may_lack_header, file.place(), ": the first line must name the columns (",
                  join(format.names), "), got ", quote(line), "; copy the file again");
      if (named) continue;
    }
    if (!gate.has_text(fields[format.label], "label", file)) continue;
    const auto label = number_of(labels, fields[format.label]);
    if (!label) {
      gate.refuse("the label is unknown",
                  "the label must be one of " + shown(labels) + ", got " + quote(fields[format.label]), file);
      continue;
    }
    if (*label < 0) {
      rule.counted->add(rule.set, "people do not agree on a label", file.place());
      continue;
    }
    if (!gate.has_word(fields[format.first], "first text", file) ||
        !gate.has_word(fields[format.second], "second text", file))
      continue;
    TextPair pair;
    pair.first = trimmed(fields[format.first]);
    pair.second = trimmed(fields[format.second]);
    pair.label = *label;
    take(std::move(pair), fields, file.place());
  }
}

void require_pairs(const std::vector<TextPair>& pairs, const fs::path& file) {
  TORCH_CHECK(!pairs.empty(), "data: ", file.string(), " gives no pair to the set that is made of it");
}

std::string unordered(const TextPair& pair) {
  return std::min(pair.first, pair.second) + '\n' + std::max(pair.first, pair.second);
}

std::vector<KeyedPair> take_out(std::vector<KeyedPair>& pairs, int64_t count) {
  std::vector<Example> examples;
  for (size_t i = 0; i < pairs.size(); ++i) examples.push_back({pairs[i].key, static_cast<int64_t>(i)});
  const double share = static_cast<double>(count) / static_cast<double>(std::max<size_t>(pairs.size(), 1));
  const Parts parts = split_by_text(std::move(examples), share, 0);
  const auto moved = [&](const std::vector<Example>& part) {
    std::vector<KeyedPair> all;
    for (const auto& example : part) all.push_back(std::move(pairs[static_cast<size_t>(example.label)]));
    return all;
  };
  std::vector<KeyedPair> taken = moved(parts.dev);
  pairs = moved(parts.train);
  return taken;
}

std::vector<TextPair> pairs_of(std::vector<KeyedPair> keyed) {
  std::vector<TextPair> pairs;
  for (auto& one : keyed) pairs.push_back(std::move(one.pair));
  return pairs;
}

}  // namespace quatrain::data
