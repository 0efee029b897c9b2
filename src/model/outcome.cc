#include "model/outcome.h"

namespace hutch::model {

std::string_view cause_name(Cause cause) {
  switch (cause) {
    case Cause::exited: return "exited";
    case Cause::signaled: return "signaled";
    case Cause::timeout: return "timeout";
    case Cause::memory: return "memory";
    case Cause::processes: return "processes";
    case Cause::disk: return "disk";
    case Cause::cancelled: return "cancelled";
    case Cause::lost: return "lost";
  }
  return "lost";
}

}  // namespace hutch::model
