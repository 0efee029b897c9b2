// Mounts that the warden makes in its own mount namespace, before any sandbox exists: the template.
// They vanish with that namespace, so nothing has to undo them. Mechanism only.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace hutch::isolation {

// A mount namespace of our own; nothing mounted from here on is seen by the host, or the other way.
Status private_mount_namespace();

Status mount_tmpfs(const std::string& target, const std::string& options);

// A read-only image file, or a directory that holds the same tree: read-only, nosuid, nodev.
// A file needs erofs that mounts files (Linux 6.12 and later) or a free loop device.
Status mount_image_file(const std::string& file, const std::string& target);
// The second way by itself, as kernels before 6.12 need it.
Status mount_image_by_loop(const std::string& file, const std::string& target);
Status mount_image_directory(const std::string& directory, const std::string& target);

Status bind_mount(const std::string& source, const std::string& target);
// attributes: MOUNT_ATTR_* of mount_setattr(2), added to what the mount has.
Status restrict_mount(const std::string& target, std::uint64_t attributes);

// A character device node with mode 0666 and exactly these numbers; checked after it was made.
Status make_device(const std::string& path, unsigned major, unsigned minor);
// The host's node `source` bound to a new file `path`, read-only, for who may not make nodes; must
// have exactly these numbers.
Status bind_device(const std::string& source, const std::string& path, unsigned major,
                   unsigned minor);
// That `path` is this character device.
Status check_device(const std::string& path, unsigned major, unsigned minor);

}  // namespace hutch::isolation
