#include "cli/instance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/json.h"
#include "base/sys.h"
#include "base/units.h"

namespace hutch::cli {
namespace {

namespace fs = std::filesystem;

std::int64_t number_at(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  const std::int64_t* number = value == nullptr ? nullptr : value->if_int64();
  return number == nullptr ? 0 : *number;
}

// The names in a directory; none where it cannot be read.
std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The real user id of a process; nothing when it has ended.
std::optional<uid_t> uid_of(const std::string& process) {
  const Result<std::string> status = sys::read_file(process + "/status", 64_KiB);
  if (!status) return std::nullopt;
  constexpr std::string_view kLine = "\nUid:\t";
  const std::size_t at = status->find(kLine);
  if (at == std::string::npos) return std::nullopt;
  const char* const from = status->data() + at + kLine.size();
  uid_t uid = 0;
  if (std::from_chars(from, status->data() + status->size(), uid).ec != std::errc{}) {
    return std::nullopt;
  }
  return uid;
}

void add_directories(const std::string& path, std::vector<std::string>& found) {
  found.push_back(path);
  for (const std::string& name : names_in(path)) {
    std::error_code gone;
    if (fs::is_directory(fs::symlink_status(path + "/" + name, gone))) {
      add_directories(path + "/" + name, found);
    }
  }
}

}  // namespace

std::string instance_name(const std::string& state_dir) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  EVP_Q_digest(nullptr, "SHA256", nullptr, state_dir.data(), state_dir.size(), digest.data(),
               nullptr);
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + 4, ""));
}

std::string cgroup_prefix(const std::string& state_dir) {
  return "hutch-" + instance_name(state_dir);
}

Result<Instance> parse_instance(std::string_view text) {
  const boost::json::value document = TRY(json::parse(text));
  const boost::json::object* object = document.if_object();
  if (object == nullptr) return fail(ErrorCode::bad_request, "instance.json holds no object");
  Instance instance;
  if (const boost::json::value* list = object->if_contains("cgroup_prefixes");
      list != nullptr && list->is_array()) {
    for (const boost::json::value& item : list->get_array()) {
      if (item.is_string()) instance.cgroup_prefixes.emplace_back(item.get_string());
    }
  }
  if (const boost::json::value* range = object->if_contains("uid_range");
      range != nullptr && range->is_array() && range->get_array().size() == 2 &&
      range->get_array()[0].is_int64() && range->get_array()[1].is_int64()) {
    instance.uid_first = static_cast<uid_t>(range->get_array()[0].get_int64());
    instance.uid_count = static_cast<uid_t>(range->get_array()[1].get_int64());
  }
  instance.server_uid = static_cast<uid_t>(number_at(*object, "server_uid"));
  instance.server_pid = static_cast<pid_t>(number_at(*object, "server_pid"));
  instance.warden_pid = static_cast<pid_t>(number_at(*object, "warden_pid"));
  instance.launcher_pid = static_cast<pid_t>(number_at(*object, "launcher_pid"));
  instance.anchor_pid = static_cast<pid_t>(number_at(*object, "anchor_pid"));
  return instance;
}

Result<Instance> read_instance(const std::string& state_dir) {
  const std::string text = TRY(sys::read_file(state_dir + "/instance.json", 64_KiB));
  return parse_instance(text);
}

Holdings count_holdings(const Instance& instance, const std::string& proc) {
  Holdings holdings;
  for (const std::string& name : names_in(proc)) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    const std::optional<uid_t> uid = uid_of(proc + "/" + name);
    if (!uid || *uid < instance.uid_first || *uid - instance.uid_first >= instance.uid_count) {
      continue;
    }
    holdings.processes.push_back(pid);
    std::error_code ended;
    const fs::path space = fs::read_symlink(proc + "/" + name + "/ns/net", ended);
    if (!ended) holdings.network_namespaces.push_back(space.string());
  }
  std::sort(holdings.processes.begin(), holdings.processes.end());
  auto& spaces = holdings.network_namespaces;
  std::sort(spaces.begin(), spaces.end());
  spaces.erase(std::unique(spaces.begin(), spaces.end()), spaces.end());
  for (const std::string& prefix : instance.cgroup_prefixes) {
    const fs::path path(prefix);
    for (const std::string& name : names_in(path.parent_path().string())) {
      if (!name.starts_with(path.filename().string())) continue;
      add_directories((path.parent_path() / name).string(), holdings.cgroups);
    }
  }
  return holdings;
}

bool is_running(pid_t pid) { return pid > 0 && sys::exists(fmt::format("/proc/{}", pid)); }

}  // namespace hutch::cli
