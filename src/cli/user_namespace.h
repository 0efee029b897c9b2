// How an ordinary user's Hutch gets the little power that it needs: root of a user namespace of its
// own, where 0 is the user and the ids above are the user's subordinate ones. Inside it everything
// goes on as for the host's root: a warden with power over that namespace alone, a server that
// gives all of it up.
#pragma once

#include "base/result.h"

namespace hutch::cli {

// Whether this process was started by an ordinary user, so that it has to become root of a user
// namespace, or by root of one already (a container without root). To be asked before anything else
// has changed the user.
bool is_ordinary_user();

// Moves this process, with its one thread, into such a namespace, by newuidmap(1) and newgidmap(1),
// and makes it root there; root of a user namespace stays where it is. No way back; supplementary
// groups are left. Errors: unsupported_host, naming the line of /etc/subuid or /etc/subgid, the
// package or the sysctl that is missing.
Status enter_user_namespace();

}  // namespace hutch::cli
