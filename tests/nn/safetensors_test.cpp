#include "quatrain/nn/safetensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "temporary_folder.h"

namespace quatrain::nn {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SafetensorsTest : public test::FolderTest {
 protected:
  // A file with a header and data of our choice.
  fs::path write(const std::string& header, const std::string& data, int64_t length = -1) {
    const fs::path path = folder_ / "hostile.safetensors";
    const uint64_t size = length >= 0 ? static_cast<uint64_t>(length) : header.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), sizeof size);
    file << header << data;
    return path;
  }

  std::string error_of(const fs::path& path) {
    try {
      read_safetensors(path);
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "no error";
  }
};

TEST_F(SafetensorsTest, AllTypesShapesAndStridesTravel) {
  const fs::path path = folder_ / "a.safetensors";
  NamedTensors tensors;
  for (const auto dtype : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                           at::kChar, at::kByte, at::kBool}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{}, {0}, {5}, {2, 3}, {2, 0, 3}})
      tensors.emplace_back(c10::str(dtype, shape), at::randint(0, 2, shape, at::kFloat).to(dtype));
  }
  const at::Tensor wide = at::randn({4, 6});
  tensors.emplace_back("transposed", wide.t());
  tensors.emplace_back("slice \"quoted\" \xC3\xA4", wide.narrow(1, 2, 3));
  write_safetensors(path, tensors, {{"key", "value\n\"quoted\""}});

  const Safetensors read = read_safetensors(path);
  EXPECT_EQ(read.tensors.size(), tensors.size());
  EXPECT_EQ(read.metadata.at("key"), "value\n\"quoted\"");
  for (const auto& [name, tensor] : tensors) {
    ASSERT_NE(read.find(name), nullptr) << name;
    EXPECT_EQ(read.find(name)->dtype(), tensor.dtype()) << name;
    EXPECT_TRUE(at::equal(*read.find(name), tensor)) << name;
  }
  EXPECT_EQ(read.find("absent"), nullptr);
}

TEST_F(SafetensorsTest, BitsOfNanAndInfinityAndNegativeZeroStay) {
  const fs::path path = folder_ / "a.safetensors";
  const at::Tensor values = at::tensor({std::nanf("7"), INFINITY, -INFINITY, -0.0F});
  write_safetensors(path, {{"x", values}});
  EXPECT_TRUE(at::equal(read_safetensors(path).find("x")->view(at::kInt), values.view(at::kInt)));
}

TEST_F(SafetensorsTest, HeaderIsAlignedAndEachTensorToItsType) {
  const fs::path path = folder_ / "a.safetensors";
  write_safetensors(path, {{"bytes", at::ones({3}, at::kByte)}, {"doubles", at::ones({2}, at::kDouble)}});
  std::ifstream file(path, std::ios::binary);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(read_safetensors(path).tensors.front().first, "doubles");
}

TEST_F(SafetensorsTest, NothingAtAllIsAFile) {
  write_safetensors(folder_ / "a.safetensors", {});
  EXPECT_TRUE(read_safetensors(folder_ / "a.safetensors").tensors.empty());
}

TEST_F(SafetensorsTest, WritingIsAtomicAndLeavesNothingBeside) {
  const fs::path path = folder_ / "a.safetensors";
  write_safetensors(path, {{"x", at::ones({2})}});
  EXPECT_THROW(write_safetensors(path, {{"x", at::ones({2})}, {"x", at::ones({3})}}), std::runtime_error);
  EXPECT_THROW(write_safetensors(path, {{"x", at::ones({2}, at::kComplexFloat)}}), std::runtime_error);
  EXPECT_THROW(write_safetensors(path, {{"x", at::Tensor()}}), std::runtime_error);
  EXPECT_THROW(write_safetensors(path, {{"\xFF", at::ones({2})}}), std::runtime_error);
  EXPECT_TRUE(at::equal(*read_safetensors(path).find("x"), at::ones({2})));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  EXPECT_THROW(write_safetensors(folder_ / "none" / "a", {}), std::runtime_error);
}

TEST_F(SafetensorsTest, BadFilesAreNamedInOneSentence) {
  const std::string floats(8, '\0');
  const auto one = [](const std::string& rest) { return R"({"x":{)" + rest + "}}"; };
  EXPECT_THAT(error_of(folder_ / "absent"), HasSubstr("cannot open"));
  EXPECT_THAT(error_of(folder_), HasSubstr("cannot open"));
  std::ofstream(folder_ / "short") << "abc";
  EXPECT_THAT(error_of(folder_ / "short"), HasSubstr("3 bytes"));
  EXPECT_THAT(error_of(write("{}", "", 3)), HasSubstr("the header has 3 bytes, but"));
  EXPECT_THAT(error_of(write("{}", "", std::numeric_limits<int64_t>::max())),
              HasSubstr("by its first 8 bytes the header has"));
  EXPECT_THAT(error_of(write("{", "")), HasSubstr("not complete JSON"));
  EXPECT_THAT(error_of(write("[]", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(write("", "")), HasSubstr("not complete JSON"));
  EXPECT_THAT(error_of(write("{\"\xFF\":1}", "")), HasSubstr("not complete JSON"));
  EXPECT_THAT(error_of(write(R"({"x":1})", "")), HasSubstr("not described by an object"));
  EXPECT_THAT(error_of(write(R"({"__metadata__":{"a":1}})", "")), HasSubstr("must be a text"));
  EXPECT_THAT(error_of(write(R"({"__metadata__":[]})", "")), HasSubstr("object of texts"));
  EXPECT_THAT(error_of(write(one(R"("shape":[2],"data_offsets":[0,8])"), floats)), HasSubstr("no dtype"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F8","shape":[2],"data_offsets":[0,8])"), floats)),
              HasSubstr("unknown dtype 'F8'"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F32","data_offsets":[0,8])"), floats)),
              HasSubstr("no list 'shape'"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), floats)),
              HasSubstr("whole numbers"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), floats)),
              HasSubstr("whole numbers"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), floats)),
              HasSubstr("does not fit its 8 bytes"));
  EXPECT_THAT(
      error_of(write(one(R"("dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0])"), "")),
      HasSubstr("does not fit its"));
  EXPECT_THAT(
      error_of(write(one(R"("dtype":"F32","shape":[18446744073709551615,0],"data_offsets":[0,0])"), "")),
      HasSubstr("does not fit its"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F32","shape":[2],"data_offsets":[4,12])"), floats)),
              HasSubstr("outside the 8 bytes"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), floats)),
              HasSubstr("outside"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), floats + "x")),
              HasSubstr("too long"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), floats)),
              HasSubstr("gap"));
  EXPECT_THAT(error_of(write(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                             floats)),
              HasSubstr("'y' overlaps"));
  EXPECT_THAT(error_of(write(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                             floats)),
              HasSubstr("'x' occurs twice"));
  EXPECT_THAT(error_of(write(one(R"("dtype":"BOOL","shape":[1],"data_offsets":[0,1])"), "\x02")),
              HasSubstr("BOOL"));
}

TEST_F(SafetensorsTest, DeepHeadersAreRefused) {
  const std::string deep = R"({"x":)" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  EXPECT_THAT(error_of(write(deep, "")), HasSubstr("nested at most 3 deep"));
  EXPECT_THAT(error_of(write(R"({"x":{"a":{"b":{}}}})", "")), HasSubstr("nested at most 3 deep"));
}

// A pipe nobody writes to would be waited for, a device read for ever.
TEST_F(SafetensorsTest, PipesAndDevicesAreRefused) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, fs::path("/dev/zero")})
    EXPECT_THAT(error_of(path), HasSubstr("it is a pipe or a device"));
  EXPECT_THAT(error_of(folder_ / "nothing"), HasSubstr("there is no such file"));
}

TEST_F(SafetensorsTest, EveryTruncationIsNoticed) {
  const fs::path path = folder_ / "a.safetensors";
  write_safetensors(path, {{"x", at::randn({3, 2})}, {"y", at::ones({2}, at::kByte)}}, {{"a", "b"}});
  const auto size = fs::file_size(path);
  for (uintmax_t kept = 0; kept < size; ++kept) {
    const fs::path torn = folder_ / "torn";
    fs::copy_file(path, torn, fs::copy_options::overwrite_existing);
    fs::resize_file(torn, kept);
    EXPECT_NE(error_of(torn), "no error") << kept;
  }
}

}  // namespace
}  // namespace quatrain::nn
