#include <c10/util/Exception.h>

#include <fstream>

#include "data/image_readers.h"
#include "data/text_file.h"

namespace quatrain::data {

ImageRecords::ImageRecords(std::filesystem::path file, int64_t side, int64_t label_bytes)
    : file_(std::move(file)), bytes_(label_bytes + 3 * side * side), label_bytes_(label_bytes) {
  try {
    check_file(file_);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "data: ", file_.string(), " cannot be read: ", error.what());
  }
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file_));
  TORCH_CHECK(size > 0, "data: ", file_.string(), " is empty; copy it again");
  TORCH_CHECK(size % bytes_ == 0, "data: the length of ", file_.string(), " must be a multiple of ", bytes_,
              " bytes, those of a picture of ", side, " x ", side, label_bytes > 0 ? " and its label" : "",
              ", got ", size, "; it is cut off, or its pictures are of another size or kind");
  count_ = size / bytes_;
}

void ImageRecords::add_to(ImageGathering& gathering, ImagePart part, const LabelOf& label_of,
                          std::span<const uint8_t> dev) const {
  std::ifstream stream = open_file(file_);
  std::vector<uint8_t> record(static_cast<size_t>(bytes_));
  const auto before = static_cast<size_t>(label_bytes_);
  for (int64_t i = 0; i < count_; ++i) {
    stream.read(reinterpret_cast<char*>(record.data()), bytes_);
    TORCH_CHECK(stream, "data: ", file_.string(), " cannot be read beyond picture ", i, "; copy it again");
    const bool is_dev = !dev.empty() && dev[static_cast<size_t>(i)] != 0;
    gathering.add(is_dev ? ImagePart::dev : part, std::span(record).subspan(before),
                  label_of(std::span(record).first(before), i),
                  file_.string() + ", picture " + std::to_string(i) + " (from 0 on)");
  }
}

}  // namespace quatrain::data
