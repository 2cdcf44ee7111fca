#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/bad_examples.h"
#include "quatrain/data/dataset.h"

namespace at {
class Tensor;
}

namespace quatrain::data {

struct Audio;

/// A phone and where it is heard.
struct QUATRAIN_API PhoneSegment {
  std::string phone;
  int64_t begin = 0;  ///< its first sample, from the utterance's first on
  int64_t end = 0;    ///< one past its last sample
  bool operator==(const PhoneSegment&) const = default;
};

/// A stretch of speech and what is said in it.
struct QUATRAIN_API Utterance {
  std::string id;                    ///< no other utterance of the corpus has it
  std::string speaker;               ///< the id where a corpus does not say who speaks
  std::string group;                 ///< of timit the dialect, "dr1"; else empty
  std::string recording;             ///< of which a line of Kaldi's segments makes it a part; else empty
  std::filesystem::path path;        ///< the audio file; empty with stored features
  int64_t rate = 0;                  ///< samples of a channel in a second; 0 with stored features
  int64_t begin = 0;                 ///< the first sample of each channel in the file
  int64_t end = 0;                   ///< one past the last sample
  std::optional<int64_t> channel;    ///< the only one that is read, from 0 on; nothing: all
  std::vector<std::string> tokens;   ///< the words; empty where a SpeechSource asks for none
  std::vector<PhoneSegment> phones;  ///< of timit, by time; else empty
  std::string stored;                ///< where its features are stored (KaldiEntry::location); empty: none
  int64_t frames = 0;                ///< of the stored features; 0: none
  std::vector<int32_t> labels;       ///< its alignment, a class for each frame; empty: none

  int64_t samples() const { return end - begin; }
  double seconds() const { return rate > 0 ? static_cast<double>(samples()) / static_cast<double>(rate) : 0; }
};

/// A corpus without its audio. The dev set selects; the test set is scored once.
struct QUATRAIN_API SpeechCorpus {
  std::vector<Utterance> train, dev, test;
  BadExamples bad;                 ///< empty unless skipping was asked for
  std::vector<std::string> notes;  ///< a sentence for each set that is left out as a whole
  /// Of alignments: what phones.txt calls their classes; empty: there is none.
  std::map<int32_t, std::string> class_names;
};

/// Where utterances come from.
struct QUATRAIN_API SpeechSource {
  std::string reader = "tsv";    ///< a name among speech_readers()
  std::filesystem::path folder;  ///< where the files lie
  bool skip_bad = false;         ///< leave bad utterances out and count them, instead of an error
  /// Speakers that are dev or test as a whole, instead of the sets of the corpus. The rest of fsdd, and of a
  /// timit without the folders train and test, is train; elsewhere, utterances of others that the corpus has
  /// in a set which is named here are in none. Of timit a name may be in any case, and `core` and `dev50` are
  /// the 24 speakers of its core test set and the 50 others of its test folder that Kaldi takes as a dev set.
  std::vector<std::string> dev_speakers, test_speakers;
  /// Of kaldi and tsv, where no speakers are named: the one set that is wanted, train, dev or test, which is
  /// read alone where there are files of it; empty: all.
  std::string only = "";
  bool only_if_there = false;    ///< of kaldi: where there are no files of that set, the corpus is empty
  bool stored_features = false;  ///< of kaldi: the features of feats.scp instead of audio
  /// Of kaldi: each utterance has a class for each frame. A dev or test set whose folder has no alignment at
  /// all is left out, unless it is the one that is wanted.
  bool alignments = false;
  /// Of timit and kaldi: off where nobody needs words; files of words are not read then, and need not be
  /// there.
  bool words = true;
};

/// timit, kaldi, tsv, fsdd, yesno.
///   timit  Folders of speakers, in any case and depth, with X.wav (RIFF or SPHERE), X.phn, and X.wrd or, if
///          there is none, X.txt, unless words are off. The two sentences SA, which all speakers read, are
///          left out. What lies below a folder train or test is in that set, all is train where there are
///          none; there is no dev set.
///   kaldi  The folders train, dev (or valid, or val) and test, or one folder that is train, each with a
///          wav.scp and text (unless words are off), utt2spk and segments if need be, whose fifth field may
///          name a channel: 0 or 1, A or B. A path of wav.scp that does not start at the root is looked for
///          in the set's folder, then where the program runs. Commands are refused, never run. With
///          stored_features feats.scp takes the place of wav.scp and segments. With alignments there is
///          ali.scp, or else archives ali.ark, ali.gz, ali.*.ark or ali.*.gz, of int32 vectors as ali-to-pdf
///          or ali-to-phones --per-frame write them; and beside the sets' folders may lie a phones.txt, with
///          the name and the number of a class in each line.
///   tsv    train.tsv, dev.tsv (or valid, or val), test.tsv: audio path (from the file's folder on), tab,
///          text, and another tab and a speaker if known. A first line "path text" is a header.
///   fsdd   Spoken digits, DIGIT_SPEAKER_INDEX.wav or .flac; index 0 to 4 is test, 5 to 9 dev, the rest
///          train.
///   yesno  Hebrew's yes and no, 0_0_1_....wav with 1 for yes; of the sorted names every first is train and
///          every second test. There is no dev set.
QUATRAIN_API const std::vector<Reader>& speech_readers();

/// Reads a corpus's lists and the header of each of its audio files. The utterances of a set are in the order
/// of their files' lines, or else of their names' bytes.
///
/// A missing or damaged audio file, a bad line, phones that overlap or end more than a sample after the
/// audio, an utterance without a text, a second one of the same id, an utterance without the alignment that
/// is asked for, or with another number of classes than of stored frames: one sentence with the place, what
/// is wrong, and the way out (c10::Error); with skip_bad it is counted instead. A missing folder or list, a
/// train set without utterances, a named speaker who does not occur, a damaged archive of alignments, or
/// stored features with different numbers of columns is always an error.
QUATRAIN_API SpeechCorpus load_speech(const SpeechSource& source);

/// The utterance's samples of each channel that it has; errors as AudioFile (quatrain/data/audio.h).
QUATRAIN_API Audio read_audio(const Utterance& utterance);

/// The utterance's stored features, (frames, columns) float32; errors as read_kaldi_matrix
/// (quatrain/data/kaldi_archive.h). An utterance that has none is an error.
QUATRAIN_API at::Tensor read_stored_features(const Utterance& utterance);

}  // namespace quatrain::data
