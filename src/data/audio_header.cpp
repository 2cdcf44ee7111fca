#include "data/audio_header.h"

#include <c10/util/Exception.h>

#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

using Frames = std::optional<int64_t>;

constexpr size_t kMagic = 12;            // bytes that tell the kind
constexpr int kMostChunks = 1000;        // of a WAV before its samples
constexpr int64_t kMostChannels = 1024;  // that libsndfile reads
constexpr size_t kSphere = 1 << 16;      // bytes of a SPHERE header at most
// Programs that write to a pipe, and cannot come back to the header, say so by one of these lengths: ffmpeg,
// sox, arecord, and others.
constexpr uint32_t kUnknownLengths[] = {0xFFFFFFFF, 0x7FFFF000, 0x7FFFFF00, 0x7FFFFFFF, 0x80000000};

std::string read_bytes(std::ifstream& stream, size_t count) {
  std::string bytes(count, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return bytes;
}

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// libsndfile would refuse it without a word of what is wrong.
void check_number(const fs::path& file, const char* what, int64_t found, int64_t most) {
  TORCH_CHECK(found >= 1 && found <= most, "audio: the header of ", file.string(), " promises ", found, " ",
              what, ", but there must be 1 to ", most, "; it is damaged: convert or copy the file again");
}

Frames wav_frames(const fs::path& file, std::ifstream& stream) {
  int64_t frame_bytes = 0;
  for (int chunk = 0; chunk < kMostChunks; ++chunk) {
    const auto head = read_bytes(stream, 8);
    if (head.size() < 8) break;
    const uint32_t size = little_endian(std::string_view(head).substr(4));
    if (head.starts_with("data")) {
      TORCH_CHECK(frame_bytes > 0, "audio: the header of ", file.string(),
                  " does not say how its samples are stored (chunk \"fmt \"); convert or copy it again");
      for (const uint32_t unknown : kUnknownLengths)
        if (size == unknown) return std::nullopt;
      // A program that was stopped while it recorded leaves the length of its first moment.
      TORCH_CHECK(size > 0 || stream.peek() == std::ifstream::traits_type::eof(), "audio: the header of ",
                  file.string(),
                  " promises 0 frames, but the file goes on; its header was not completed: convert it again");
      return size / frame_bytes;
    }
    // Chunks begin at even bytes.
    std::streamoff skip = static_cast<std::streamoff>(size) + size % 2;
    if (head.starts_with("fmt ") && size >= 16) {
      const auto format = read_bytes(stream, 16);
      if (format.size() < 16) break;
      const auto field = [&](size_t begin, size_t count) -> int64_t {
        return little_endian(std::string_view(format).substr(begin, count));
      };
      check_number(file, "channels", field(2, 2), kMostChannels);
      check_number(file, "samples a second", field(4, 4), std::numeric_limits<int32_t>::max());
      frame_bytes = field(12, 2);
      skip -= 16;
    }
    stream.seekg(skip, std::ios::cur);
  }
  TORCH_CHECK(false, "audio: ", file.string(),
              " is a WAV file without samples (chunk \"data\"), perhaps cut off; convert or copy it again");
}

uint64_t big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

Frames flac_frames(const fs::path& file, std::ifstream& stream) {
  constexpr uint64_t kStreamInfo = 34;  // bytes; its block is the first, of type 0
  stream.seekg(4);
  const auto head = read_bytes(stream, 4), properties = read_bytes(stream, kStreamInfo);
  TORCH_CHECK(
      properties.size() == kStreamInfo && big_endian(head) % (uint64_t{1} << 31) == kStreamInfo,
      "audio: the FLAC file ", file.string(),
      " does not begin with its properties (block STREAMINFO), perhaps cut off; convert or copy it again");
  const auto frames =
      static_cast<int64_t>(big_endian(std::string_view(properties).substr(13, 5)) & 0xFFFFFFFFF);
  TORCH_CHECK(frames > 0, "audio: the header of ", file.string(),
              " does not say how many frames it has; convert it again");
  return frames;
}

/// The whole number of a line "name -i value".
std::optional<int64_t> sphere_field(std::string_view header, const std::string& name) {
  const std::string begin = "\n" + name + " -i ";
  const size_t at = header.find(begin);
  if (at == header.npos) return std::nullopt;
  const auto value = header.substr(at + begin.size());
  return whole_number(value.substr(0, value.find_first_of(" \r\n")));
}

Frames sphere_frames(const fs::path& file, std::ifstream& stream) {
  stream.seekg(0);
  std::string header = read_bytes(stream, kSphere);
  const size_t end = header.find("end_head");
  const auto frames = sphere_field(std::string_view(header).substr(0, end), "sample_count");
  TORCH_CHECK(end != header.npos && frames, "audio: the SPHERE header of ", file.string(),
              " lacks a whole number sample_count, or its end; convert or copy the file again");
  return frames;
}

}  // namespace

std::string_view audio_format(std::string_view head) {
  if (head.starts_with("RIFF")) return "WAV";
  if (head.starts_with("fLaC")) return "FLAC";
  if (head.starts_with("NIST_1A")) return "SPHERE";
  return {};
}

Frames promised_frames(const fs::path& file) {
  std::ifstream stream;
  try {
    stream = open_file(file);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "audio: ", file.string(), " cannot be read: ", error.what());
  }
  const auto magic = read_bytes(stream, kMagic);
  TORCH_CHECK(!magic.empty(), "audio: ", file.string(), " is empty; convert or copy it again");
  stream.clear();  // the file may be shorter than that
  const std::string_view format = audio_format(magic);
  if (format == "WAV" && magic.ends_with("WAVE")) return wav_frames(file, stream);
  if (format == "FLAC") return flac_frames(file, stream);
  if (format == "SPHERE") return sphere_frames(file, stream);
  TORCH_CHECK(
      false, "audio: ", file.string(), " begins with ", readable(magic),
      ", but a WAV file begins with \"RIFF....WAVE\", FLAC with \"fLaC\" and SPHERE with \"NIST_1A\"; "
      "convert it to WAV, for example by: ffmpeg -i FILE FILE.wav");
}

}  // namespace quatrain::data
