#include "image/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/sys.h"

namespace hutch::image {
namespace {

namespace fs = std::filesystem;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }

  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  // Ends a field, so that two fields never read as one longer field.
  void add_field(std::string_view bytes) {
    add(bytes);
    add(std::string_view("\0", 1));
  }

  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> raw{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), raw.data(), &size);
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
      text += kDigits[raw[i] >> 4U];
      text += kDigits[raw[i] & 15U];
    }
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

struct Entry {
  std::string name;  // below the top directory
  fs::file_status status;
};

bool counts(const fs::path& name, TreeKind kind) {
  return kind == TreeKind::image ||
         (!name.string().starts_with('.') && name != fs::path("__pycache__"));
}

Result<std::vector<Entry>> list(const fs::path& top, TreeKind kind) {
  std::vector<Entry> entries;
  std::error_code error;
  fs::recursive_directory_iterator it(top, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    if (!counts(it->path().filename(), kind)) {
      it.disable_recursion_pending();
      continue;
    }
    entries.push_back({it->path().lexically_relative(top).string(), it->symlink_status(error)});
  }
  if (error) {
    return fail(Error{ErrorCode::io, Step::none, error.value(), "cannot read " + top.string()});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace

Result<std::string> file_digest(const std::string& path, const Stop& stop) {
  const Fd file = TRY(sys::open(path, O_RDONLY));
  std::vector<std::byte> buffer(1U << 20U);
  Sha256 sum;
  for (;;) {
    if (stop()) return fail(ErrorCode::cancelled, "interrupted");
    const auto got = TRY(sys::read_some(file.get(), buffer));
    if (got.size == 0) return sum.hex();
    sum.add({reinterpret_cast<const char*>(buffer.data()), got.size});
  }
}

Result<std::string> tree_digest(const std::string& directory, TreeKind kind, const Stop& stop) {
  Sha256 sum;
  const std::vector<Entry> entries = TRY(list(directory, kind));
  for (const Entry& entry : entries) {
    const fs::path path = fs::path(directory) / entry.name;
    const bool executable = (entry.status.permissions() & fs::perms::owner_exec) != fs::perms::none;
    sum.add_field(entry.name);
    if (fs::is_symlink(entry.status)) {
      std::error_code error;
      sum.add_field("link");
      sum.add_field(fs::read_symlink(path, error).string());
    } else if (fs::is_directory(entry.status)) {
      sum.add_field("directory");
    } else if (fs::is_regular_file(entry.status)) {
      sum.add_field(executable ? "program" : "file");
      sum.add_field(TRY(file_digest(path.string(), stop)));
    } else {
      return fail(ErrorCode::io, path.string() + " is no file, directory or link");
    }
  }
  return sum.hex();
}

}  // namespace hutch::image
