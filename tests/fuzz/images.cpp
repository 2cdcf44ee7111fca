#include "quatrain/data/image.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "fuzz/support.h"
#include "quatrain/data/image_set.h"

/// The first byte says what the others are: a picture, a file of CIFAR-10, or pictures as bytes (of 2 x 2
/// pixels and, from the next byte on, as many labels as that says); and whether bad ones are left out.
QUATRAIN_FUZZ_TARGET(images)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  if (size < 2) return 0;
  const auto content = fuzz::text_of(data + 1, size - 1);
  constexpr size_t kFactor = 100;
  data::ImageSource source;
  source.folder = folder.path();
  source.skip_bad = data[0] & 4;
  switch (data[0] % 4) {
    case 0:
    case 1:
      fuzz::read_or_refuse<c10::Error>(size, kFactor, [&] {
        constexpr int64_t kPixels = 1 << 16;
        data::decode_image(content, "a picture", kPixels);
      });
      return 0;
    case 2:
      source.reader = "cifar10";
      for (const char* name :
           {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
        folder.write(std::string(name) + ".bin", content);
      break;
    default: {
      source.reader = "planes";
      source.side = 2;
      const size_t labels = std::min<size_t>(static_cast<uint8_t>(content[0]), content.size() - 1);
      folder.write("train.labels.u8", content.substr(1, labels));
      folder.write("train.u8", content.substr(1 + labels));
    }
  }
  fuzz::read_or_refuse<c10::Error>(size, kFactor, [&] { data::load_images(source); });
  return 0;
}
