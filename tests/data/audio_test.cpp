#include "quatrain/data/audio.h"

#include <torch/types.h>

#include <cmath>
#include <numbers>

#include "audio_files.h"
#include "flac_files.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class AudioTest : public DataTest {
 protected:
  std::string error(std::string_view bytes) const {
    const auto file = write("a.wav", bytes);
    const auto message = error_of([&] { read_audio(file); });
    EXPECT_THAT(message, HasSubstr(file.string()));
    return message;
  }
  Audio read(std::string_view bytes) const { return read_audio(write("a.wav", bytes)); }

  std::filesystem::path write_flac(const std::vector<int16_t>& samples, int channels = 1) const {
    auto file = folder_ / "a.flac";
    data::write_flac(file, samples, channels, 16000);
    return file;
  }
};

std::vector<int16_t> loud_noise(size_t count) {
  std::vector<int16_t> samples(count);
  uint32_t state = 1;
  for (auto& sample : samples) sample = static_cast<int16_t>((state = state * 1664525 + 1013904223) >> 16);
  return samples;
}

at::Tensor row(std::initializer_list<double> values) {
  return torch::tensor(std::vector<double>(values)).to(torch::kFloat).unsqueeze(0);
}

TEST_F(AudioTest, ReadsEachWidth) {
  const auto sixteen = read(wav(sixteen_bits({0, 16384, -32768, 32767}), {.rate = 11025}));
  EXPECT_EQ(sixteen.rate, 11025);
  EXPECT_TRUE(sixteen.samples.equal(row({0, 0.5, -1, 32767.0 / 32768})));
  EXPECT_EQ(sixteen.samples.scalar_type(), torch::kFloat);
  EXPECT_DOUBLE_EQ(sixteen.seconds(), 4 / 11025.0);
  EXPECT_TRUE(read(wav(bytes_of<uint8_t, uint8_t, uint8_t>(0, 128, 192), {.bits = 8}))
                  .samples.equal(row({-1, 0, 0.5})));
  EXPECT_TRUE(read(wav(std::string("\0\0\x80\0\0\x40", 6), {.bits = 24})).samples.equal(row({-1, 0.5})));
  EXPECT_TRUE(read(wav(bytes_of(0.25F, -2.0F), {.tag = 3, .bits = 32})).samples.equal(row({0.25, -2})));
  EXPECT_TRUE(read(wav(bytes_of(0.25, -1.0), {.tag = 3, .bits = 64})).samples.equal(row({0.25, -1})));
}

TEST_F(AudioTest, ReadsChannels) {
  const auto audio = read(wav(sixteen_bits({0, 16384, -16384, 8192}), {.channels = 2}));
  ASSERT_EQ(audio.samples.sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_TRUE(choose_channel(audio.samples, 0).equal(row({0, -0.5})[0]));
  EXPECT_TRUE(choose_channel(audio.samples, 1).equal(row({0.5, 0.25})[0]));
  EXPECT_TRUE(mix_channels(audio.samples).equal(row({0.25, -0.125})[0]));
  EXPECT_THAT(error_of([&] { choose_channel(audio.samples, 2); }), HasSubstr("below 2"));
  EXPECT_THAT(error_of([&] { mix_channels(audio.samples[0]); }), HasSubstr("(channels, frames)"));
}

TEST_F(AudioTest, ReadsShortFiles) {
  EXPECT_EQ(read(wav("")).samples.sizes(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(read(wav("", {.channels = 2})).samples.sizes(), (std::vector<int64_t>{2, 0}));
  EXPECT_TRUE(read(wav(sixteen_bits({-16384}))).samples.equal(row({-0.5})));
}

TEST_F(AudioTest, TellsTheHeaderAlone) {
  const auto file = write("a.wav", wav(sixteen_bits(loud_noise(600)), {.channels = 3, .rate = 400}));
  const auto info = read_audio_info(file);
  EXPECT_EQ(std::tuple(info.rate, info.channels, info.frames), std::tuple(400, 3, 200));
  EXPECT_DOUBLE_EQ(info.seconds(), 0.5);
}

TEST_F(AudioTest, ReadsFlac) {
  const auto samples = loud_noise(50000);
  const auto file = write_flac(samples, 2);
  EXPECT_EQ(read_audio_info(file).frames, 25000);
  const auto audio = read_audio(file);
  EXPECT_EQ(audio.rate, 16000);
  const auto expected = torch::tensor(std::vector<float>(samples.begin(), samples.end())).view({-1, 2}).t();
  EXPECT_TRUE((audio.samples * 32768).equal(expected));
}

TEST_F(AudioTest, ReadsSphere) {
  const auto audio = read(sphere(sixteen_bits({16384, -8192}), 2));
  EXPECT_EQ(audio.rate, 16000);
  EXPECT_TRUE(audio.samples.equal(row({0.5, -0.25})));
  EXPECT_THAT(error(sphere(sixteen_bits({16384, -8192}), 3)),
              HasSubstr("promises 3 frames, but the file holds 2"));
  EXPECT_THAT(
      error(sphere(sixteen_bits({16384, -8192}), 2, "pcm,embedded-shorten-v2.00")),
      HasSubstr("cannot be read: its header is damaged, or its samples are coded in a way that is not "
                "known here; copy it again, or convert it to WAV of 16 bits (SPHERE by sph2pipe)"));
  EXPECT_THAT(error("NIST_1A\n   1024\nchannel_count -i 1\n"),
              HasSubstr("lacks a whole number sample_count"));
}

TEST_F(AudioTest, ReadsInPieces) {
  const auto file = write("a.wav", wav(sixteen_bits(loud_noise(1000))));
  AudioFile audio(file);
  std::vector<at::Tensor> pieces;
  for (const int64_t most : {1, 0, 700, 700, 5}) pieces.push_back(audio.read(most));
  EXPECT_EQ(pieces[3].size(1), 299);
  EXPECT_EQ(pieces[4].size(1), 0);
  EXPECT_TRUE(torch::cat(pieces, 1).equal(read_audio(file).samples));
}

TEST_F(AudioTest, GoesToAFrame) {
  const auto samples = loud_noise(50000);
  const auto whole = torch::tensor(std::vector<float>(samples.begin(), samples.end())) / 32768;
  const auto bytes = sixteen_bits(samples);
  for (const auto& [file, channels] : {std::pair{write("a.wav", wav(bytes, {.channels = 2})), 2},
                                       {write_flac(samples, 2), 2},
                                       {write("a.sph", sphere(bytes, 50000)), 1}}) {
    SCOPED_TRACE(file.string());
    const auto expected = whole.view({-1, channels}).t();
    const int64_t frames = expected.size(1);
    AudioFile audio(file);
    for (const int64_t begin : {frames - 3, int64_t{0}, int64_t{4097}, frames - 1, int64_t{1}}) {
      audio.seek(begin);
      EXPECT_TRUE(audio.read(3).equal(expected.slice(1, begin, begin + 3))) << begin;
    }
    audio.seek(frames);
    EXPECT_EQ(audio.read().size(1), 0);
    audio.seek(5);
    EXPECT_TRUE(audio.read().equal(expected.slice(1, 5)));
    for (const int64_t wrong : {frames + 1, int64_t{-1}})
      EXPECT_THAT(error_of([&] { audio.seek(wrong); }),
                  AllOf(HasSubstr(file.string()),
                        HasSubstr("from 0 to " + std::to_string(frames) + ", got " + std::to_string(wrong))));
  }
  const auto flac = write_flac(samples);
  std::filesystem::resize_file(flac, std::filesystem::file_size(flac) / 2);
  AudioFile cut(flac);
  EXPECT_THAT(error_of([&] { cut.seek(40000), cut.read(10); }),
              AllOf(HasSubstr("a.flac"), HasSubstr("cut off")));
}

TEST_F(AudioTest, FindsTheSamplesBehindOtherChunks) {
  const auto other = chunk("LIST", "odd") + chunk("fact", std::string(4, '\0'));
  EXPECT_TRUE(read(wav(sixteen_bits({16384}), {}, -1, other)).samples.equal(row({0.5})));
  EXPECT_TRUE(read(wav(sixteen_bits({16384})) + chunk("LIST", "tail")).samples.equal(row({0.5})));
}

TEST_F(AudioTest, ReadsWhatWasWrittenToAPipe) {
  for (const int64_t unknown : {0xFFFFFFFFL, 0x7FFFF000L, 0x7FFFFF00L, 0x7FFFFFFFL, 0x80000000L})
    EXPECT_TRUE(read(wav(sixteen_bits({16384, 0}), {}, unknown)).samples.equal(row({0.5, 0})));
}

TEST_F(AudioTest, RefusesWhatIsCutOff) {
  const auto whole = wav(sixteen_bits(loud_noise(1000)));
  EXPECT_THAT(error(whole.substr(0, 44 + 1000)),
              HasSubstr("promises 1000 frames, but the file holds 500; it is cut off"));
  EXPECT_THAT(error_of([&] { read_audio_info(write("b.wav", whole.substr(0, 50))); }),
              HasSubstr("promises 1000 frames, but the file holds 3"));
  EXPECT_THAT(error(whole.substr(0, 40)), HasSubstr("without samples"));
  EXPECT_THAT(error(wav(sixteen_bits({1, 2}), {}, 0)), HasSubstr("promises 0 frames, but the file goes on"));

  const auto flac = write_flac(loud_noise(50000));
  const auto size = std::filesystem::file_size(flac);
  std::filesystem::resize_file(flac, size / 2);
  EXPECT_THAT(error_of([&] { read_audio(flac); }),
              AllOf(HasSubstr("promises 50000 frames, but the file holds 2"), HasSubstr("it is cut off")));
}

TEST_F(AudioTest, RefusesAFlacFileWhoseHeaderIsCutOff) {
  const auto flac = write_flac(loud_noise(5000));
  std::filesystem::resize_file(flac, 50);
  EXPECT_THAT(error_of([&] { read_audio(flac); }), HasSubstr("a.flac cannot be read: "));
  std::filesystem::resize_file(flac, 41);
  EXPECT_THAT(error_of([&] { read_audio(flac); }), HasSubstr("perhaps cut off"));
}

TEST_F(AudioTest, RefusesAFlacFileWithoutLength) {
  const auto flac = write_flac(loud_noise(5000));
  std::fstream stream(flac, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(22);  // the last 32 of 36 bits of STREAMINFO's total samples
  stream << std::string(4, '\0');
  stream.close();
  EXPECT_THAT(error_of([&] { read_audio(flac); }), HasSubstr("does not say how many frames it has"));
}

TEST_F(AudioTest, SaysWhatIsWrong) {
  EXPECT_THAT(error("ID3\x04 and more \xff"),
              AllOf(HasSubstr(R"(begins with "ID3\x04 and mor")"), HasSubstr("ffmpeg -i FILE FILE.wav")));
  EXPECT_THAT(error(""), HasSubstr("is empty"));
  EXPECT_THAT(error("RIFF"), HasSubstr("begins with \"RIFF\""));
  EXPECT_THAT(error("fLaC and no more"), HasSubstr("does not begin with its properties"));
  EXPECT_THAT(error("RIFF\x04\x00\x00\x00WAVEdata\x04\x00\x00\x00" + std::string(9, 'a')),
              HasSubstr("begins with \"RIFF\\x04"));  // the literal ends at its first NUL byte
  EXPECT_THAT(error("RIFF" + bytes_of(uint32_t{16}) + "WAVE" + chunk("data", "abcd")),
              HasSubstr("does not say how its samples are stored"));
  for (const uint16_t channels : {0, 1025})
    EXPECT_THAT(error(wav("abcd", {.channels = channels})),
                HasSubstr("promises " + std::to_string(channels) + " channels, but there must be 1 to 1024"));
  for (const uint32_t rate : {0U, 0xFFFFFFFFU})
    EXPECT_THAT(error(wav("abcd", {.rate = rate})),
                HasSubstr("promises " + std::to_string(rate) + " samples a second, but there must be 1 to "));
  EXPECT_THAT(error(wav(std::string(512, '\0'), {.tag = 17, .bits = 4})), HasSubstr("a.wav"));
  EXPECT_THAT(error(wav(bytes_of(0.5F, NAN), {.tag = 3, .bits = 32})),
              HasSubstr("must be finite numbers of at most 1e+09 in size (full scale is 1), but in frame 1"));
  EXPECT_THAT(error_of([&] { read_audio(folder_ / "none.wav"); }), HasSubstr("there is no such file"));
  EXPECT_THAT(error_of([&] { read_audio(folder_); }), HasSubstr("it is a folder"));
}

at::Tensor sine(double frequency, int64_t rate, int64_t frames) {
  return torch::sin(torch::arange(frames, torch::kDouble) *
                    (2 * std::numbers::pi * frequency / static_cast<double>(rate)))
      .to(torch::kFloat);
}

/// The largest difference away from the ends, where the interpolation has all its neighbours.
double inner_error(const at::Tensor& found, const at::Tensor& expected) {
  const int64_t edge = 500;
  return (found - expected).narrow(-1, edge, expected.size(-1) - 2 * edge).abs().max().item<double>();
}

TEST(ResampleTest, KeepsASine) {
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{8000, 16000}, {16000, 8000}, {44100, 16000}}) {
    const auto found = resample(sine(1000, from, from), from, to);
    ASSERT_EQ(found.size(0), to);
    EXPECT_LT(inner_error(found, sine(1000, to, to)), 1e-4) << from << " to " << to;
  }
}

TEST(ResampleTest, RemovesWhatTheNewRateCannotHold) {
  EXPECT_LT(inner_error(resample(sine(6000, 16000, 16000), 16000, 8000), torch::zeros(8000)), 1e-4);
}

TEST(ResampleTest, TakesEachChannelAlone) {
  const auto one = sine(300, 8000, 4000), two = sine(500, 8000, 4000);
  const auto both = resample(torch::stack({one, two}), 8000, 16000);
  EXPECT_TRUE(both[0].equal(resample(one, 8000, 16000)));
  EXPECT_TRUE(both[1].equal(resample(two, 8000, 16000)));
}

TEST(ResampleTest, HandlesTheSmallest) {
  EXPECT_EQ(resample(torch::zeros({2, 0}), 8000, 16000).sizes(), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(resample(torch::ones({1, 1}), 8000, 16000).sizes(), (std::vector<int64_t>{1, 2}));
  const auto same = sine(300, 8000, 100);
  EXPECT_TRUE(resample(same, 8000, 8000).equal(same));
  EXPECT_THAT(error_of([] { resample(torch::zeros(5), 8000, 0); }), HasSubstr("got 8000 and 0"));
  EXPECT_THAT(error_of([] { resample(torch::zeros(5), 1, 300); }), HasSubstr("at most 256"));
}

}  // namespace
}  // namespace quatrain::data
