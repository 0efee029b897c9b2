#include "isolation/cgroup.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "base/sys.h"

namespace hutch::isolation {
namespace {

constexpr std::size_t kNameCharactersMax = 64;

class NoCgroup final : public Cgroup {
 public:
  Status attach(pid_t /*pid*/) override { return {}; }
  Status raise_memory(std::uint64_t /*bytes*/) override { return {}; }
  Status kill_all() override { return {}; }
  Result<bool> populated() override { return false; }
  CgroupCounters counters() override { return {}; }
  Result<Fd> watch_memory_kills() override { return watch_nothing(); }
  Status remove() override { return {}; }
};

// A host without control groups: holds no limit, and says so.
class NoCgroupTree final : public CgroupTree {
 public:
  explicit NoCgroupTree(const CgroupTreeOptions& options) : CgroupTree(options.waived) {
    for (const char* name : {"memory", "processes", "cpus"}) {
      unenforced_.push_back(
          {name, "no control group hierarchy that shows our own group is mounted"});
    }
  }

  Result<std::unique_ptr<Cgroup>> create(const std::string& name,
                                         const CgroupLimits& limits) override {
    TRY(refuse_unenforced(refused()));
    TRY(check_cgroup_name(name));
    TRY(check_cgroup_limits(limits));
    return make_no_cgroup();
  }
  Result<std::size_t> sweep(std::string_view /*prefix*/) override { return std::size_t{0}; }
  Status remove() override { return {}; }
  std::vector<std::string> directories() const override { return {}; }
};

}  // namespace

Result<std::unique_ptr<CgroupTree>> open_cgroup_tree(CgroupKernel& kernel,
                                                     const CgroupLayout& layout,
                                                     const CgroupTreeOptions& options) {
  TRY(check_cgroup_name(options.instance));
  switch (layout.version) {
    case CgroupVersion::none: break;
    case CgroupVersion::v1: return open_cgroup_tree_v1(kernel, layout, options);
    case CgroupVersion::v2: return open_cgroup_tree_v2(kernel, layout, options);
  }
  return std::make_unique<NoCgroupTree>(options);
}

std::vector<UnenforcedLimit> CgroupTree::refused() const {
  std::vector<UnenforcedLimit> refused;
  std::ranges::copy_if(unenforced_, std::back_inserter(refused), [this](const auto& limit) {
    return std::ranges::find(waived_, limit.name) == waived_.end();
  });
  return refused;
}

bool holds(const CgroupTree& tree, std::string_view limit) {
  const auto& unenforced = tree.unenforced();
  return std::ranges::find(unenforced, limit, &UnenforcedLimit::name) == unenforced.end();
}

std::unique_ptr<Cgroup> make_no_cgroup() { return std::make_unique<NoCgroup>(); }

Result<Fd> watch_nothing() {
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event) return event;
  return fail(sys::last_error(ErrorCode::io, Step::cgroup_limits, "cannot make an eventfd"));
}

Status check_cgroup_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (name.empty() || name.size() > kNameCharactersMax || !std::ranges::all_of(name, plain)) {
    return fail(ErrorCode::internal, Step::cgroup_create,
                "\"" + std::string(name) + "\" is no name for a control group");
  }
  return {};
}

Status check_cgroup_limits(const CgroupLimits& limits) {
  if (limits.memory_bytes == 0 || limits.processes == 0 || limits.cpu_quota_us == 0 ||
      limits.cpu_period_us == 0) {
    return fail(ErrorCode::internal, Step::cgroup_limits, "a limit of a control group is 0");
  }
  return {};
}

Status refuse_unenforced(const std::vector<UnenforcedLimit>& unenforced) {
  if (unenforced.empty()) return {};
  std::string text;
  for (const UnenforcedLimit& limit : unenforced) {
    text += (text.empty() ? "this host cannot hold the limit " : "; nor ") + limit.name + " (" +
            limit.reason + ")";
  }
  return fail(ErrorCode::unsupported_host, Step::cgroup_root, std::move(text));
}

}  // namespace hutch::isolation
