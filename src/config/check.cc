// The rules between settings, and what texts must look like.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "config/config.h"
#include "config/value.h"

namespace hutch::config {
namespace {

tl::unexpected<Error> wrong(std::string sentence) {
  return fail(ErrorCode::config, std::move(sentence));
}

bool is_loopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24U == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

// A host name or address as it stands in a Host header, without a port.
bool is_host_name(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  if (name.front() == '[') {
    const std::string inner(name.substr(1, name.size() < 2 ? 0 : name.size() - 2));
    in6_addr v6{};
    return name.back() == ']' && ::inet_pton(AF_INET6, inner.c_str(), &v6) == 1;
  }
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
}

Status check_listener(std::string_view group, const Listener& listener, std::string_view why) {
  const Result<Address> address = parse_address(listener.listen);
  if (!address) return wrong(fmt::format("{}.listen {}", group, address.error().message));
  if (!is_loopback(address->host)) {
    return wrong(fmt::format(
        "{}.listen must be a loopback address, and is \"{}\": {}. Listen on 127.0.0.1 and put a "
        "proxy that authenticates its callers in front of it",
        group, listener.listen, why));
  }
  for (const std::string& host : listener.hosts) {
    if (!is_host_name(host)) {
      return wrong(
          fmt::format("{}.hosts must hold host names without scheme and port, such as "
                      "\"hutch.example\", and has \"{}\"",
                      group, host));
    }
  }
  return {};
}

Status check_waived(const std::vector<std::string>& waived) {
  for (const std::string& name : waived) {
    if (name == "memory" || name == "processes" || name == "cpus") continue;
    return wrong(
        fmt::format("waive must hold names of limits: memory, processes, cpus; and has "
                    "\"{}\"",
                    name));
  }
  return {};
}

Status check_limits(const model::Limits& limits) {
  if (limits.disk_bytes > limits.memory_bytes) {
    return wrong(
        fmt::format("limits.disk_bytes ({}) must not exceed limits.memory_bytes ({}): the "
                    "sandbox's files live in its memory. Lower the first or raise the second",
                    format_size(limits.disk_bytes), format_size(limits.memory_bytes)));
  }
  if (limits.shm_bytes > limits.memory_bytes) {
    return wrong(
        fmt::format("limits.shm_bytes ({}) must not exceed limits.memory_bytes ({}): "
                    "/dev/shm lives in the sandbox's memory. Lower the first or raise the "
                    "second",
                    format_size(limits.shm_bytes), format_size(limits.memory_bytes)));
  }
  if (limits.file_bytes > limits.files_bytes) {
    return wrong(
        fmt::format("limits.file_bytes ({}) must not exceed limits.files_bytes ({}): one "
                    "file would be larger than all together. Lower the first or raise the "
                    "second",
                    format_size(limits.file_bytes), format_size(limits.files_bytes)));
  }
  return {};
}

Status check_engine(const std::string& engine) {
  if (engine == "native") return {};
#ifdef HUTCH_TESTING
  if (engine == "fake") return {};
#endif
  return wrong(fmt::format("engine must be \"native\", and is \"{}\"", engine));
}

Status check_image(const std::string& image) {
  const bool usable =
      !image.empty() && image.size() <= 64 && std::isalnum(static_cast<unsigned char>(image[0])) &&
      std::all_of(image.begin(), image.end(), [](unsigned char c) {
        return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '.' || c == '_';
      });
  if (usable) return {};
  return wrong(
      fmt::format("image must be a name of at most 64 of a-z 0-9 . _ - that starts with a "
                  "letter or digit, and is \"{}\"",
                  image));
}

Status check_level(const std::string& level) {
  for (const char* known : {"debug", "info", "warn", "error"}) {
    if (level == known) return {};
  }
  return wrong(fmt::format(
      "log.level must be \"debug\", \"info\", \"warn\" or \"error\", and is \"{}\"", level));
}

Status check_step(const std::string& name) {
  if (name.empty()) return {};
  for (std::uint16_t i = 1; i < static_cast<std::uint16_t>(Step::count_); ++i) {
    if (step_name(static_cast<Step>(i)) == name) return {};
  }
  return wrong(fmt::format("testing.fail_step must be a step's name, and is \"{}\"", name));
}

}  // namespace

Result<Address> parse_address(const std::string& text) {
  const auto shape = [&] {
    return wrong(fmt::format(
        "must be ADDRESS:PORT, such as 127.0.0.1:8700 or [::1]:0, and is \"{}\"", text));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return shape();
  Address address{.host = text.substr(0, colon)};
  const char* const end = text.data() + text.size();
  const auto port = std::from_chars(text.data() + colon + 1, end, address.port);
  if (port.ec != std::errc{} || port.ptr != end) return shape();
  if (address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    return shape();
  }
  if (address.host.empty()) return shape();
  if (address.host == "localhost") address.host = "127.0.0.1";
  return address;
}

Status check(const Config& config) {
  TRY(check_listener("internal", config.internal,
                     "no key is asked for there, so whoever reaches it can run code"));
  TRY(check_listener("public", config.public_door, "there are no keys and no TLS yet"));
  const Address internal = TRY(parse_address(config.internal.listen));
  const Address outside = TRY(parse_address(config.public_door.listen));
  if (internal.port != 0 && internal.port == outside.port && internal.host == outside.host) {
    return wrong(
        fmt::format("internal.listen and public.listen are both \"{}\": give one of them "
                    "another port",
                    config.internal.listen));
  }
  if (config.state_dir.empty() || config.state_dir.front() != '/' ||
      config.state_dir.find('\0') != std::string::npos || config.state_dir.size() > 1024) {
    return wrong(
        fmt::format("state_dir must be an absolute path of at most 1024 bytes, and is "
                    "\"{}\"",
                    config.state_dir));
  }
  TRY(check_limits(config.limits));
  TRY(check_waived(config.waive));
  if (config.pool.ceiling != config.pool.target) {
    return wrong(
        fmt::format("pool.ceiling ({}) must equal pool.target ({}): the pool does not grow "
                    "under load. Set both to the same number",
                    config.pool.ceiling, config.pool.target));
  }
  TRY(check_engine(config.engine));
  TRY(check_image(config.image));
  TRY(check_level(config.log.level));
  TRY(check_step(config.testing.fail_step));
  if (config.server.user == "root" || config.server.user == "0") {
    return wrong("server.user must not be root: name an unprivileged user, or leave it out");
  }
  return {};
}

}  // namespace hutch::config
