#pragma once

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace quatrain::data {

/// A folder of the running test's own, removed at its end.
class DataTest : public testing::Test {
 protected:
  DataTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("quatrain_data_" + std::string(info->name()) + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~DataTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, std::string_view text) const {
    const auto file = folder_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  /// Writes it compressed by gzip, and gives the bytes.
  std::string compressed(const std::string& name, std::string_view text) const {
    const auto file = folder_ / name;
    gzFile stream = gzopen(file.c_str(), "wb");
    gzwrite(stream, text.data(), static_cast<unsigned>(text.size()));
    gzclose(stream);
    std::ifstream back(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(back), {}};
  }

  std::filesystem::path folder_;
};

/// The message of the error that the call throws; empty if it throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {  // of a file that cannot be written, of a name
    return error.what();
  }
  return "";
}

}  // namespace quatrain::data
