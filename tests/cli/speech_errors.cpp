#include <fstream>

#include "cli/error_cases.h"
#include "data/kaldi_files.h"
#include "tasks/speech_corpora.h"

namespace quatrain::cli {
namespace {

const std::string kHear = "train yesno --data tones --set task.data=tsv --out run2";

// A corpus `tones`, and what is done to it.
Prepare tones(const std::function<void(const std::filesystem::path&)>& spoil = nullptr) {
  return [=](const Workplace& place) {
    test::write_tones(place.path("tones"), 6, 2, 2, 2);
    if (spoil) spoil(place.path("tones"));
  };
}

// A run `heard` of it.
Prepare heard(const std::string& settings = "") {
  return [=](const Workplace& place) {
    tones()(place);
    place.run(
        "train yesno --data tones --set task.data=tsv --set model.hidden=8 --set train.steps=1 "
        "--set model.bidirectional=false --out heard" +
        settings);
  };
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

void cut_in_half(const std::filesystem::path& file) {
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
}

// The same recordings as a folder of Kaldi's.
void as_kaldi(const std::filesystem::path& tones, const std::string& first_path) {
  const auto train = tones / "train";
  std::filesystem::create_directories(train);
  write(train / "wav.scp", "one " + first_path + "\n");
  write(train / "text", "one low\n");
}

}  // namespace

Section speech_errors() {
  return {
      "Recordings",
      {{"an audio file that is missing", kHear, 1,
        tones([](const auto& folder) { std::filesystem::remove(folder / "train2.wav"); })},
       {"an audio file that is cut off", kHear, 1,
        tones([](const auto& folder) { cut_in_half(folder / "train2.wav"); })},
       {"a file that is no audio", kHear, 1,
        tones([](const auto& folder) { write(folder / "train2.wav", "no sound"); })},
       {"an empty audio file", kHear, 1, tones([](const auto& folder) { write(folder / "train2.wav", ""); })},
       {"an audio file without channels", kHear, 1,
        tones([](const auto& folder) { write(folder / "train2.wav", data::wav("", {.channels = 0})); })},
       {"a recording of one sample", kHear, 1,
        tones([](const auto& folder) { test::write_recording(folder / "train2.wav", {7}); })},
       {"a recording that is too short for its text", kHear + " --set features.stack=40", 1, tones()},
       {"a line without a text", kHear, 1,
        tones([](const auto& folder) { write(folder / "train.tsv", "train0.wav\n"); })},
       {"a command in Kaldi's list of files", kHear + " --set task.data=kaldi", 1,
        tones([](const auto& folder) { as_kaldi(folder, "flac -dc one.flac |"); })},
       {"no alignments in a folder of Kaldi's",
        kHear + " --set task.data=kaldi --set task.objective=frames --set features.stack=1 --set "
                "features.speeds=",
        1, tones([](const auto& folder) { as_kaldi(folder, (folder / "train0.wav").string()); })},
       {"a table of phones without numbers",
        kHear + " --set task.data=kaldi --set task.objective=frames --set features.stack=1 --set "
                "features.speeds=",
        1, tones([](const auto& folder) {
          as_kaldi(folder, (folder / "train0.wav").string());
          write(folder / "phones.txt", "sil\nlow\n");
        })},
       {"a range of Kaldi's that runs backwards",
        kHear + " --set task.data=kaldi --set features.source=stored --set features.speeds=", 1,
        tones([](const auto& folder) {
          as_kaldi(folder, (folder / "train0.wav").string());
          write(folder / "train" / "feats.scp", "one feats.ark:5[9:2]\n");
          write(folder / "train" / "feats.ark", "one ");
        })},
       {"bands of stored features",
        kHear + " --set task.data=kaldi --set features.source=stored --set features.speeds= --set "
                "features.bands=128",
        2, tones()},
       {"an empty file of TIMIT's phones", kHear + " --set task.data=timit", 1,
        [](const Workplace& place) {
          test::write_phones(place.path("tones"));
          write(place.path("tones/dr1/fanna0/si1.phn"), "");
        }},
       {"a segment of a channel that its recording lacks", kHear + " --set task.data=kaldi", 1,
        tones([](const auto& folder) {
          as_kaldi(folder, (folder / "train0.wav").string());
          write(folder / "train" / "segments", "one-1 one 0 0.2 B\n");
          write(folder / "train" / "text", "one-1 low\n");
        })},
       {"stored features that are cut off",
        kHear + " --set task.data=kaldi --set features.source=stored --set features.speeds=", 1,
        tones([](const auto& folder) {
          as_kaldi(folder, (folder / "train0.wav").string());
          write(folder / "train" / "feats.scp", "one feats.ark:4\n");
          write(folder / "train" / "feats.ark", "one " + data::kaldi_matrix<float>(9, 4, {1, 2}));
        })},
       {"a folder that is not TIMIT's", kHear + " --set task.data=timit", 1, tones()},
       {"phones of data that have none", kHear + " --set task.units=phones", 2, tones()},
       {"a speaker who does not occur", kHear + " --set task.test_speakers=clara", 1, tones()},
       {"a filter bank with too many bands", kHear + " --set features.bands=400", 2, tones()},
       {"bands that begin above half the rate", kHear + " --set features.low=5000", 2, tones()},
       {"bands that end above half the rate", kHear + " --set features.high=99999", 2, tones()},
       {"a rate at which a frame has no samples", kHear + " --set features.rate=1", 2, tones()},
       {"a number of bands that n does not divide",
        kHear + " --set features.bands=15 --set features.derivatives=0 --set features.stack=1", 2, tones()},
       {"a dense layer whose width n does not divide", kHear + " --set model.dense=10", 2, tones()},
       {"speeds that are no numbers", kHear + " --set features.speeds=fast", 2, tones()},
       {"a language model for the best path", kHear + " --set decode.language=words.arpa", 2, tones()},
       {"a language model that is missing",
        "predict heard tones/test0.wav --set decode.beam=4 --set decode.language=words.arpa", 1, heard()},
       {"a language model that is damaged",
        "predict heard tones/test0.wav --set decode.beam=4 --set decode.language=words.arpa", 1,
        [](const Workplace& place) {
          heard()(place);
          place.write("words.arpa", "\\data\\\nngram 1=2\n");
        }},
       {"more answers to a recording than the beam holds",
        "predict heard tones/test0.wav --set decode.best=3", 2, heard()},
       {"a dense layer that reads two directions, for another algebra",
        "convert heard other --algebra quaternion", 2,
        heard(" --set model.bidirectional=true --set model.dense=8 --set model.algebra=real")},
       {"a file to be heard that is missing", "predict heard nowhere.wav", 1, heard(), "", true},
       {"a file to be heard that is no audio", "predict heard tones/train.tsv", 1, heard(), "", true},
       {"a folder to be heard", "predict heard tones", 1, heard(), "", true},
       {"a file to be heard of a rate that is too far away", "predict heard slow.wav", 1,
        [](const Workplace& place) {
          heard()(place);
          test::write_recording(place.path("slow.wav"), std::vector<int16_t>(100), 20);
        },
        "", true},
       {"live sound of a bidirectional model", "predict heard --live", 2,
        heard(" --set model.bidirectional=true")},
       {"live sound of a run that reads lines", "predict run --live", 2},
       {"live sound that is a file", "predict heard --live", 1, heard(), "RIFF....WAVEfmt "},
       {"live sound with half a sample", "predict heard --live", 1, heard(), "x"},
       {"other recordings than the run's", "train heard --resume --set train.steps=2", 1,
        [](const Workplace& place) {
          heard()(place);
          uint64_t state = 3;
          test::write_recording(place.path("tones/train2.wav"), test::say({0, 1}, state));
        }}}};
}

}  // namespace quatrain::cli
