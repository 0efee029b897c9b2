// The sandbox side of the host, built once: the template that every sandbox's mounts are copied
// from, the user namespace Z whose ids mean nothing on the host, the anchor that keeps its
// namespaces alive, and the launcher that makes processes in it. Owns all of them; destroying it
// ends every process of the zone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "plan/plan.h"

namespace hutch::warden {

// The ids that belong to one running instance, and to nobody else on this host; numbers as the
// warden's own user namespace has them.
struct UidRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  // Slot N has the two ids `slots + 2 * N` and the one after it, counted from `first`.
  std::uint32_t slots = 0;
  std::uint32_t on_host = 0;  // what `first` is for the host
  Fd lock;                    // held for as long as any process may use the ids
};

// Takes the lowest range that no other instance holds. Ranges of 65,536 ids from 0x70010000 up,
// above everything that distributions hand out; refuses one that /etc/passwd or /etc/subuid names.
Result<UidRange> take_uid_range();

// The same for an ordinary user: 15 blocks of 4,096 of the user's subordinate ids, so that as many
// instances can run side by side.
Result<UidRange> take_subordinate_range();

struct ZoneSpec {
  std::string path;  // a directory of the host to mount the template at; every user may enter it
  std::string image_path;  // erofs file or directory
  bool image_is_file = true;
  std::uint32_t first_id = 0;
  std::uint32_t id_count = 0;
  bool rootless = false;           // device nodes cannot be made: the host's are bound
  std::string_view guest_program;  // the static program
  std::string_view sitecustomize;  // what a warm interpreter starts with
  Step fail_step = Step::none;     // failpoint; only builds with HUTCH_TESTING look at it
};

class Zone {
 public:
  // Mounts the template; the caller is in a mount namespace of its own.
  static Status mount_template(const ZoneSpec& spec, const plan::Plan& plan);
  // Starts anchor and launcher. Children of the caller, which alone may wait for them.
  static Result<Zone> start(const ZoneSpec& spec, const plan::Plan& plan);

  Zone() = default;
  Zone(Zone&&) = default;
  Zone& operator=(Zone&&) = delete;
  // Ends the zone and reaps every child of this process.
  ~Zone();

  int launcher_socket() const { return launcher_socket_.get(); }
  const Fd& launcher_pidfd() const { return launcher_pidfd_; }
  int anchor_pidfd() const { return anchor_pidfd_.get(); }
  pid_t anchor_pid() const { return anchor_pid_; }

  // The launcher has ended: a zombie of ours that stays would stand before every other in a wait
  // for any child.
  void reap_launcher();

  // Closes the launcher's socket and the anchor's lifeline: both end, and with the anchor
  // everything that still lives in the zone.
  void release();

 private:
  Status start_anchor(const ZoneSpec& spec, const plan::Plan& plan, const Fd& program);
  Result<Fd> clone_launcher(const ZoneSpec& spec, const Fd& program, const Fd& block,
                            const Fd& socket);
  Status start_launcher(const ZoneSpec& spec, const plan::Plan& plan, const Fd& program);

  Fd lifeline_;
  Fd anchor_pidfd_;
  Fd launcher_pidfd_;
  Fd launcher_socket_;
  pid_t anchor_pid_ = -1;
};

}  // namespace hutch::warden
