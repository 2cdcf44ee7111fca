#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "cli/error_cases.h"
#include "cli/program.h"

// Calls the program with every kind of bad input. docs/errors.md lists what it answers; this test compares
// the page with the answers, or writes it.
namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

constexpr const char* kOpening = R"(# Errors

This page lists what the program prints when its input is wrong. Each message is one sentence on the standard error, after
`quatrain: `. It names the file and the line, the rule, the value that was found and, where possible, what to do. The program
then writes no file, and prints nothing to the standard output; where `predict` reads names of files, the answer to a bad one
is an empty line, and a last sentence counts such answers. Exit code 2 means that the command or the recipe is wrong.
Exit code 1 means that a file named by them (data, word vectors, weights, a run) is wrong.

In these examples, `my.toml` is a recipe, `data` is a folder of data and `run` is a trained run. The test
`tests/cli/errors_test.cpp` runs each example and writes this page.
)";

constexpr const char* kUnanswered = "1 of 1 lines have no answer, they are empty lines among the answers\n";

std::string utf16(const std::string& text) {
  std::string wide = "\xFF\xFE";
  for (const char c : text) wide += {c, '\0'};
  return wide;
}

std::string numbers(std::initializer_list<int> values) {  // as bfloat16
  std::string bytes;
  for (const int value : values) {
    const auto number = static_cast<float>(value);
    bytes.append(reinterpret_cast<const char*>(&number) + 2, 2);
  }
  return bytes;
}

std::string tensors(const std::string& header, const std::string& data = "") {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
}

// A training file of the tsv format, whose third line is this.
Prepare third_line(const std::string& line) {
  return file("data/train.tsv", "good\ta fine film\nbad\ta dull film\n" + line + "\n");
}

const std::string kTrain = "train text --data data --out run2";
const std::string kRecipe = "train my.toml --data data --out run2";
const std::string kVectors = kTrain + " --set task.vectors=";
const std::string kSplit = "train text --data one.tsv --split 80/10/10 --out run2";
const std::string kTextPairs = "train entailment_generated --out new --set train.steps=1 --set task.data=";

std::vector<Section> sections() {
  const std::string latin1 = "good\tcaf\xE9";
  return {
      {"Commands and options",
       {{"an unknown command", "trian text", 2},
        {"an unknown option", "train text --ouput x", 2},
        {"no recipe is given", "train", 2},
        {"an unknown recipe", "train agreemnt", 2},
        {"a data folder that does not exist", "train text --data nowhere", 2},
        {"no data folder is given", "train text", 2},
        {"`--set` without a value", kTrain + " --set model.width", 2},
        {"`--set` without a table", kTrain + " --set width=64", 2},
        {"`--set` of an unknown key", kTrain + " --set model.widht=64", 2},
        {"`--set` of a key that would do nothing", kTrain + " --set train.momentum=0.9", 2},
        {"`--set` of words that a base run overrules", kTrain + " --weights run --set task.min_count=7", 2},
        {"a seed that is not a number", kTrain + " --seed x", 2},
        {"an unknown twin", kTrain + " --twin quaternoin", 2},
        {"`--resume` without naming a run", "train text --data data --resume", 2},
        {"`--resume` of a comparison", "train both --resume --data data", 2,
         [](const Workplace& place) { place.write("both/recipe.toml", place.read("run/last/recipe.toml")); }},
        {"`--from` a checkpoint that training cannot continue from", "train run --resume --from best", 2},
        {"`--out` already contains a run", "train text --data data --out run", 2},
        {"`--out` is a file", "train text --data data --out file", 1, file("file", "x")},
        {"`--out` is inside a file", "train text --data data --out file/run", 1, file("file", "x")},
        {"`--json` in a folder that does not exist", "evaluate run --json nowhere/figures.json"},
        {"`--json` is a folder", "evaluate run --json data"},
        {"a run that does not exist", "predict nowhere", 2},
        {"a folder that is not a run", "predict data", 2},
        {"`--set` of a key that a trained run cannot change", "predict run --set train.seed=2", 2},
        {"runs that cannot answer together", "predict run --with run", 2},
        {"a shortlist of a run that does not translate", "shortlist run", 2},
        {"averaging the latest checkpoints and the best", "average run --out mean --last 2 --best 2", 2},
        {"averaging into a folder that exists", "average run --out data", 2},
        {"`evaluate --out` already exists", "evaluate run --out data", 2},
        {"writing a run for a program that has no such models", "convert run out --to ctranslate2", 2},
        {"writing a run in an unknown format", "convert run out --to onnx", 2},
        {"neither an algebra nor a format to convert to", "convert run out", 2},
        {"converting a file that does not exist", "convert nowhere out.safetensors --algebra quaternion", 2},
        {"an unknown algebra", "convert run out --algebra quaternoin", 2},
        {"converting to a real model", "convert run out --algebra real", 2}}},
      {"Recipes",
       {{"a folder instead of a recipe", "train data", 2},
        {"a pipe instead of a file", kRecipe, 2, named_pipe("my.toml")},
        {"a device instead of a file", "train /dev/zero", 2},
        {"a file that is too large", kRecipe, 2, file("my.toml", std::string(2 << 20, '#'))},
        {"a file that is not TOML", kRecipe, 2, file("my.toml", "[model]\nwidth = = 64\n")},
        {"a binary file", kRecipe, 2,
         file("my.toml", std::string("\x7F"
                                     "ELF\x02\x01\0\0",
                                     8))},
        {"Latin-1", kRecipe, 2, file("my.toml", "[task]\nfolder = \"caf\xE9\"\n")},
        {"UTF-16", kRecipe, 2, file("my.toml", utf16("[model]\nwidth = 64\n"))},
        {"an unknown table", kRecipe, 2, file("my.toml", "[modle]\nwidth = 64\n")},
        {"an unknown key", kRecipe, 2, file("my.toml", "[model]\nwdith = 64\n")},
        {"a key in the wrong table", kRecipe, 2, file("my.toml", "[train]\nwidth = 64\n")},
        {"a key that another kind of task has", kRecipe, 2,
         file("my.toml", "[task]\nkind = \"regression\"\nvectors = \"v.txt\"\n")},
        {"a key twice", kRecipe, 2, file("my.toml", "[model]\nwidth = 64\nwidth = 32\n")},
        {"a table twice", kRecipe, 2, file("my.toml", "[model]\nwidth = 64\n[train]\n[model]\nheads = 2\n")},
        {"a string instead of a number", kRecipe, 2, file("my.toml", "[model]\nwidth = \"64\"\n")},
        {"a fraction instead of an integer", kRecipe, 2, file("my.toml", "[model]\nlayers = 1.5\n")},
        {"an unknown value", kRecipe, 2, file("my.toml", "[train]\noptimizer = \"adamm\"\n")},
        {"a negative rate", kRecipe, 2, file("my.toml", "[train]\nrate = -0.001\n")},
        {"a rate that is not a number", kRecipe, 2, file("my.toml", "[train]\nrate = nan\n")},
        {"an infinite rate", kRecipe, 2, file("my.toml", "[train]\nrate = inf\n")},
        {"an unknown device", kRecipe, 2, file("my.toml", "[train]\ndevice = \"gpu\"\n")},
        {"a dropout of 1", kRecipe, 2, file("my.toml", "[model]\ndropout = 1\n")},
        {"zero layers", kRecipe, 2, file("my.toml", "[model]\nlayers = 0\n")},
        {"a batch size of 0", kRecipe, 2, file("my.toml", "[train]\nbatch = 0\n")},
        {"neither steps nor epochs", kRecipe, 2, file("my.toml", "[train]\nsteps = 0\nepochs = 0\n")},
        {"a width that n does not divide", kRecipe, 2, file("my.toml", "[model]\nwidth = 126\nheads = 1\n")},
        {"a feed-forward width that n does not divide", kRecipe, 2,
         file("my.toml", "[model]\nfeed_forward = 510\n")},
        {"too many heads for the width", kRecipe, 2, file("my.toml", "[model]\nwidth = 64\nheads = 128\n")},
        {"n of 0", kRecipe, 2, file("my.toml", "[model]\nalgebra = \"phm(0)\"\n")},
        {"n above the limit", kRecipe, 2, file("my.toml", "[model]\nalgebra = \"phm(65)\"\n")},
        {"an unknown algebra", kRecipe, 2, file("my.toml", "[model]\nalgebra = \"quaternoin\"\n")},
        {"a missing parenthesis", kRecipe, 2, file("my.toml", "[model]\nalgebra = \"phm(4\"\n")},
        {"component-wise attention with a learned algebra", kRecipe, 2,
         file("my.toml", "[model]\nalgebra = \"phm(4)\"\nattention = \"componentwise\"\n")},
        {"a twin without a name", kRecipe, 2, file("my.toml", "[[twins]]\nalgebra = \"real\"\n")},
        {"two twins with the same name", kRecipe, 2,
         file("my.toml", "[[twins]]\nname = \"a\"\n[[twins]]\nname = \"a\"\n")},
        {"a twin that sets the data", kRecipe, 2,
         file("my.toml", "[[twins]]\nname = \"a\"\ntask.data = \"sst\"\n")},
        {"lists nested too deep", kRecipe, 2, file("my.toml", "a = " + std::string(100000, '['))},
        {"weights that do not exist", kTrain + " --weights nowhere", 2},
        {"weights of nowhere", kTrain + " --weights ''", 2},
        {"a run in the place of that it starts from", "train run --weights run --out run --overwrite", 2},
        {"weights of another model", kTrain + " --weights run --set model.width=64"},
        {"weights of a run of another kind", "train hamilton --out run2 --weights run", 2}}},
      {"Data",
       {{"a file is missing", kTrain, 1, no_file("data/dev.tsv")},
        {"all files are missing", "train text --data empty --out run2", 1, file("empty/else.txt", "x")},
        {"an empty file", kTrain, 1, file("data/train.tsv", "")},
        {"pairs of lines with one file alone", "train translation --data pairs --out run2", 1,
         file("pairs/train.de", "ein Mann\n")},
        {"a pair of lines without a word", "train translation --data pairs --out run2", 1,
         [](const Workplace& place) {
           place.write("pairs/train.de", "ein Mann\n\u00a0\n");
           place.write("pairs/train.en", "a man\na dog\n");
         }},
        {"a vocabulary of one's own that is no model",
         "train translation --data pairs --set vocabulary.file=pairs/train.de --out run2", 1,
         [](const Workplace& place) {
           place.write("pairs/train.de", "ein Mann\n");
           place.write("pairs/train.en", "a man\n");
         }},
        {"only blank lines", kTrain, 1, file("data/train.tsv", "\n\n")},
        {"a folder instead of a file", kTrain, 1,
         [](const Workplace& place) {
           fs::remove(place.path("data/train.tsv"));
           fs::create_directory(place.path("data/train.tsv"));
         }},
        {"a pipe instead of a file", kTrain, 1,
         [](const Workplace& place) {
           fs::remove(place.path("data/train.tsv"));
           named_pipe("data/train.tsv")(place);
         }},
        {"a binary file", kTrain, 1, third_line(std::string("good\t\0\x01", 7))},
        {"Latin-1", kTrain, 1, third_line(latin1)},
        {"UTF-16", kTrain, 1, file("data/train.tsv", utf16("good\ta fine film\n"))},
        {"a line of 100 MB", kTrain, 1, third_line("good\t" + std::string(100 << 20, 'x'))},
        {"a missing column", kTrain, 1, third_line("a film without a label")},
        {"one column too many", kTrain, 1, third_line("good\ta film\tof 1999")},
        {"an empty text", kTrain, 1, third_line("good\t ")},
        {"an empty label", kTrain, 1, third_line("\ta film")},
        {"only one label", kTrain, 1, file("data/train.tsv", "good\ta film\ngood\tanother film\n")},
        {"a label that the training set does not have", kTrain, 1, more("data/dev.tsv", "fine\ta film\n")},
        {"one file with too few texts for three sets", kSplit, 1,
         file("one.tsv", "good\ta fine film\nbad\ta dull film\n")},
        {"one file whose columns are swapped", kSplit, 1,
         file("one.tsv", "a fine film\tgood\na dull film\tbad\na lovely plot\tgood\na poor plot\tbad\n")},
        {"other texts than the run's", "train run --resume --data data --set train.steps=4", 1,
         more("data/test.tsv", "good\ta film\n")},
        {"sst: an unknown label", kTrain + " --set task.data=sst", 1,
         more("data/stsa.binary.dev", "2 a film\n")},
        {"sst: no text", kTrain + " --set task.data=sst", 1, more("data/stsa.binary.dev", "1 \n")},
        {"imdb: a missing column", kTrain + " --set task.data=imdb", 1, file("data/train.tsv", "1\t1\n")},
        {"imdb: an unknown label", kTrain + " --set task.data=imdb", 1,
         file("data/train.tsv", "1\tgood\ta film\n")},
        {"sva: a sentence is missing", kTrain + " --set task.data=sva", 1,
         more("data/subj_agr_filtered.gold", "5\tis\tare\t1\n")},
        {"sva: one sentence too many", kTrain + " --set task.data=sva", 1,
         more("data/subj_agr_filtered.text", "the key is here\n")},
        {"sva: a verb's position outside the sentence", kTrain + " --set task.data=sva", 1,
         edit("data/subj_agr_filtered.gold", [](const std::string& old) { return "99" + old.substr(1); })},
        {"sva: another word at the verb's position", kTrain + " --set task.data=sva", 1,
         edit("data/subj_agr_filtered.gold", [](const std::string& old) { return "3" + old.substr(1); })},
        {"all words are too rare", kTrain + " --set task.min_count=1000"}}},
      {"Pairs of texts",
       {{"a side that is empty", kTextPairs + "tsv --data entailed", 1,
         more("entailed/train.tsv", "yes\ta\t \n")},
        {"a side without a word", kTextPairs + "tsv --data entailed", 1,
         more("entailed/train.tsv", "yes\ta\t<br />\n")},
        {"a missing column", kTextPairs + "tsv --data entailed", 1, more("entailed/train.tsv", "yes\ta\n")},
        {"a label that the training set does not have", kTextPairs + "tsv --data entailed", 1,
         more("entailed/dev.tsv", "perhaps\ta\tb\n")},
        {"only one label", kTextPairs + "tsv --data entailed", 1, file("entailed/train.tsv", "yes\ta\tb\n")},
        {"files with different numbers of lines", kTextPairs + "wikiqa --data answers", 1,
         more("answers/dev/a.toks", "one more\n")},
        {"a relevance that is nan", kTextPairs + "wikiqa --data answers", 1,
         edit("answers/dev/sim.txt", [](const std::string& old) { return "nan" + old.substr(1); })},
        {"answers of which none is right", kTextPairs + "wikiqa --data answers", 1,
         edit("answers/train/sim.txt",
              [](std::string old) {
                std::replace(old.begin(), old.end(), '1', '0');
                return old;
              })},
        {"answers to select by of which none is right", kTextPairs + "wikiqa --data answers", 1,
         edit("answers/dev/sim.txt",
              [](std::string old) {
                std::replace(old.begin(), old.end(), '1', '0');
                return old;
              })},
        {"answers whose names do not tell the question", kTextPairs + "wikiqa --data answers", 1,
         edit("answers/dev/id.txt",
              [](const std::string& old) { return "1_1" + old.substr(old.find('\n')); })},
        {"a missing file", kTextPairs + "wikiqa --data answers", 1, no_file("answers/test/id.txt")},
        {"a first line that names no columns", kTextPairs + "sick --data entailed", 1,
         [](const Workplace& place) {
           for (const char* name : {"SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"})
             place.write(std::string("entailed/") + name, "1\ta\tb\t3\tNEUTRAL\n");
         }},
        {"negatives where nothing is ranked", kTextPairs + "tsv --data entailed --set task.negatives=2", 2},
        {"attention where an LSTM reads the texts",
         kTextPairs + "tsv --data entailed --set model.network=lstm --set model.attention=real", 2},
        {"a width that n does not divide", kTextPairs + "tsv --data entailed --set model.algebra='phm(7)'",
         2}}},
      {"Word vectors",
       {{"a file that does not exist", kVectors + "nowhere.bf16"},
        {"a folder instead of a file", kVectors + "data"},
        {"the list of words is missing", kVectors + "v.bf16", 1, file("v.bf16", numbers({1, 2}))},
        {"a list of words with another length", kVectors + "v.bf16", 1,
         [](const Workplace& place) {
           place.write("v.bf16", numbers({1, 2, 3, 4, 5}));
           place.write("v.vocab", "good\nfilm\n");
         }},
        {"a file without numbers", kVectors + "v.bf16", 1,
         [](const Workplace& place) {
           place.write("v.bf16", "");
           place.write("v.vocab", "good\nfilm\n");
         }},
        {"a bfloat16 that is not a number", kVectors + "v.bf16", 1,
         [](const Workplace& place) {
           place.write("v.bf16", numbers({1, 2}) + "\xC0\x7F\xC0\x7F");
           place.write("v.vocab", "good\nfilm\n");
         }},
        {"a line with too few numbers", kVectors + "v.txt", 1, file("v.txt", "good 1 2 3\nfilm 1 2\n")},
        {"a word instead of a number", kVectors + "v.txt", 1, file("v.txt", "good 1 2\nfilm 1 x\n")},
        {"a number that is nan", kVectors + "v.txt", 1, file("v.txt", "good 1 2\nfilm nan 2\n")},
        {"fewer lines than the first line promises", kVectors + "v.txt", 1,
         file("v.txt", "3 2\ngood 1 2\nfilm 1 2\n")},
        {"no word of the data has a vector", kVectors + "v.txt", 1, file("v.txt", "zebra 1 2\n")},
        {"an empty file", kVectors + "v.txt", 1, file("v.txt", "")}}},
      {"Runs",
       {{"a mean of one checkpoint", "average run --out mean", 1},
        {"a mean with a damaged checkpoint", "average run --out mean", 1,
         [](const Workplace& place) {
           fs::copy(place.path("run/last"), place.path("run/step-000002"));
           fs::remove(place.path("run/step-000002/training.json"));
         }},
        {"no evaluated checkpoint", "predict run", 1,
         [](const Workplace& place) { fs::remove_all(place.path("run/best")); }},
        {"weights that are cut off", "predict run", 1,
         edit("run/best/model.safetensors",
              [](const std::string& old) { return old.substr(0, old.size() / 2); })},
        {"a file is missing", "predict run", 1, no_file("run/best/vocabulary.txt")},
        {"a damaged checkpoint.json", "predict run", 1, file("run/best/checkpoint.json", "{")},
        {"an empty labels.txt", "predict run", 1, file("run/best/labels.txt", "")},
        {"a changed labels.txt", "predict run", 1, file("run/best/labels.txt", "bad\ng\nod\n")},
        {"a changed vocabulary.txt", "predict run", 1,
         edit("run/best/vocabulary.txt",
              [](std::string old) {
                old[old.find("film") + 1] = '\n';  // of one word two
                return old;
              })},
        {"a file that is not a weights file", "convert model.safetensors out --algebra quaternion", 1,
         file("model.safetensors", "not a file of weights")},
        {"weights that are cut off", "convert model.safetensors out --algebra quaternion", 1,
         file("model.safetensors",
              tensors(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "123"))},
        {"weights without a linear layer", "convert model.safetensors out --algebra quaternion", 1,
         file("model.safetensors",
              tensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"))},
        {"a header that is not JSON", "convert model.safetensors out --algebra quaternion", 1,
         file("model.safetensors", tensors("{"))},
        {"a header that is nested too deep", "convert model.safetensors out --algebra quaternion", 1,
         file("model.safetensors", tensors(std::string(100000, '[')))},
        {"a tensor of an unknown type", "convert model.safetensors out --algebra quaternion", 1,
         file("model.safetensors",
              tensors(R"({"a":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}})", "1234"))},
        {"a shape that does not fit its bytes", "convert model.safetensors out --algebra quaternion", 1,
         file("model.safetensors",
              tensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"))},
        {"overlapping tensors", "convert model.safetensors out --algebra quaternion", 1,
         file(
             "model.safetensors",
             tensors(
                 R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                 "123"))},
        {"data with other labels than the run", "evaluate run --data data", 1,
         [](const Workplace& place) {
           for (const char* part : {"train", "dev", "test"})
             place.write("data/" + std::string(part) + ".tsv", "up\ta film\ndown\ta plot\n");
         }},
        {"resuming with another recipe", "train run --resume --set model.width=64", 2},
        {"resuming with another vocabulary", "train run --resume --data data --set train.steps=4", 1,
         edit("data/train.tsv",
              [](std::string old) {
                for (size_t at = 0; (at = old.find("film", at)) != old.npos;) old[at] = 'g';
                return old;
              })},
        {"training more steps without the last checkpoint", "train run --resume --set train.steps=4", 1,
         [](const Workplace& place) { fs::remove_all(place.path("run/last")); }},
        {"resuming with a damaged recipe.toml", "train run --resume", 1,
         file("run/last/recipe.toml", "[tas")}}},
      {"Texts to label",
       {{"Latin-1", "predict run", 1, nullptr, "caf\xE9\n"},
        {"a NUL byte", "predict run", 1, nullptr, std::string("a\0b\n", 4)},
        {"a line of 100 MB", "predict run", 1, nullptr, std::string(100 << 20, 'x')}}},
      {"Lines to score",
       {{"a file that does not exist", "score nowhere data/dev.tsv"},
        {"a folder instead of a file", "score data/dev.tsv data"},
        {"files of different lengths", "score short.txt data/dev.tsv", 1, file("short.txt", "a film\n")},
        {"empty files", "score empty.txt empty.txt", 1, file("empty.txt", "")},
        {"Latin-1", "score data/dev.tsv latin1.txt", 1, file("latin1.txt", "a\ncaf\xE9\n")},
        {"references from the standard input", "score data/dev.tsv -", 2},
        {"an unknown tokenizer", "score data/dev.tsv data/dev.tsv --tokenize intl", 2},
        {"words of BLEU for an error rate", "score data/dev.tsv data/dev.tsv --metric wer --tokenize none",
         2},
        {"confusions of BLEU", "score data/dev.tsv data/dev.tsv --confusions confusions.tsv", 2},
        {"BLEU of transcripts", "score data/hyp.trn data/hyp.trn", 2, file("data/hyp.trn", "a film (one)\n")},
        {"an output that is read", "score short.txt data/dev.tsv --json short.txt", 2,
         file("short.txt", "a film\n")},
        {"several references of an error rate", "score data/dev.tsv data/dev.tsv data/dev.tsv --metric cer",
         2},
        {"a transcript beside lines", "score data/hyp.trn data/dev.tsv --metric wer", 2,
         file("data/hyp.trn", "a (b-1)\n")},
        {"confusions into a folder that is not there",
         "score data/dev.tsv data/dev.tsv --metric wer --confusions nowhere/confusions.tsv"},
        {"confusions to the standard output", "score data/dev.tsv data/dev.tsv --metric wer --confusions -",
         2},
        {"lines of the standard input beside a transcript", "score - data/hyp.trn --metric wer", 2,
         file("data/hyp.trn", "a (b-1)\n")},
        {"a transcript without a name", "score data/hyp.trn data/hyp.trn --metric wer", 1,
         file("data/hyp.trn", "a film\n")}}},
  };
}

/// Every file below the folder, but those that a call of the program leaves.
std::set<std::string> files(const Workplace& place) {
  std::set<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(place.folder())) {
    const std::string name = fs::relative(entry.path(), place.folder()).string();
    if (name != ".in" && name != ".out" && name != ".error") all.insert(name);
  }
  return all;
}

// For a cell of a table, without the folder of the test.
std::string shown(std::string text, const Workplace& place) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace(place.folder().string() + "/", "");
  replace("|", "\\|");
  return text;
}

class Errors : public testing::Test {
 protected:
  // A trained run, which the cases copy.
  static void SetUpTestSuite() {
    origin_ = new Workplace;
    origin_->make_data();
    const Outcome outcome = origin_->run("train text --data data --out run --set train.steps=2" + kSmall);
    ASSERT_EQ(outcome.code, 0) << outcome.error;
  }
  static void TearDownTestSuite() { delete origin_; }

  static inline Workplace* origin_ = nullptr;
};

TEST_F(Errors, are_one_sentence_each_as_the_page_says) {
  std::string page = kOpening;
  auto all = sections();
  all.push_back(speech_errors());
  all.push_back(image_errors());
  for (const auto& section : all) {
    page += "\n## " + section.title +
            "\n\n| what is wrong | what the program says | exit code |\n|---|---|---|\n";
    for (const auto& entry : section.cases) {
      SCOPED_TRACE(section.title + ": " + entry.what);
      const Workplace place;
      for (const char* name : {"data", "run", "entailed", "answers"})
        fs::copy(origin_->path(name), place.path(name), fs::copy_options::recursive);
      if (entry.prepare) entry.prepare(place);
      const auto before = files(place);
      const Outcome outcome = place.run(entry.words, entry.input);
      EXPECT_EQ(outcome.code, entry.code);
      EXPECT_EQ(outcome.out, entry.goes_on ? "\n" : "");
      EXPECT_EQ(files(place), before);
      // Before it there may be what train says when it begins.
      std::string line = outcome.error;
      if (const size_t begun = ("\n" + line).find("\ntraining "); begun != line.npos)
        line = line.substr(line.find('\n', begun) + 1);
      const std::string opening = "quatrain: ";
      if (entry.goes_on) {
        const std::string count = opening + kUnanswered;
        EXPECT_TRUE(line.ends_with(count)) << line;
        line = line.substr(0, line.rfind(count));
      }
      EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
      EXPECT_TRUE(line.starts_with(opening)) << line;
      EXPECT_LT(line.size(), 600u);
      if (!line.starts_with(opening)) continue;
      const std::string sentence = line.substr(opening.size(), line.size() - opening.size() - 1);
      page +=
          "| " + entry.what + " | " + shown(sentence, place) + " | " + std::to_string(outcome.code) + " |\n";
    }
  }
  const fs::path kept = QUATRAIN_RECIPES "/../docs/errors.md";
  if (std::getenv("QUATRAIN_WRITE_DOCS")) std::ofstream(kept, std::ios::binary) << page;
  std::ifstream stream(kept, std::ios::binary);
  EXPECT_EQ(page, std::string(std::istreambuf_iterator<char>(stream), {}))
      << "run: QUATRAIN_WRITE_DOCS=1 build/release/tests/cli/quatrain_cli_tests --gtest_filter=Errors.*";
}

}  // namespace
}  // namespace quatrain::cli
