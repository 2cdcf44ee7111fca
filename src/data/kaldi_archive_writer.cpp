#include <torch/types.h>

#include <cstring>
#include <limits>
#include <utility>

#include "data/kaldi_values.h"
#include "data/text_file.h"
#include "support/atomic_file.h"

namespace quatrain::data {
namespace {

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

KaldiArchiveWriter::KaldiArchiveWriter(std::filesystem::path ark, std::filesystem::path scp,
                                       std::filesystem::path named)
    : named_(named.empty() ? ark : std::move(named)) {
  // The name must mean the same in a list.
  const auto& name = named_.native();
  TORCH_CHECK(line_problem(name).empty() && name.find('\n') == name.npos &&
                  parse_location(name + ":0").file == named_,
              "KaldiArchiveWriter: a list of entries cannot name the file ", quote(name),
              "; choose another name");
  archive_ = std::make_unique<AtomicFile>(std::move(ark));
  script_ = std::make_unique<AtomicFile>(std::move(scp));
}

KaldiArchiveWriter::~KaldiArchiveWriter() = default;

void KaldiArchiveWriter::write(const std::string& key, const at::Tensor& matrix) {
  TORCH_CHECK(archive_, "KaldiArchiveWriter: ", named_.string(), " is closed and takes no more entries");
  const std::string problem = key_problem(key);
  TORCH_CHECK(problem.empty(), "KaldiArchiveWriter: the key ", quote(key), " ", problem);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  TORCH_CHECK(matrix.dim() == 2 && matrix.is_floating_point() && matrix.numel() > 0 &&
                  matrix.size(0) <= kMost && matrix.size(1) <= kMost,
              "KaldiArchiveWriter: the matrix of ", quote(key),
              " must be (rows, columns) of floating point and not empty, got ", matrix.sizes(), " of ",
              matrix.scalar_type());
  const auto values = matrix.detach().to(torch::kCPU, torch::kFloat).contiguous();
  TORCH_CHECK(values.isfinite().all().item<bool>(), "KaldiArchiveWriter: the matrix of ", quote(key),
              " must hold finite numbers of single precision, but some are not");
  TORCH_CHECK(!keys_.contains(key), "KaldiArchiveWriter: the key ", quote(key), " was written before");

  std::string bytes = key + ' ';
  const std::string line =
      bytes + named_.string() + ':' + std::to_string(offset_ + static_cast<int64_t>(bytes.size())) + '\n';
  bytes += std::string("\0BFM ", 5);
  for (const int64_t size : values.sizes()) {
    bytes += '\4';
    append(bytes, static_cast<int32_t>(size));
  }
  // An entry that was not written whole leaves an archive that cannot be closed.
  auto archive = std::move(archive_);
  archive->write(bytes.data(), bytes.size());
  archive->write(values.data_ptr<float>(), values.nbytes());
  offset_ += static_cast<int64_t>(bytes.size() + values.nbytes());
  keys_.insert(key);
  lines_ += line;
  archive_ = std::move(archive);
}

void KaldiArchiveWriter::close() {
  TORCH_CHECK(archive_, "KaldiArchiveWriter: ", named_.string(), " is closed already");
  const auto archive = std::move(archive_), script = std::move(script_);
  script->write(lines_.data(), lines_.size());
  archive->commit();
  script->commit();
}

}  // namespace quatrain::data
