#include "isolation/action.h"

#include <cstring>

#include "isolation/raw_action.h"

namespace hutch::isolation {

const char* op_name(Op op) {
  switch (op) {
    case Op::session: return "session";
    case Op::await_go: return "await_go";
    case Op::unshare: return "unshare";
    case Op::set_identity: return "set_identity";
    case Op::bind: return "bind";
    case Op::bind_optional: return "bind_optional";
    case Op::bind_readonly: return "bind_readonly";
    case Op::remount_readonly: return "remount_readonly";
    case Op::mount_tmpfs: return "mount_tmpfs";
    case Op::mount_proc: return "mount_proc";
    case Op::make_private: return "make_private";
    case Op::make_directory: return "make_directory";
    case Op::make_symlink: return "make_symlink";
    case Op::enter_root: return "enter_root";
    case Op::detach_old_root: return "detach_old_root";
    case Op::set_hostname: return "set_hostname";
    case Op::write_control: return "write_control";
    case Op::change_directory: return "change_directory";
    case Op::open_directory: return "open_directory";
    case Op::place_descriptors: return "place_descriptors";
    case Op::set_rlimit: return "set_rlimit";
    case Op::set_affinity: return "set_affinity";
    case Op::join_session_keyring: return "join_session_keyring";
    case Op::set_umask: return "set_umask";
    case Op::drop_bounding_set: return "drop_bounding_set";
    case Op::drop_capabilities: return "drop_capabilities";
    case Op::no_new_privs: return "no_new_privs";
    case Op::set_dumpable: return "set_dumpable";
    case Op::join_namespaces: return "join_namespaces";
    case Op::kill_others: return "kill_others";
    case Op::self_check: return "self_check";
    case Op::install_filter: return "install_filter";
    case Op::execute: return "execute";
  }
  return "unknown";
}

std::string encode_actions(const std::vector<Action>& actions) {
  std::string block;
  for (const Action& action : actions) {
    RawHeader header{};
    header.step = static_cast<std::uint16_t>(action.step);
    header.op = static_cast<std::uint16_t>(action.op);
    header.s_size = static_cast<std::uint32_t>(action.s.size() + 1);
    header.t_size = static_cast<std::uint32_t>(action.t.size() + 1);
    header.a = action.a;
    header.b = action.b;
    header.c = action.c;
    block.append(reinterpret_cast<const char*>(&header), sizeof header);
    block.append(action.s).push_back('\0');
    block.append(action.t).push_back('\0');
    block.append((8 - block.size() % 8) % 8, '\0');
  }
  return block;
}

}  // namespace hutch::isolation
