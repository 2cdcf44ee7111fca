#include "quatrain/data/image.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "fuzz/support.h"
#include "quatrain/data/image_set.h"

namespace {

// What the bits of the first byte say beside the two lowest, which choose the files.
constexpr uint8_t kSkipBad = 4, kOther = 8, kNames = 16, kCoarse = 32;
constexpr size_t kImageFactor = 100;

void decode_and_fit(std::string_view content, size_t size, uint8_t bits) {
  using namespace quatrain;
  constexpr int64_t kPixels = 1 << 16;
  at::Tensor image;
  fuzz::read_or_refuse<c10::Error>(size, kImageFactor,
                                   [&] { image = data::decode_image(content, "a picture", kPixels); });
  if (!image.defined() || !(bits & kOther)) return;
  // A side of so many pixels beside the other one of all that were decoded; of three bytes, and some copies.
  const int64_t side = bits & kNames ? 48 : 2;
  const auto fitted = static_cast<size_t>(16 * std::min<int64_t>(data::kMostPixels, kPixels * side * side));
  fuzz::read_or_refuse<c10::Error>(size + fitted / kImageFactor, kImageFactor,
                                   [&] { data::fit_image(image, side, "a picture"); });
}

// Two pictures of two classes, since a training set of one class is refused.
std::string two_of_cifar100() {
  const std::string pixels(3 * 32 * 32, 'x');
  std::string both;
  for (const char label : {'\0', '\1'}) both.append(2, label).append(pixels);
  return both;
}

}  // namespace

/// The two lowest bits of the first byte say what the others are: a picture (0, 1), a file of CIFAR (2), or
/// pictures as bytes (3; of 2 x 2 pixels and, from the next byte on, as many labels as that says). With
/// kSkipBad bad ones are left out. With kOther a picture is brought to 2 x 2 pixels or, with kNames, to 48 x
/// 48; and CIFAR is CIFAR-100, with kCoarse its 20 classes. With kNames the names of a set's classes stand
/// first, up to a line `--`.
QUATRAIN_FUZZ_TARGET(images)(const uint8_t* bytes, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  if (size < 2) return 0;
  const uint8_t bits = bytes[0];
  auto content = fuzz::text_of(bytes + 1, size - 1);
  if (bits % 4 < 2) {
    decode_and_fit(content, size, bits);
    return 0;
  }
  const std::string_view names = bits & kNames ? fuzz::next_file(content) : std::string_view();
  const auto write_names = [&](const char* file) {
    if (bits & kNames)
      folder.write(file, names);
    else
      std::filesystem::remove(folder.path() / file);
  };
  data::ImageSource source;
  source.folder = folder.path();
  source.skip_bad = bits & kSkipBad;
  if (bits % 4 == 3) {
    source.reader = "planes";
    source.side = 2;
    const size_t begin = std::min<size_t>(1, content.size());
    const size_t labels =
        content.empty() ? 0 : std::min<size_t>(static_cast<uint8_t>(content[0]), content.size() - 1);
    write_names("classes.txt");
    folder.write("train.labels.u8", content.substr(begin, labels));
    folder.write("train.u8", content.substr(begin + labels));
  } else if (bits & kOther) {
    source.reader = bits & kCoarse ? "cifar100_coarse" : "cifar100";
    write_names(bits & kCoarse ? "coarse_label_names.txt" : "fine_label_names.txt");
    folder.write("train.bin", two_of_cifar100() + std::string(content));
    folder.write("test.bin", content);
  } else {
    source.reader = "cifar10";
    write_names("batches.meta.txt");
    for (const char* name :
         {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
      folder.write(std::string(name) + ".bin", content);
  }
  fuzz::read_or_refuse<c10::Error>(size, kImageFactor, [&] { data::load_images(source); });
  return 0;
}
