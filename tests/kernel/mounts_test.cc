// The image is mounted in each way that a kernel may need, in a mount namespace that nobody else
// sees.
#include "isolation/mounts.h"

#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "image/store.h"

namespace hutch::isolation {
namespace {

namespace fs = std::filesystem;

std::string image_path() {
  const char* state = std::getenv("HUTCH_TEST_IMAGE_STATE");
  const auto image = image::open_image(state == nullptr ? "/var/lib/hutch" : state, "python");
  return image && image->is_erofs ? image->path : "";
}

// Exit status of a child that mounts at a directory of its own and looks at what it got.
template <class Mount>
int mounted_by(Mount mount) {
  std::string target = "/tmp/hutch-mounts-test-XXXXXX";
  if (::mkdtemp(target.data()) == nullptr) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!private_mount_namespace()) ::_exit(2);
    if (const auto mounted = mount(target); !mounted) {
      std::fprintf(stderr, "%s\n", describe(mounted.error()).c_str());
      ::_exit(3);
    }
    struct statvfs info {};
    if (::statvfs(target.c_str(), &info) != 0) ::_exit(4);
    constexpr unsigned long kWanted = ST_RDONLY | ST_NOSUID | ST_NODEV;
    if ((info.f_flag & kWanted) != kWanted) ::_exit(5);
    ::_exit(fs::exists(target + "/etc/passwd") ? 0 : 6);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(fs::is_empty(target)) << "the mount is seen outside";
  fs::remove(target);
  return status;
}

TEST(MountImage, AsAFile) {
  const std::string path = image_path();
  ASSERT_NE(path, "");
  EXPECT_EQ(mounted_by([&](const std::string& at) { return mount_image_file(path, at); }), 0);
}

TEST(MountImage, ByALoopDeviceThatFreesItself) {
  const std::string path = image_path();
  ASSERT_NE(path, "");
  EXPECT_EQ(mounted_by([&](const std::string& at) { return mount_image_by_loop(path, at); }), 0);
  for (const auto& device : fs::directory_iterator("/sys/block")) {
    std::ifstream backing(device.path() / "loop/backing_file");
    std::string file;
    std::getline(backing, file);
    EXPECT_NE(file, path) << device.path();
  }
}

TEST(MountImage, AsADirectory) {
  std::string tree = "/tmp/hutch-mounts-tree-XXXXXX";
  ASSERT_NE(::mkdtemp(tree.data()), nullptr);
  fs::create_directories(tree + "/etc");
  std::ofstream(tree + "/etc/passwd") << "x";
  EXPECT_EQ(mounted_by([&](const std::string& at) { return mount_image_directory(tree, at); }), 0);
  fs::remove_all(tree);
}

TEST(MountImage, SaysWhatIsWrongWithAFileThatIsNoImage) {
  std::string file = "/tmp/hutch-mounts-file-XXXXXX";
  const int fd = ::mkstemp(file.data());
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, 1 << 20), 0);
  EXPECT_NE(mounted_by([&](const std::string& at) { return mount_image_file(file, at); }), 0);
  ::unlink(file.c_str());
}

}  // namespace
}  // namespace hutch::isolation
