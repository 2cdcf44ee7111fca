#include "quatrain/data/audio.h"

#include <sndfile.h>

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "data/audio_header.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kBlock = 1 << 16;     // values read at once
constexpr float kLargestSample = 1e9F;  // whose powers are finite, too

/// Compressed codings inside a WAV file are left to other programs: speech is not kept in them, and their
/// headers do not tell a length in frames.
bool is_supported(int format) {
  constexpr int kSubtypes[] = {SF_FORMAT_PCM_S8, SF_FORMAT_PCM_U8, SF_FORMAT_PCM_16,
                               SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_FLOAT,
                               SF_FORMAT_DOUBLE, SF_FORMAT_ULAW,   SF_FORMAT_ALAW};
  return std::ranges::find(kSubtypes, format & SF_FORMAT_SUBMASK) != std::end(kSubtypes);
}

std::string name_of_coding(int format) {
  SF_FORMAT_INFO info{format & SF_FORMAT_SUBMASK, nullptr, nullptr};
  return sf_command(nullptr, SFC_GET_FORMAT_INFO, &info, sizeof info) == 0 && info.name ? info.name
                                                                                        : "an unknown coding";
}

void check_complete(const fs::path& file, int64_t promised, int64_t found) {
  TORCH_CHECK(promised == found, "audio: the header of ", file.string(), " promises ", promised,
              " frames, but the file holds ", found,
              promised > found ? "; it is cut off: copy or convert it again"
                               : "; its header was not completed: convert it again");
}

}  // namespace

void AudioFile::Close::operator()(sf_private_tag* stream) const {
  sf_close(stream);
}

AudioFile::AudioFile(fs::path file) : file_(std::move(file)) {
  const auto promised = promised_frames(file_);
  SF_INFO info{};
  stream_.reset(sf_open(file_.c_str(), SFM_READ, &info));
  // libsndfile's own words are sentences of its programmers.
  TORCH_CHECK(stream_, "audio: ", file_.string(),
              " cannot be read: its header is damaged, or its samples are coded in a way that is not known "
              "here; copy it again, or convert it to WAV of 16 bits (SPHERE by sph2pipe)");
  TORCH_CHECK(is_supported(info.format), "audio: the samples of ", file_.string(), " are coded as ",
              name_of_coding(info.format), "; convert it to WAV of 16 bits");
  info_ = {info.samplerate, info.channels, info.frames};
  if (promised) check_complete(file_, *promised, info_.frames);
}

void AudioFile::seek(int64_t frame) {
  TORCH_CHECK(frame >= 0 && frame <= info_.frames, "AudioFile::seek: ", file_.string(), " has ", info_.frames,
              " frames: the frame must be from 0 to ", info_.frames, ", got ", frame);
  // Some decoders refuse to go to the end itself, where nothing is left to be read.
  TORCH_CHECK(frame == info_.frames || sf_seek(stream_.get(), frame, SEEK_SET) == frame,
              "audio: ", file_.string(), " does not lead to its frame ", frame,
              ", although its header promises ", info_.frames,
              "; it is damaged or cut off: copy or convert it again");
  next_ = frame;
}

at::Tensor AudioFile::read(int64_t most) {
  TORCH_CHECK(most >= 0, "AudioFile::read: most must be at least 0, got ", most);
  most = std::min(most, info_.frames - next_);
  // What a header promises is not to be trusted with memory: it grows with what is there.
  std::vector<float> values;
  int64_t frames = 0;
  while (frames < most) {
    const int64_t asked = std::min(most - frames, std::max<int64_t>(kBlock / info_.channels, 1));
    values.resize(static_cast<size_t>((frames + asked) * info_.channels));
    const int64_t got = sf_readf_float(stream_.get(), values.data() + frames * info_.channels, asked);
    frames += std::max<int64_t>(got, 0);
    if (got < asked) check_complete(file_, info_.frames, next_ + frames);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    TORCH_CHECK(std::abs(values[i]) <= kLargestSample, "audio: the samples of ", file_.string(),
                " must be finite numbers of at most ", kLargestSample,
                " in size (full scale is 1), but in frame ", next_ + static_cast<int64_t>(i) / info_.channels,
                " (from 0 on) one is ", values[i], "; convert or record it again");
  }
  next_ += frames;
  return torch::from_blob(values.data(), {frames, info_.channels}).t().clone(at::MemoryFormat::Contiguous);
}

Audio read_audio(const fs::path& file) {
  AudioFile audio(file);
  return {audio.read(), audio.info().rate};
}

AudioInfo read_audio_info(const fs::path& file) {
  return AudioFile(file).info();
}

}  // namespace quatrain::data
